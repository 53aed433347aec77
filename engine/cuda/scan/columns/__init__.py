"""Columns of a scan on the GPU while they are being made."""
