"""Strings as codes of symbols of up to eight bytes."""
