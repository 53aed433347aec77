"""Other constants for TPC-H's queries, by the specification's rules."""
