"""Changes, locks and maps of files, below any format."""
