"""Rows that a client sends: values for parameters, or what goes into a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final, Literal

import pyarrow as pa
from pyarrow import flight

from bamquery.errors import CatalogError
from bamquery.flight.metadata import SCHEMA_NAME, catalog_name
from bamquery.flight.statement_runner import Statements

_FAIL_IF_MISSING: Final = 2
_APPEND: Final = 2
_REPLACE: Final = 3
"""Numbers of the command's two choices, for a table that is not there and for one that is."""
_MOMENT: Final = 0.02


class Upload:
    """Batches of one call, in order; an iterator."""

    def __init__(self, reader: Any, context: Any) -> None:
        """From the call's reader; nothing is read yet."""
        self._reader, self._context = reader, context

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        while True:
            try:
                batch: pa.RecordBatch | None = self._reader.read_chunk().data
            except StopIteration:
                self._require_client()
                raise
            if batch is not None:
                return batch

    def reader(self) -> pa.RecordBatchReader:
        """The same, with their schema."""
        return pa.RecordBatchReader.from_batches(self._reader.schema, self._iterate_to_end())

    def _iterate_to_end(self) -> Iterator[pa.RecordBatch]:
        yield from self
        # That a stream has ended may be known a moment before that it was broken off.
        time.sleep(_MOMENT)
        self._require_client()

    def _require_client(self) -> None:
        """Refuse an end that is none: a client that goes away looks like one that is done."""
        if self._context.is_cancelled():
            raise flight.FlightCancelledError("the client left before all rows had come")


def ingestion_mode(command: Any, statements: Statements) -> Literal["error", "append", "replace"]:
    """What is to be done where there is such a table.

    Raises:
        NotImplementedError: it is to be a temporary one, or in another schema or database.
        CatalogError: there is none, and none is to be made.
        ValueError: the command does not say what to do.
    """
    if command.temporary:
        raise NotImplementedError("there are no temporary tables")
    if command.schema not in ("", SCHEMA_NAME):
        raise NotImplementedError(f'there is no schema "{command.schema}": tables are in "{SCHEMA_NAME}"')
    if command.catalog not in ("", catalog_name(statements)):
        raise NotImplementedError(
            f'there is no catalog "{command.catalog}": this is "{catalog_name(statements)}"'
        )
    if not command.table:
        raise ValueError("the command names no table")
    options = command.table_definition_options
    if options.if_not_exist == _FAIL_IF_MISSING and not statements.database.has_table(command.table):
        raise CatalogError(f'there is no table "{command.table}"')
    if options.if_exists == _APPEND:
        return "append"
    return "replace" if options.if_exists == _REPLACE else "error"
