"""Rows drawn at random: each for itself, in runs, or a number of them."""
