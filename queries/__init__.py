"""The NYC Taxi suite: loader, generator, Q1-Q5, runner and plots.

In come TLC's files of any year, or a recipe for generated trips; out go the tables `trips`, `zones` and
`generated`, and the answers to the five questions, checked, with times, bytes and pictures.
"""

if not __name__.startswith("bamquery."):
    # From a checkout's root `import queries` finds this folder; every class would exist twice.
    raise ImportError(f"import bamquery.{__name__}, not {__name__}: it would be a second copy of every class")
