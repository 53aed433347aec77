"""The NYC Taxi suite: loader, generator, Q1-Q5, runner and plots."""

if not __name__.startswith("bamquery."):
    # From a checkout's root `import queries` finds this folder; every class would exist twice.
    raise ImportError(f"import bamquery.{__name__}, not {__name__}: it would be a second copy of every class")
