"""One GPU: memory, launches, waits, queue pairs and arrays as its kernels see them."""
