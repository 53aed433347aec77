"""Logical plans: frozen nodes, expressions and the rules that rewrite them."""
