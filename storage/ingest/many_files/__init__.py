"""Many files as one source: one schema, partitions, virtual columns."""
