"""Strings of Parquet files that are small there and large in memory: a dictionary's, each many times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bamquery.storage.ingest.parquet.footer import ColumnChunk

_SHORT: Final = 64
"""Bytes of strings on average that batches of any number of rows may have."""


def long_strings(
    probe: pq.ParquetFile, group: int, names: Sequence[str], rows: int, batch_bytes: int
) -> list[str]:
    """Columns to read as dictionaries: `rows` of their longest text are much more than a batch should be.

    Args:
        probe: the file, which gives columns as dictionaries where they have one.
        group: number of the row group.
        names: columns that may be read so.
        rows: of a batch.
        batch_bytes: that it should have.
    """
    first = next(iter(probe.iter_batches(batch_size=1, row_groups=[group], columns=list(names))), None)
    if first is None:
        return []
    found = []
    for name, column in zip(first.schema.names, first.columns, strict=True):
        if isinstance(column, pa.DictionaryArray) and len(column.dictionary):
            strings: Any = column.dictionary
            if strings.nbytes * rows <= batch_bytes:  # no text is longer than all of them
                continue
            longest = pc.max(pc.binary_length(strings)).as_py() or 0
            if longest > _SHORT and longest * rows > batch_bytes:
                found.append(name)
    return found


def may_blow_up(
    chunks: Iterable[tuple[str, ColumnChunk]], group_rows: int, rows: int, batch_bytes: int
) -> list[str]:
    """Columns of strings of which `rows` at once may be far more than what is stored of them.

    What is stored of a text is not more than what is stored of its column.

    Args:
        chunks: names of columns that may be read as dictionaries, and what is stored of them.
        group_rows: of the row group.
        rows: of a batch.
        batch_bytes: that it should have.
    """
    most = min(rows, group_rows)
    return [name for name, chunk in chunks if chunk.has_dictionary and chunk.bytes * most > batch_bytes]


def small_slices(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices whose strings are about `size` bytes at most where dictionaries are looked up."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray):
            sizes += _sizes(column)
    ends = np.cumsum(sizes)
    first = 0
    while first < batch.num_rows:
        before = ends[first - 1] if first else 0
        end = max(int(np.searchsorted(ends, before + size, "right")), first + 1)
        yield batch.slice(first, end - first)
        first = end


def _sizes(column: Any) -> Any:
    if not pa.types.is_large_unicode(kind := column.type.value_type) and not (
        pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    ):
        return 0
    lengths = pc.fill_null(pc.binary_length(column.dictionary).cast(pa.int64()), 0)
    return pc.fill_null(pc.take(lengths, column.indices), 0).to_numpy(zero_copy_only=False)
