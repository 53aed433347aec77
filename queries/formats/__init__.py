"""`bamquery bench formats`: the same rows in BamQuery's tables and in other formats."""
