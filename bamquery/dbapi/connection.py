"""PEP 249's connection, over one of BamQuery's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from bamquery.closeable import Closeable
from bamquery.connection.connection import Connection as NativeConnection
from bamquery.connection.connection import open_connection
from bamquery.connection.python_tables import python_source
from bamquery.dbapi import errors
from bamquery.dbapi.errors import InterfaceError, NotSupportedError, pep_errors
from bamquery.errors import SqlError
from bamquery.relations.relation import Relation
from bamquery.sql_frontend.parameters import Parameters
from bamquery.sql_frontend.sql_text import sql_text

if TYPE_CHECKING:
    from bamquery.dbapi.cursor import Cursor

_NO_TABLES: Final[Mapping[str, Any]] = MappingProxyType({})


def connect(
    path: str | Path = ":memory:",
    *,
    create: bool | None = None,
    device: str = "auto",
    **settings: object,
) -> Connection:
    """Open a database folder, made if there is none; as `bamquery.connect`.

    Args:
        path: the folder; `:memory:` is a temporary one that goes with the connection.
        create: True makes a database where there is none, False never does; None does unless the name looks
            like a slip for that of a database beside it.
        device: `auto`, `cpu` or `cuda:<n>`.
        settings: others by name; docs/python/connections.md lists them.

    Raises:
        ProgrammingError: there is no such setting or device.
        OperationalError: the path is something else, or cannot be made a database.
    """
    with pep_errors():
        return Connection(open_connection(path, create, {"device": device, **settings}))


class Connection(Closeable):
    """An open database. Every statement is committed when `execute` returns; a context manager that closes.

    Threads may share it, each with cursors of its own.

    Attributes:
        native_connection: the `bamquery.Connection` below, for all that PEP 249 has no name for.
        changes: how many statements that change something were committed since the last `commit()`.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, native_connection: NativeConnection) -> None:
        """Over a connection, which `close` closes."""
        self.native_connection = native_connection
        self.changes = 0

    @property
    def autocommit(self) -> bool:
        """True: there are no transactions."""
        return True

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.native_connection._session.closed

    @property
    def registered_names(self) -> list[str]:
        """Names of objects of Python that were registered with the native connection."""
        return list(self.native_connection._session.registered)

    def cursor(self) -> Cursor:
        """A cursor of its own.

        Raises:
            InterfaceError: the connection is closed.
        """
        from bamquery.dbapi.cursor import Cursor  # noqa: PLC0415 (which knows connections)

        self.require_open()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: every statement is committed already.

        Raises:
            InterfaceError: the connection is closed.
        """
        self.require_open()
        self.changes = 0

    def rollback(self) -> None:
        """Refuse.

        Raises:
            NotSupportedError: always; what statements did is committed.
        """
        self.require_open()
        raise NotSupportedError("there is nothing to roll back to: every statement commits what it does")

    def close(self) -> None:
        """Stop what runs and let go of everything; closing twice is harmless."""
        self.native_connection.close()

    def require_open(self) -> None:
        """Refuse to go on with a closed connection.

        Raises:
            InterfaceError: it is closed.
        """
        if self.closed:
            raise InterfaceError("the connection is closed")

    def __enter__(self) -> Self:
        self.require_open()
        return self

    def __repr__(self) -> str:
        return repr(self.native_connection).replace("bamquery.Connection", "bamquery.dbapi.Connection", 1)

    def run(
        self, text: str, parameters: Parameters | None = None, tables: Mapping[str, Any] = _NO_TABLES
    ) -> Relation:
        """Run statements of a text; the answer of the last one, as a relation.

        They see what was registered with the native connection, but no variables of Python: who calls may be
        a library. `tables` are objects that only they see.

        Raises:
            Error: a statement failed: it changed nothing, those before it are done.
        """
        native = self.native_connection
        with pep_errors():
            session = native._session
            sources = {name: python_source(session, name, what) for name, what in tables.items()}
            catalog = session.catalog(sources, with_variables=False)
            relation = None
            for relation in native._statements(sql_text(text, "operation"), parameters, catalog):
                self.changes += not relation.is_answer
            if relation is None:
                raise SqlError("there is no statement", text)
            return relation
