"""Syntax trees: nodes that sqlglot has not, and how calls, windows and places are read from nodes."""
