"""Relations of what is outside of the database: files, objects of Python, and values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from bamquery.connection.base import ConnectionBase, argument_text, call_text
from bamquery.connection.python_tables import python_source
from bamquery.errors import IngestError
from bamquery.relations.relation import Relation

if TYPE_CHECKING:
    import pandas
    import polars

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class ConnectionSources(ConnectionBase):
    """Methods that return a relation and read nothing but what tells its columns."""

    def read_parquet(self, path: Paths, *, filename: bool = False) -> Relation:
        """The rows of Parquet files.

        Args:
            path: a path, a pattern, or a list of them; columns go together by name.
            filename: whether a last column has the path of the row's file.

        Raises:
            IngestError: there are none, or they cannot be read as one table.
        """
        return self._files("read_parquet", path, {"filename": filename or None})

    def read_csv(
        self,
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
        """The rows of CSV files; what is not said is found out from the files, types from all of their rows.

        Args:
            path: a path, a pattern, or a list of them; columns go together by name.
            header: whether the first line has names.
            delimiter: between values.
            skip: how many lines at the start to leave out.
            null: what stands for null, one text or several.
            names: of the columns.
            types: of some columns by name, or of all in order.
            columns: names and types of all columns.
            all_varchar: whether every column is VARCHAR.
            compression: what the files have to be.
            filename: whether a last column has the path of the row's file.

        Raises:
            IngestError: there are none, or they cannot be read as one table; names the file and line.
        """
        options = {
            "header": header,
            "delim": delimiter,
            "skip": skip,
            "nullstr": null,
            "names": names,
            "types": types,
            "columns": columns,
            "all_varchar": all_varchar or None,
            "compression": compression,
            "filename": filename or None,
        }
        return self._files("read_csv", path, options)

    def read_json(
        self,
        path: Paths,
        *,
        format: Literal["auto", "newline_delimited", "array", "unstructured"] | None = None,  # noqa: A002 (SQL's)
        columns: Mapping[str, str] | None = None,
        compression: Literal["auto", "none", "gzip", "zstd"] | None = None,
        filename: bool = False,
    ) -> Relation:
        """The rows of JSON files: an array of objects, an object a line, or objects one after another.

        Args:
            path: a path, a pattern, or a list of them; columns go together by name.
            format: which of these.
            columns: names and types of the members to read.
            compression: what the files have to be.
            filename: whether a last column has the path of the row's file.

        Raises:
            IngestError: there are none, or they cannot be read as one table.
        """
        options = {
            "format": format,
            "columns": columns,
            "compression": compression,
            "filename": filename or None,
        }
        return self._files("read_json", path, options)

    def read_arrow(self, path: Paths, *, filename: bool = False) -> Relation:
        """The rows of Arrow IPC (Feather) files.

        Args:
            path: a path, a pattern, or a list of them; columns go together by name.
            filename: whether a last column has the path of the row's file.

        Raises:
            IngestError: there are none, or they cannot be read as one table.
        """
        return self._files("read_arrow", path, {"filename": filename or None})

    def from_arrow(self, table: Any) -> Relation:
        """The rows of pyarrow's tables, batches, readers and datasets, and of all with `__arrow_c_stream__`.

        Nothing is copied. A reader can be read once.

        Raises:
            IngestError: it is none of these, or has columns that no type holds.
        """
        return self._object(table)

    def from_pandas(self, frame: pandas.DataFrame) -> Relation:
        """The rows of a pandas frame.

        Raises:
            TypeError: it is none. IngestError: it has columns that no type holds.
        """
        return self._object(_require_frame(frame, "pandas", "DataFrame"))

    def from_polars(self, frame: polars.DataFrame | polars.LazyFrame) -> Relation:
        """The rows of a Polars frame, or of a lazy one, which is computed when rows are asked for.

        Raises:
            TypeError: it is none. IngestError: it has columns that no type holds.
        """
        return self._object(_require_frame(frame, "polars", "DataFrame", "LazyFrame"))

    def from_df(self, frame: Any) -> Relation:
        """The rows of a frame of pandas or Polars, or of whatever else has rows; as `from_arrow`."""
        return self._object(frame)

    def from_dict(self, columns: Mapping[str, Sequence[Any]]) -> Relation:
        """The rows of columns by name: lists or arrays, all of one length.

        Raises:
            IngestError: they are not, or hold what no type does.
        """
        return self._object(_table(lambda: pa.table(dict(columns))))

    def from_dicts(self, rows: Iterable[Mapping[str, Any]]) -> Relation:
        """The rows of dictionaries; one that lacks a column that the first one has is null there.

        Raises:
            IngestError: they hold what no type does.
        """
        return self._object(_table(lambda: pa.Table.from_pylist([dict(row) for row in rows])))

    def values(self, *rows: Any) -> Relation:
        """The rows themselves, their columns called col0, col1 and so on.

        Args:
            rows: lists or tuples; a list of these; or the values of one row.

        Raises:
            TypeError: SQL has no type for a value. SqlError: the rows do not go together.
        """
        if len(rows) == 1 and isinstance(rows[0], list) and rows[0] and isinstance(rows[0][0], (list, tuple)):
            rows = tuple(rows[0])
        if not any(isinstance(row, (list, tuple)) for row in rows):
            rows = (rows,)
        if not all(isinstance(row, (list, tuple)) and row for row in rows):
            raise TypeError("values takes rows, each a list or tuple of values, or the values of one row")
        listed = (f"({', '.join(map(argument_text, row))})" for row in rows)
        return self._query(f"SELECT * FROM (VALUES {', '.join(listed)})")

    def table_function(self, name: str, parameters: Sequence[Any] = ()) -> Relation:
        """What a table function gives: `table_function("range", [10])`.

        Raises:
            SqlError: there is no such function, or it does not take these arguments.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise TypeError(f"name is a table function's, not {name!r}")
        return self._query(call_text(name, *parameters, options={}))

    def _files(self, function: str, path: Paths, options: Mapping[str, Any]) -> Relation:
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        if not paths:
            raise IngestError("the list of paths is empty: name at least one file")
        found = [os.path.expanduser(os.fspath(one)) for one in paths]
        what = found[0] if len(found) == 1 else found
        return self._query(call_text(function, what, options=options))

    def _object(self, what: Any) -> Relation:
        self._session.require_open()
        if isinstance(what, (str, os.PathLike, list, tuple)):
            raise TypeError(
                f"this takes an object that has rows, not {type(what).__name__}: read_parquet() and its like "
                "take paths, values() and from_dicts() rows"
            )
        return self._scan(python_source(self._session, type(what).__name__, what))


def _require_frame(frame: Any, package: str, *names: str) -> Any:
    for cls in type(frame).__mro__:
        if cls.__module__.split(".")[0] == package and cls.__name__ in names:
            return frame
    raise TypeError(f"this takes a frame of {package}, not {type(frame).__name__}: from_df() takes any")


def _table(make: Any) -> pa.Table:
    try:
        table: pa.Table = make()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise IngestError(f"these are no columns of one length and one type each: {error}") from error
    return table
