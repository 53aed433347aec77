"""The base class of operators, and how all of them cut, join and split frames."""
