"""The seam between what a fragment is made of and who writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bamquery.errors import CancelledError, StorageError


class RowSource(Protocol):
    """What a fragment is made of."""

    @property
    def rows(self) -> int:
        """Exact number of rows."""
        ...

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of one column in row order, of any length, together `rows` long.

        Called once per column, in any order; in plain files twice for dictionary columns, with the same
        values.
        """
        ...


def column_chunks(source: RowSource, index: int, cancelled: Callable[[], bool]) -> Iterator[pa.Array[Any]]:
    """Those of one column, of exactly so many rows as the source says.

    Raises:
        CancelledError: `cancelled` said so before a chunk.
        ValueError: they have more rows, or fewer.
    """
    rows = 0
    for chunk in source.column(index):
        if cancelled():
            raise CancelledError("the writing of a fragment was cancelled")
        rows += len(chunk)
        if rows > source.rows:
            break
        yield chunk
    if rows != source.rows:
        raise ValueError(f"{rows} rows instead of {source.rows}")


def require_type(chunk: pa.Array[Any], type_: pa.DataType) -> None:
    """Raise a ValueError unless the chunk has that type."""
    if chunk.type != type_:
        raise ValueError(f"{len(chunk)} rows of {chunk.type} in a column of {type_}")


@contextmanager
def name_column_in_errors(column: str, path: Path | None) -> Iterator[None]:
    """Values that do not fit are the source's fault: say which column."""
    try:
        yield
    except (ValueError, IndexError, pa.ArrowException) as error:
        raise StorageError(f'column "{column}" cannot be written: {error}', path) from error
