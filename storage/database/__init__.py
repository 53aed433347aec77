"""A database's folder, the files that statements may name, and the check of everything."""
