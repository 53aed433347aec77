"""A query as one HTML page: in come a relation and its profile, out goes a file that needs nothing else."""
