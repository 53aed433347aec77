"""How the vectors of a column are stored: which bytes hold them, and how bytes become arrays."""
