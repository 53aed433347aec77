"""NVMe queues, page cache and array that GPU and CPU threads drive, and what serves them."""

if not __name__.startswith("bamquery."):
    # From a checkout's root `import driver` finds this folder; every class would exist twice.
    raise ImportError(f"import bamquery.{__name__}, not {__name__}: it would be a second copy of every class")
