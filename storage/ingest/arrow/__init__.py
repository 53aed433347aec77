"""Arrow's files, streams and objects as sources."""
