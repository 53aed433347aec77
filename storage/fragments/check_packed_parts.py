"""Holds what a vectors file says of the parts of packed vectors against these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.parts import PARTS

if TYPE_CHECKING:
    from bamquery.storage.fragments.fragment import Fragment


def damaged_packed_part(
    fragment: Fragment, column: str, vectors: NDArray[np.int64], reader: MappedReader
) -> CorruptionError | None:
    """The first of those vectors' parts that has other bytes, or values that are not within its bounds."""
    parts, stored = fragment.packed_parts(column), fragment.column(column)
    if parts is None:
        return None
    assert isinstance(stored, PackedColumn)
    found = stored.read_packed(reader, vectors, ReadCounters(), verify=False).find_parts()
    # Bounds may be wider than values are. A part without values is within any.
    valued = found.lows <= found.highs
    outside = valued & ((parts.lows[vectors] > found.lows) | (parts.highs[vectors] < found.highs))
    changed = parts.checksums[vectors] != found.checksums
    behind = parts.escape_checksums[vectors] != found.escape_checksums
    for number in np.flatnonzero((outside | changed).any(axis=1) | behind):
        vector = int(vectors[number])
        for part in range(PARTS):
            if changed[number, part]:
                return _error(
                    fragment, column, vector, f"part {part} of its codes does not match its checksum"
                )
            if outside[number, part]:
                return _error(fragment, column, vector, f"part {part} has values outside of its bounds")
        return _error(fragment, column, vector, "what is behind its codes does not match its checksum")
    return None


def _error(fragment: Fragment, column: str, vector: int, what: str) -> CorruptionError:
    return CorruptionError(f'column "{column}", vector {vector}: {what}', fragment.path)
