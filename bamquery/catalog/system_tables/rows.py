"""Rows of the catalogue as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.catalog.system_tables.facts import CatalogFacts, RelationFacts

VARCHAR: Final = pa.large_string()
BIGINT: Final = pa.int64()
INTEGER: Final = pa.int32()
BOOLEAN: Final = pa.bool_()

NO_TAGS: Final = "{}"
"""The text of an empty map."""


def empty_table(subject: object) -> Iterable[Sequence[Any]]:
    """The rows of what BamQuery does not have."""
    return ()


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of the catalogue.

    Attributes:
        schema: its columns, which never change.
        rows: what makes its rows.
        rows_of: the same, of a table that is about one table or view.
    """

    schema: pa.Schema
    rows: Callable[[CatalogFacts], Iterable[Sequence[Any]]] = empty_table
    rows_of: Callable[[RelationFacts], Iterable[Sequence[Any]]] = empty_table


def batch_of(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows as one batch."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def columns(**kinds: pa.DataType) -> pa.Schema:
    """A schema by names."""
    return pa.schema(list(kinds.items()))


def string_columns(names: str) -> pa.Schema:
    """A schema of VARCHAR columns, their names with spaces between."""
    return pa.schema([(name, VARCHAR) for name in names.split()])


def concatenate_columns(*schemas: pa.Schema) -> pa.Schema:
    """One schema's columns after the other's."""
    return pa.schema([field for schema in schemas for field in schema])


def list_text(items: Iterable[str]) -> str:
    """The text of a list, as a cast of one to VARCHAR gives it."""
    return f"[{', '.join(items)}]"
