"""What a GPU's scans share and keep between queries."""
