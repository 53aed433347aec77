"""The `bamquery` command."""
