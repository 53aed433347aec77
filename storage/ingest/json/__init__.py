"""JSON files of objects as columns."""
