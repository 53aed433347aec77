"""PEP 249, Python's database API: what libraries that speak to databases ask for.

Every statement is committed when it returns: `commit()` does nothing and `rollback()` raises
`NotSupportedError`. Parameters are `?` with a sequence, or `:name` with a mapping.
"""

from __future__ import annotations

from typing import Final

from bamquery.dbapi.connection import Connection, connect
from bamquery.dbapi.cursor import Cursor
from bamquery.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 (PEP 249's name)
)
from bamquery.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel: Final = "2.0"
threadsafety: Final = 2
"""Threads may share the module and connections, not cursors."""
paramstyle: Final = "qmark"
