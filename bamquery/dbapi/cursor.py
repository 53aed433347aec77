"""PEP 249's cursor."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self, TypeAlias

import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.dbapi.batched_insert import batch
from bamquery.dbapi.connection import Connection
from bamquery.dbapi.errors import InterfaceError, ProgrammingError, pep_errors
from bamquery.dbapi.named_parameters import with_dollars
from bamquery.dbapi.type_objects import precision_and_scale
from bamquery.relations.frames.python_values import python_rows, whole_number
from bamquery.relations.relation import Relation
from bamquery.sql_frontend.parameters import Parameters

Column: TypeAlias = tuple[str, str, None, None, int | None, int | None, None]


class Cursor(Closeable):
    """Runs statements and gives out rows as they come; a context manager that closes, and an iterator.

    Attributes:
        connection: which it is of.
        description: of each column of a query's answer its name, type as SQL spells it, None, None,
            digits and digits behind the point of a DECIMAL, and None; None where there are no rows to fetch.
        rowcount: how many rows a statement has written; -1 of queries and of what writes none.
        arraysize: how many rows `fetchmany` gives that is not told how many.
        lastrowid: None.
    """

    lastrowid = None

    def __init__(self, connection: Connection) -> None:
        """Use `Connection.cursor`."""
        self.connection = connection
        self.description: list[Column] | None = None
        self.rowcount = -1
        self.arraysize = 1
        self._closed = False
        self._batches: Generator[pa.RecordBatch] | None = None
        self._rows: Generator[tuple[Any, ...]] | None = None

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run one or more statements; the rows to fetch are those of the last one.

        Args:
            operation: the statements. They are committed one by one.
            parameters: values of `?` and `$1` as a sequence, of `:name` and `$name` as a mapping.

        A query runs while its rows are fetched, and sees the tables as they are now.

        Raises:
            Error: a statement failed: it changed nothing, those before it are done.
        """
        self._begin()
        if isinstance(parameters, Mapping) and isinstance(operation, str):
            operation = with_dollars(operation, parameters)
        self._take(self.connection.run(operation, parameters))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Insert a row for each of several parameters: all of them, in one commit, or none.

        Args:
            operation: an INSERT INTO ... VALUES with one row.
            seq_of_parameters: of each row, as `execute` takes them.

        Raises:
            NotSupportedError: it is another statement.
            Error: a value does not fit; nothing was changed.
        """
        self._begin()
        rows = list(seq_of_parameters)
        if not rows:
            self.rowcount = 0
            return self
        if isinstance(rows[0], Mapping):
            operation = with_dollars(operation, rows[0])
        with pep_errors():
            one = batch(self.connection.native_connection._session, operation, rows)
        self._take(
            self.connection.run(one.text, one.parameters, {} if one.table is None else {one.name: one.table})
        )
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last one."""
        rows = self._fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next `size` rows, fewer at the end and none after it; `arraysize` of them by default."""
        return self._fetch(whole_number(self.arraysize if size is None else size, "size"))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._fetch(None)

    def fetch_arrow_table(self) -> pa.Table:
        """All rows as an Arrow table; before any other has been fetched."""
        with pep_errors():
            return self.fetch_record_batch().read_all()

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """A reader of Arrow batches as they come; before any row has been fetched.

        Raises:
            ProgrammingError: there are no rows to fetch, or some have been fetched.
        """
        self._require_rows()
        if self._rows is not None:
            raise ProgrammingError("rows have been fetched already: execute the query again")
        assert self._batches is not None
        batches, self._rows = self._batches, _rows(iter(()))
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Stop the query and let go of the table versions it reads; closing twice is harmless."""
        self._stop()
        self._closed = True

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def _begin(self) -> None:
        self._require_open()
        self._stop()
        self.description, self.rowcount = None, -1

    def _stop(self) -> None:
        rows, batches = self._rows, self._batches
        self._rows = self._batches = None
        for running in (rows, batches):
            if running is not None:
                running.close()

    def _take(self, answer: Relation) -> None:
        """Make a statement's answer what is there to be fetched."""
        if not answer.is_answer:
            if answer.columns == ["Count"]:
                self.rowcount = answer.to_arrow()["Count"][0].as_py()
            return
        self._schema = answer.schema
        self.description = [
            (name, kind, None, None, *precision_and_scale(field.type), None)
            for name, kind, field in zip(answer.columns, answer.types, answer.schema, strict=True)
        ]
        self._batches = _batches(answer)

    def _fetch(self, size: int | None) -> list[tuple[Any, ...]]:
        self._require_rows()
        if self._rows is None:
            assert self._batches is not None
            self._rows = _rows(self._batches)
        with pep_errors():
            return list(islice(self._rows, size))

    def _require_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection.require_open()

    def _require_rows(self) -> None:
        self._require_open()
        if self.description is None:
            raise ProgrammingError("there are no rows to fetch: execute a query first")


# Not methods: a generator that knew its cursor would keep it, and the versions it holds, from being freed.


def _batches(answer: Relation) -> Generator[pa.RecordBatch]:
    with pep_errors():
        yield from answer.to_batches()


def _rows(batches: Iterator[pa.RecordBatch]) -> Generator[tuple[Any, ...]]:
    for each in batches:
        yield from python_rows(each)
