"""Scalar functions by theme: how calls of each name are bound. `bamquery.sql.functions` has them all."""
