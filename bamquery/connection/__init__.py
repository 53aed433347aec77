"""`bamquery.connect()`: a database, its settings, and SQL."""

from bamquery.connection.connection import Connection, connect

__all__ = ["Connection", "connect"]
