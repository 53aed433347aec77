"""Words that mean something to the parser: those that statements begin with, and those that are no names."""

from __future__ import annotations

STATEMENT_KEYWORDS = (
    *("SELECT", "FROM", "VALUES", "CREATE", "INSERT", "DROP", "DESCRIBE", "SHOW", "EXPLAIN", "SET"),
    *("OPTIMIZE", "VACUUM", "ALTER", "COPY", "RESET", "SUMMARIZE", "PRAGMA", "USE"),
)
"""What statements that BamQuery runs begin with."""

FOREIGN_STATEMENTS = {
    **{
        word: word
        for word in (
            *("ABORT", "CALL", "CHECKPOINT", "DEALLOCATE", "EXECUTE", "EXPORT", "IMPORT", "INSTALL", "LOAD"),
            "PREPARE",
        )
    },
    "END": "END",
    "FORCE": "FORCE CHECKPOINT",
    "START": "START TRANSACTION",
}
"""Statements of DuckDB that sqlglot knows poorly or not at all, by their first word."""

RESERVED = frozenset(
    {
        *("ALL", "ANALYSE", "ANALYZE", "AND", "ANY", "ARRAY", "AS", "ASC", "ASYMMETRIC", "BOTH", "BY"),
        *("CASE", "CAST", "CHECK", "COLLATE", "COLUMN", "CONSTRAINT", "CREATE", "DEFAULT"),
        *("DEFERRABLE", "DESC", "DESCRIBE", "DISTINCT", "DO", "ELSE", "END", "EXCEPT", "EXCLUDE"),
        *("FALSE", "FETCH", "FOR", "FOREIGN", "FROM", "GROUP", "HAVING", "IN", "INITIALLY"),
        *("INTERSECT", "INTO", "IS", "LAMBDA", "LATERAL", "LEADING", "LIMIT", "NOT", "NULL", "OFFSET"),
        *("ON", "ONLY", "OR", "ORDER", "PIVOT", "PIVOT_LONGER", "PIVOT_WIDER", "PLACING", "PRIMARY"),
        *("QUALIFY", "REFERENCES", "RETURNING", "SELECT", "SHOW", "SOME", "SUMMARIZE", "SYMMETRIC"),
        *("TABLE", "THEN", "TO", "TRAILING", "TRUE", "UNION", "UNIQUE", "UNPIVOT", "USING", "VARIADIC"),
        *("WHEN", "WHERE", "WINDOW", "WITH"),
    }
)
"""What DuckDB does not take for a name unless it is quoted or follows AS."""

PARTS = {
    **{
        word: part
        for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "QUARTER", "DECADE")
        for word in (part.lower(), f"{part.lower()}s")
    },
    **dict.fromkeys(("millisecond", "milliseconds"), "MILLISECONDS"),
    **dict.fromkeys(("microsecond", "microseconds"), "MICROSECONDS"),
    **dict.fromkeys(("century", "centuries"), "CENTURY"),
    **dict.fromkeys(("millennium", "millennia"), "MILLENNIUM"),
}
"""What DuckDB calls the parts that are words of its grammar."""
