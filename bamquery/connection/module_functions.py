"""The connection that functions of the module use, and these functions: `bamquery.sql("SELECT 1")`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from bamquery.connection.connection import Connection, connect
from bamquery.connection.sources import Paths
from bamquery.relations.relation import Relation
from bamquery.sql_frontend.parameters import Parameters

if TYPE_CHECKING:
    import pandas
    import polars

_LOCK: Final = threading.RLock()
_connections: dict[int, Connection] = {}
"""By process: a forked child has one of its own, and sees no tables of its parent's."""


def default_connection() -> Connection:
    """The connection to `:memory:` that `bamquery.sql` and its like use, made when it is first asked for.

    Threads share it. A forked child gets a new one, without the tables of its parent's; so does whoever asks
    after it has been closed.
    """
    with _LOCK:
        connection = _connections.get(os.getpid())
        if connection is None or connection.closed:
            connection = _connections[os.getpid()] = connect()
        return connection


def set_default_connection(connection: Connection) -> None:
    """Let `bamquery.sql` and its like use another connection, which stays its owner's to close.

    Raises:
        TypeError: it is no connection. BamQueryError: it is closed.
    """
    if not isinstance(connection, Connection):
        raise TypeError(f"connection is a bamquery.Connection, not {type(connection).__name__}")
    connection._session.require_open()
    with _LOCK:
        _connections[os.getpid()] = connection


def sql(text: str, params: Parameters | None = None) -> Relation:
    """`Connection.sql` of the default connection."""
    return default_connection().sql(text, params)


def query(text: str, params: Parameters | None = None) -> Relation:
    """The same as `sql`."""
    return default_connection().sql(text, params)


def execute(text: str, params: Parameters | None = None) -> Relation:
    """`Connection.execute` of the default connection."""
    return default_connection().execute(text, params)


def table(name: str) -> Relation:
    """`Connection.table` of the default connection."""
    return default_connection().table(name)


def register(name: str, what: Any) -> None:
    """`Connection.register` of the default connection."""
    default_connection().register(name, what)


def unregister(name: str) -> None:
    """`Connection.unregister` of the default connection."""
    default_connection().unregister(name)


def load(
    name: str,
    source: Any,
    *,
    if_exists: Literal["error", "append", "replace"] = "error",
    format: str | None = None,  # noqa: A002 (what it is called everywhere)
    exclude: Sequence[str] = (),
) -> int:
    """`Connection.load` of the default connection."""
    return default_connection().load(name, source, if_exists=if_exists, format=format, exclude=exclude)


def read_parquet(path: Paths, *, filename: bool = False) -> Relation:
    """`Connection.read_parquet` of the default connection."""
    return default_connection().read_parquet(path, filename=filename)


def read_csv(
    path: Paths,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
    skip: int | None = None,
    null: str | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    types: Mapping[str, str] | Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    all_varchar: bool = False,
    compression: Literal["auto", "none", "gzip", "zstd"] | None = None,
    filename: bool = False,
) -> Relation:
    """`Connection.read_csv` of the default connection."""
    return default_connection().read_csv(
        path,
        header=header,
        delimiter=delimiter,
        skip=skip,
        null=null,
        names=names,
        types=types,
        columns=columns,
        all_varchar=all_varchar,
        compression=compression,
        filename=filename,
    )


def read_json(
    path: Paths,
    *,
    format: Literal["auto", "newline_delimited", "array", "unstructured"] | None = None,  # noqa: A002 (SQL's)
    columns: Mapping[str, str] | None = None,
    compression: Literal["auto", "none", "gzip", "zstd"] | None = None,
    filename: bool = False,
) -> Relation:
    """`Connection.read_json` of the default connection."""
    return default_connection().read_json(
        path, format=format, columns=columns, compression=compression, filename=filename
    )


def read_arrow(path: Paths, *, filename: bool = False) -> Relation:
    """`Connection.read_arrow` of the default connection."""
    return default_connection().read_arrow(path, filename=filename)


def from_arrow(table: Any) -> Relation:
    """`Connection.from_arrow` of the default connection."""
    return default_connection().from_arrow(table)


def from_pandas(frame: pandas.DataFrame) -> Relation:
    """`Connection.from_pandas` of the default connection."""
    return default_connection().from_pandas(frame)


def from_polars(frame: polars.DataFrame | polars.LazyFrame) -> Relation:
    """`Connection.from_polars` of the default connection."""
    return default_connection().from_polars(frame)


def from_df(frame: Any) -> Relation:
    """`Connection.from_df` of the default connection."""
    return default_connection().from_df(frame)


def from_dict(columns: Mapping[str, Sequence[Any]]) -> Relation:
    """`Connection.from_dict` of the default connection."""
    return default_connection().from_dict(columns)


def from_dicts(rows: Iterable[Mapping[str, Any]]) -> Relation:
    """`Connection.from_dicts` of the default connection."""
    return default_connection().from_dicts(rows)


def values(*rows: Any) -> Relation:
    """`Connection.values` of the default connection."""
    return default_connection().values(*rows)
