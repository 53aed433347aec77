"""The order of rows by given columns, and how much of a table can be put in order at once.

With N rows in the table, k bytes a row of the key columns, R rows a new fragment and w bytes a row of the
widest column, the memory of clustering is the larger of

    N (k + 16)               sorting: the keys, the order, and room to merge it in
    4 N + R (8 + 2 w)        gathering: the order, and what `PermutedRows` takes

and besides some 100 MB for pieces and what allocators keep. R is chosen so that the second stays within the
limit, since each new fragment reads all vectors that hold one of its rows: the more rows it has, the fewer
passes over the table. A fragment that must not have fewer rows, or whose rows are wider than others, gathers
columns part by part. Row numbers take 8 bytes each where there are 2^32 or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.errors import MemoryLimitError
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes
from bamquery.storage.fragments.rows import FragmentRows
from bamquery.storage.tables.manifest import MAX_FRAGMENT_ROWS

_FEWEST_ROWS: Final = 1 << 16
"""A fragment is made this large even where a column of it is gathered in several parts then."""
_LEAST_BYTES: Final = 16 << 20
"""Are gathered of a column even where that exceeds the limit a little."""


def sort_order(
    fragments: Sequence[Fragment], keys: Sequence[int], memory_limit: int, cancelled: Callable[[], bool]
) -> NDArray[Any]:
    """Row numbers, unsigned and counted over all fragments, in ascending order of the key columns.

    Equal rows keep their order; NaN is greater than every number and null comes last.

    Raises:
        MemoryLimitError: the keys do not fit; says how much they take.
        CorruptionError: a vector does not match its checksum. CancelledError: it was cancelled.
    """
    rows = sum(fragment.rows for fragment in fragments)
    bytes_needed = sort_bytes(fragments, keys)
    if bytes_needed > memory_limit:
        raise MemoryLimitError(
            f"clustering {rows:,} rows takes {bytes_needed:,} bytes for the sort columns and the order; "
            f"memory_limit is {memory_limit:,}: raise it, or cluster by fewer or narrower columns"
        )
    columns = [_whole_column(fragments, key, cancelled) for key in keys]
    table = pa.table(columns, names=[str(number) for number in range(len(keys))])
    # Stable, nulls and before them NaN at the end.
    order = pc.sort_indices(
        table,
        sort_keys=[(name, "ascending") for name in table.column_names],
        memory_pool=pa.system_memory_pool(),  # gives large pieces back at once; gathering wants them
    )
    del columns, table
    pa.default_memory_pool().release_unused()
    return order.to_numpy().astype(_row_number(rows), copy=False)


def sort_bytes(fragments: Sequence[Fragment], keys: Sequence[int]) -> int:
    """What `sort_order` takes."""
    rows = sum(fragment.rows for fragment in fragments)
    return 16 * rows + sum(column_bytes(f, key) for f in fragments for key in keys)


def rows_a_fragment(fragments: Sequence[Fragment], memory_limit: int) -> int:
    """How many rows a new fragment may have so that gathering it stays within the limit."""
    rows = sum(fragment.rows for fragment in fragments)
    columns = range(len(fragments[0].schema))
    widest = max(sum(column_bytes(fragment, column) for fragment in fragments) for column in columns)
    number = _row_number(rows).itemsize
    fitting = (memory_limit - number * rows) * rows // ((number + 4) * rows + 2 * widest)
    return min(max(fitting, _FEWEST_ROWS), MAX_FRAGMENT_ROWS)


def gathered_bytes(fragments: Sequence[Fragment], rows: int, memory_limit: int) -> int:
    """How much of a column a new fragment of so many rows may gather at once."""
    total = sum(fragment.rows for fragment in fragments)
    number = _row_number(total).itemsize
    return max((memory_limit - number * total - (number + 4) * rows) // 2, _LEAST_BYTES)


def _row_number(rows: int) -> np.dtype[Any]:
    return np.dtype(np.uint32 if rows < 1 << 32 else np.uint64)


def _whole_column(
    fragments: Sequence[Fragment], index: int, cancelled: Callable[[], bool]
) -> pa.ChunkedArray[Any]:
    chunks: list[Any] = [chunk for f in fragments for chunk in FragmentRows(f, cancelled).column(index)]
    if isinstance(chunks[0], pa.DictionaryArray):
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return pa.chunked_array(chunks)
