"""`bamquery bench sql`: TPC-H-like and taxi queries, on BamQuery and on others."""
