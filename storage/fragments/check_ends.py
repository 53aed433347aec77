"""Compares the offsets that only Arrow reads with what they must be: no checksum is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters

if TYPE_CHECKING:
    from bamquery.storage.fragments.fragment import Fragment


def check_ends(fragment: Fragment, reader: BlockReader) -> Iterator[CorruptionError]:
    """What is wrong with the ends of payloads and lists."""
    vectors = np.arange(fragment.vector_count + 1, dtype=np.int64)
    layout = fragment.layout
    if layout.lists is not None:
        expected = np.minimum(vectors * VECTOR_ROWS, fragment.rows)
        yield from _compare(fragment, reader, layout.lists, expected, "ends of lists")
    for field, column in zip(fragment.schema, layout.columns, strict=True):
        if column.encoding is None:
            continue
        name = f'column "{field.name}", ends of its'
        try:
            stored = fragment.column(field.name)
        except CorruptionError as error:
            if error.path == fragment.path:
                yield error
            continue  # or what it should be compared with is what is damaged, which is said elsewhere
        assert isinstance(stored, (PackedColumn, FsstColumn))
        ends = np.append(stored.payload_starts, column.values.length)
        yield from _compare(fragment, reader, column.encoding.cells, ends, f"{name} payloads")
        if column.encoding.lists is not None and column.dictionary is not None:
            sizes = np.minimum(vectors, 1) * column.dictionary.size
            yield from _compare(fragment, reader, column.encoding.lists, sizes, f"{name} lists of values")


def _compare(
    fragment: Fragment, reader: BlockReader, extent: Extent, expected: NDArray[np.int64], what: str
) -> Iterator[CorruptionError]:
    place = np.array([extent.offset]), np.array([extent.length])
    found = np.frombuffer(view(reader.read_ranges(*place, ReadCounters())), np.int64)
    if not np.array_equal(found, expected):
        yield CorruptionError(f"{what}: they are not those of its vectors", fragment.path)
