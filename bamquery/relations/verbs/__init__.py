"""A relation's methods that make, look at and write relations."""
