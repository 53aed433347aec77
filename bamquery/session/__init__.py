"""What runs a query: the session, its statement cache, results and their progress."""
