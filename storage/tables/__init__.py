"""Tables: versions, transactions, and the ways to change them."""
