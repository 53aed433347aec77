"""`bamquery bench memory`: most memory over `memory_limit`, for every operator and every way in and out."""
