"""Programs of `bamquery.engine.pipeline` as kernels: their text, launches, and what aggregates gather."""
