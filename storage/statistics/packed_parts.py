"""Parts of packed vectors: bounds by steps of their codes, and checksums. See `parts`, which plain ones have.

A vector whose codes have b bits, at least 8, has 256 steps of 2^(b - 8) codes each. An escape belongs to the
step of the ordinary values next to it: the first is open below, the last above. Of narrower vectors a part is
too little to be read alone, and raw ones have no codes: they are read whole. A column in which most vectors
are of that kind has no parts at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.files.buffers import view
from bamquery.storage.statistics.parts import PARTS

LAST_STEP: Final = 255
LEAST_BITS: Final = 8
"""Of codes, in vectors that have parts."""


def may_have_packed_parts(kind: Any) -> bool:
    """Whether packed columns of this type, as a schema has it, may have parts."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


@dataclass(frozen=True)
class PackedParts:
    """The parts of some consecutive vectors, PARTS of each, those behind the last row too.

    Attributes:
        lows: the step in which each part begins, of shape (vectors, PARTS); of vectors without parts 0.
        highs: that in which it ends; of vectors without parts LAST_STEP. Below `lows` where a part has no
            value.
        checksums: CRC-32C of each part's codes, of the same shape; 0 in vectors without parts.
        escape_checksums: of what is behind each vector's codes; the same.
    """

    lows: NDArray[np.uint8]
    highs: NDArray[np.uint8]
    checksums: NDArray[np.uint32]
    escape_checksums: NDArray[np.uint32]

    @classmethod
    def from_native(cls, found: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]) -> PackedParts:
        """Those that `_native.packed_parts` returned."""
        bounds, checksums, escape_checksums = found
        return cls(bounds[:, 0], bounds[:, 1], checksums.reshape(-1, PARTS), escape_checksums)

    @classmethod
    def from_statistics(cls, statistics: Any) -> PackedParts:
        """Those of a column's statistics, which has some."""
        lows, highs, checksums = (
            statistics.field(name).flatten().to_numpy().reshape(-1, PARTS)
            for name in ("part_low", "part_high", "part_crc")
        )
        return cls(lows, highs, checksums, statistics.field("escapes_crc").to_numpy())

    @classmethod
    def concatenate(cls, pieces: Sequence[PackedParts]) -> PackedParts:
        """Those of all, which are at least one."""
        return cls(
            np.concatenate([one.lows for one in pieces]),
            np.concatenate([one.highs for one in pieces]),
            np.concatenate([one.checksums for one in pieces]),
            np.concatenate([one.escape_checksums for one in pieces]),
        )


def packed_part_columns(parts: PackedParts) -> dict[str, Any]:
    """What the vectors file has of a packed column's parts."""
    return {
        "part_low": _lists(parts.lows, pa.uint8()),
        "part_high": _lists(parts.highs, pa.uint8()),
        "part_crc": _lists(parts.checksums, pa.uint32()),
        "escapes_crc": _numbers(parts.escape_checksums, pa.uint32()),
    }


def packed_part_types() -> dict[str, pa.DataType]:
    """The types of `packed_part_columns`."""
    return {
        "part_low": pa.list_(pa.uint8(), PARTS),
        "part_high": pa.list_(pa.uint8(), PARTS),
        "part_crc": pa.list_(pa.uint32(), PARTS),
        "escapes_crc": pa.uint32(),
    }


def _lists(values: NDArray[Any], kind: pa.DataType) -> Any:
    return pa.FixedSizeListArray.from_arrays(_numbers(values.reshape(-1), kind), PARTS)


def _numbers(values: NDArray[Any], kind: pa.DataType) -> Any:
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(view(values))])
