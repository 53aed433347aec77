"""One entry a function: its names, signatures, what it does and what devices owe of it; see README.md."""
