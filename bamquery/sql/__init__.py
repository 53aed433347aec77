"""SQL text to a bound logical plan."""
