"""Tables on disk: catalog, fragments, zone maps, ingest and the read planner."""

if not __name__.startswith("bamquery."):
    # From a checkout's root `import storage` finds this folder; every class would exist twice.
    raise ImportError(f"import bamquery.{__name__}, not {__name__}: it would be a second copy of every class")
