"""How the vectors of a column are stored; plain for now."""
