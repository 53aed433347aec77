"""Batches as files take them: without dictionaries, and with every name once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.text.identifiers import unique_names

_MOST_ROWS: Final = 8192


def small_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of few, whose values may all be Python's at once."""
    for batch in batches:
        for first in range(0, batch.num_rows, _MOST_ROWS):
            yield batch.slice(first, _MOST_ROWS)


def plain_batches(batches: Iterable[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches with a `plain_schema`."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([plain_column(column) for column in batch.columns], schema=target)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Without dictionaries, which may differ from batch to batch, and with every name once."""
    names = unique_names(schema.names)
    return pa.schema([pa.field(n, _value_type(f.type)) for n, f in zip(names, schema, strict=True)])


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """The plain schema, if a Parquet file can have it.

    Raises:
        BamQueryError: a column is an INTERVAL; says which.
    """
    for field in schema:
        if pa.types.is_interval(field.type):
            raise BamQueryError(
                f'column "{field.name}" is an INTERVAL, and Parquet files are written without: '
                "cast it to VARCHAR"
            )
    return plain_schema(schema)


def plain_column(column: pa.Array[Any]) -> pa.Array[Any]:
    """The column's values, looked up where it is a dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
