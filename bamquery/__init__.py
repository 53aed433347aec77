"""SQL over more data than memory holds, reading from NVMe only what the query needs."""

__version__ = "0.1.0"
