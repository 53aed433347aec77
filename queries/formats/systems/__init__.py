"""One module a format; each is imported where it is measured."""
