"""What is said of SQL's functions: one file of entries for each kind, read when somebody asks.

In: nothing but these words. Out: `function_reference`, from which come completion in the shell,
`duckdb_functions()` and docs/functions.md. Tests hold entries to the registries that calls are
bound by: every name, its arguments and the type of its answer.
"""
