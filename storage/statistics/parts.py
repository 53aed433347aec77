"""Parts of vectors: bounds and checksums of 128 rows each, so that a reader needs not take all of a vector.

Of plain columns only those have them whose part fills at least a block of 512 bytes: numbers of 32 or 64
bits, and dates, times and timestamps, which are such numbers. `packed_parts` has those of packed columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS, Extent

PART_ROWS: Final = 128
PARTS: Final = VECTOR_ROWS // PART_ROWS
"""Of a vector."""
_WIDTHS: Final = (32, 64)
_AT_ONCE: Final = 256
"""Parts whose bounds are computed together."""


def has_parts(kind: Any) -> bool:
    """Whether plain columns of this type, as a schema has it, have parts."""
    ordered = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    return ordered and kind.bit_width in _WIDTHS


@dataclass(frozen=True)
class PartStatistics:
    """Of some consecutive vectors, PARTS of each.

    Attributes:
        minima: of values that are neither null nor NaN, as they are stored; anything where there is none.
        maxima: the same.
        known: whether there is such a value.
        crcs: CRC-32C of the values as they are stored; 0 where a part has no rows.
    """

    minima: NDArray[Any]
    maxima: NDArray[Any]
    known: NDArray[np.bool_]
    crcs: NDArray[np.uint32]


def part_statistics(
    kind: str, values: memoryview, validity: NDArray[np.uint8] | None, rows: int
) -> PartStatistics:
    """Statistics of whole vectors, but for the last; arguments as `_native.vector_statistics` takes them."""
    numbers = np.frombuffer(values, kind, rows)
    crcs = _native.strided_crcs(view(numbers), PART_ROWS * numbers.itemsize)
    valid = None
    if validity is not None:
        valid = np.unpackbits(validity[: -(-rows // 8)], count=rows, bitorder="little").view(np.bool_)
    missing = -rows % VECTOR_ROWS
    if missing:
        numbers = np.concatenate([numbers, np.zeros(missing, numbers.dtype)])
        valid = np.concatenate([np.ones(rows, np.bool_) if valid is None else valid, np.zeros(missing, bool)])
        crcs = np.concatenate([crcs, np.zeros(len(numbers) // PART_ROWS - len(crcs), np.uint32)])
    parts = numbers.reshape(-1, PART_ROWS)
    nulls = None if valid is None else ~valid.reshape(-1, PART_ROWS)
    # In slices that stay in the processor's cache, and so does what is made of them.
    found = [
        _bounds(parts[at : at + _AT_ONCE], None if nulls is None else nulls[at : at + _AT_ONCE])
        for at in range(0, len(parts), _AT_ONCE)
    ]
    minima, maxima, known = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    return PartStatistics(minima, maxima, known, crcs)


def _bounds(
    parts: NDArray[Any], nulls: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Smallest and greatest value of each part, and whether there is one."""
    lows = highs = parts
    known: NDArray[np.bool_] = np.ones(len(parts), np.bool_)
    floats = parts.dtype.kind == "f"
    if nulls is not None and nulls.any():
        least, greatest = -np.inf, np.inf
        if not floats:
            least, greatest = np.iinfo(parts.dtype).min, np.iinfo(parts.dtype).max
        lows = np.where(nulls, parts.dtype.type(greatest), parts)
        highs = np.where(nulls, parts.dtype.type(least), parts)
        known &= ~nulls.all(axis=1)
    with np.errstate(invalid="ignore"):  # NaN
        minima, maxima = np.minimum.reduce(lows, axis=1), np.maximum.reduce(highs, axis=1)
        again = np.flatnonzero(np.isnan(minima)) if floats else np.empty(0, np.int64)
        if len(again):
            # Not fmin and fmax: on processors with AVX-512 they lose values beside a signalling NaN.
            missing = np.isnan(parts[again])
            infinity = parts.dtype.type(np.inf)
            minima[again] = np.minimum.reduce(np.where(missing, infinity, lows[again]), axis=1)
            maxima[again] = np.maximum.reduce(np.where(missing, -infinity, highs[again]), axis=1)
            known[again] = ~(missing if nulls is None else missing | nulls[again]).all(axis=1)
    return minima, maxima, known


def part_columns(kind: pa.DataType, found: Sequence[PartStatistics]) -> dict[str, Any]:
    """What the vectors file has of a column's parts: three lists of PARTS for each vector."""
    if not found:
        bounds: Any = pa.array([], kind)
        return {
            "part_min": _lists(bounds),
            "part_max": _lists(bounds),
            "part_crc": _lists(pa.array([], pa.uint32())),
        }
    known = np.concatenate([one.known for one in found])
    bitmap = None if known.all() else pa.py_buffer(view(np.packbits(known, bitorder="little")))

    def concatenate_bounds(pieces: list[NDArray[Any]]) -> Any:
        # What is not known is zero, so that the same rows make the same file.
        joined = np.where(known, np.concatenate(pieces), pieces[0].dtype.type(0))
        return pa.Array.from_buffers(kind, len(joined), [bitmap, pa.py_buffer(view(joined))])

    return {
        "part_min": _lists(concatenate_bounds([one.minima for one in found])),
        "part_max": _lists(concatenate_bounds([one.maxima for one in found])),
        "part_crc": _lists(pa.array(np.concatenate([one.crcs for one in found]))),
    }


def is_of_parts(name: str) -> bool:
    """Whether a member of a column's statistics is about its parts, plain or packed."""
    return name.startswith("part_") or name == "escapes_crc"


def part_types(kind: pa.DataType) -> dict[str, pa.DataType]:
    """The types of `part_columns`."""
    return {
        "part_min": pa.list_(kind, PARTS),
        "part_max": pa.list_(kind, PARTS),
        "part_crc": pa.list_(pa.uint32(), PARTS),
    }


@dataclass(frozen=True)
class Parts:
    """The parts of one plain column of one fragment, PARTS of each vector, those behind the last row too.

    Attributes:
        minimum: of values that are neither null nor NaN; null where there is none. An Arrow array.
        maximum: the same.
        checksums: CRC-32C of the values as they are stored; 0 where a part has no rows.
    """

    minimum: Any
    maximum: Any
    checksums: NDArray[np.uint32]

    @classmethod
    def from_statistics(cls, statistics: Any) -> Parts:
        """Those of a column's statistics, which has some."""
        minimum, maximum = part_values(statistics, "part_min"), part_values(statistics, "part_max")
        return cls(minimum, maximum, part_values(statistics, "part_crc").to_numpy())


def part_ranges(extent: Extent, bits: int, parts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Offsets and lengths of parts, numbered through a buffer with `bits` bits a row."""
    size = PART_ROWS * bits // 8
    offsets = parts * size
    return extent.offset + offsets, np.minimum(extent.length - offsets, size)


def part_values(statistics: Any, name: str) -> Any:
    """One of `part_columns` of a column's statistics, end to end: an Arrow array of PARTS for each vector."""
    return statistics.field(name).flatten()


def _lists(values: Any) -> Any:
    return pa.FixedSizeListArray.from_arrays(values, PARTS)
