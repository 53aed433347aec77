"""About how many distinct values a column has: from some of its vectors, or from its dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader

_SAMPLED_VECTORS: Final = 64
"""Vectors that are looked at, evenly over all rows."""


def distinct_estimate(fragments: Sequence[Fragment], column: str) -> tuple[int, bool]:
    """How many distinct values there are beside NULL, and whether that is exact.

    Exact where dictionaries say it or the sample is all there is. Otherwise by Haas and Stokes, "Estimating
    the number of classes in a finite population" (1998), Duj1, as PostgreSQL's ANALYZE:
    d / (1 - (1 - q) f1 / n) where n values, a share q of all, have d distinct ones, f1 of which occur once.
    Fragments must have the column.

    Raises:
        CorruptionError, StorageError: the column cannot be read.
    """
    listed = _dictionary_values(fragments, column)
    if listed is not None:
        return listed, True
    sample = _sample(fragments, column)
    total = sum(fragment.rows for fragment in fragments)
    if sample is None:
        return 0, True
    looked_at, values = len(sample), sample.drop_null()
    counts = pc.value_counts(values).field("counts").to_numpy(zero_copy_only=False)
    if looked_at == total or not len(counts):
        return len(counts), looked_at == total
    share = looked_at / total
    once = int(np.count_nonzero(counts == 1))
    found = len(counts) / (1.0 - (1.0 - share) * once / len(values))
    return min(round(found), round(len(values) / share)), False


def _dictionary_values(fragments: Sequence[Fragment], column: str) -> int | None:
    """As many as dictionaries have, all of them in use; None where not all fragments have one."""
    layouts = [fragment.layout.columns[fragment.column_index(column)] for fragment in fragments]
    if not layouts or any(layout.dictionary is None for layout in layouts):
        return None
    values: list[Any] = []
    for fragment in fragments:
        blocks = MappedReader(fragment.path, fragment.data_bytes)
        try:
            values.append(fragment.dictionary(column, blocks, ReadCounters()))
        finally:
            blocks.close()
    return len(pc.unique(pa.chunked_array(values)))


def _sample(fragments: Sequence[Fragment], column: str) -> Any:
    """Values of the sampled vectors, end to end; None where there are no rows."""
    total = sum(fragment.vector_count for fragment in fragments)
    if not total:
        return None
    wanted = np.unique(np.linspace(0, total - 1, _SAMPLED_VECTORS).round().astype(np.int64))
    arrays: list[pa.Array[Any]] = []
    first = 0
    for fragment in fragments:
        low, high = np.searchsorted(wanted, [first, first + fragment.vector_count])
        if low < high:
            arrays.append(_read(fragment, column, wanted[low:high] - first))
        first += fragment.vector_count
    return pa.concat_arrays(arrays)


def _read(fragment: Fragment, column: str, vectors: Any) -> Any:
    blocks = MappedReader(fragment.path, fragment.data_bytes)
    try:
        found: Any = FragmentReader(fragment, blocks).stream(column, vectors, ReadCounters())
    finally:
        blocks.close()
    assert len(found) <= len(vectors) * VECTOR_ROWS
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
