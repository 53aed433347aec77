"""Packed columns: numbers of few bits, several ways to make values of them."""
