"""Expressions computed over one frame."""
