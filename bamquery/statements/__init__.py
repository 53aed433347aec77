"""Carries out bound statements: in comes a statement, out goes a relation or a message."""
