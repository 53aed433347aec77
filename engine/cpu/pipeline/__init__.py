"""Programs of `bamquery.engine.pipeline` run by the native interpreter."""
