"""GROUP BY, DISTINCT and grouping sets, within bounded memory."""
