"""Tables and structures that kernels read, packed on the host."""
