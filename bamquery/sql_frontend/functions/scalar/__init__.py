"""Scalar functions by theme: how calls of each name are bound; `sql_frontend.functions` has them all."""
