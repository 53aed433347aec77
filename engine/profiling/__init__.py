"""What a query did: figures a query, an operator, a column, a vector."""
