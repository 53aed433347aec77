"""`.schema` and `.dump`: the database of a connection as SQL. Imports the engine."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from bamquery.connection.connection import Connection
from bamquery.output.atomic_file import whole_file
from bamquery.statements.dump import write_dump


def dump_statements(connection: Connection, names: Sequence[str], *, rows: bool) -> bytes:
    """The statements that make these tables and views, or all of them.

    Raises:
        CatalogError: nothing has one of the names.
    """
    written = io.BytesIO()
    # The session, since a temporary database is known to its connection only.
    write_dump(connection._session, names, written, rows=rows)
    return written.getvalue()


def dump_to(connection: Connection, path: Path) -> None:
    """Write all of it to a file.

    Raises:
        StorageError: the file cannot be written; it is as it was.
    """
    with whole_file(path) as file:
        write_dump(connection._session, (), file)
