"""Zone maps as kernels read them: bounds as keys that order like the values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.predicates import value_c_type
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.parts import PARTS

ZONE: Final = np.dtype([("low", np.uint64), ("high", np.uint64), ("flags", np.uint64)])
"""A ScanZone (engine/kernels/scan_zones.hpp)."""
PART_ZONES: Final = np.dtype([("low", np.uint64, PARTS), ("high", np.uint64, PARTS)])
"""A ScanParts."""
PACKED_BOUNDS: Final = np.dtype([("low", np.uint8, PARTS), ("high", np.uint8, PARTS)])
"""A PackedPartBounds (storage/core/packed_parts.hpp)."""
_KNOWN: Final = 1
_NANS: Final = 2
_NULLS: Final = 4


def has_zones(kind: pa.DataType) -> bool:
    """Whether `zones_of` knows columns of the type: those whose keys have 64 bits at most."""
    return value_c_type(kind) is not None and not pa.types.is_decimal128(kind)


def zones_of(fragment: Fragment, column: str) -> NDArray[Any]:
    """A ZONE for each vector of a column of which `has_zones` is true."""
    zones = fragment.zone_map.column(column)
    found = np.zeros(len(zones.rows), ZONE)
    found["low"] = order_keys(zones.minimum)
    found["high"] = order_keys(zones.maximum)
    flags = ((zones.known, _KNOWN), (zones.nans > 0, _NANS), (zones.nulls > 0, _NULLS))
    found["flags"] = sum(np.where(true, flag, 0) for true, flag in flags)
    return found


def packed_bounds_of(fragment: Fragment, column: str) -> NDArray[Any]:
    """A PACKED_BOUNDS for each vector of a packed column that has parts."""
    parts = fragment.packed_parts(column)
    assert parts is not None
    found = np.zeros(len(parts.lows), PACKED_BOUNDS)
    found["low"], found["high"] = parts.lows, parts.highs
    return found


def part_zones_of(fragment: Fragment, column: str) -> NDArray[Any]:
    """A PART_ZONES for each vector of a plain column that has parts."""
    parts = fragment.parts(column)
    assert parts is not None
    known = parts.minimum.is_valid().to_numpy(zero_copy_only=False)
    found = np.zeros(len(known) // PARTS, PART_ZONES)
    none = ~np.uint64(0), np.uint64(0)
    for name, bound, nothing in zip(("low", "high"), (parts.minimum, parts.maximum), none, strict=True):
        found[name] = np.where(known, order_keys(bound), nothing).reshape(-1, PARTS)
    return found


def order_keys(values: Any) -> NDArray[np.uint64]:
    """Keys of an Arrow array of a fixed width, as `predicate.order_key` makes them; of nulls anything."""
    kind = values.type
    bits = 64 if kind.bit_width > 32 else 32
    sign, ones = np.uint64(1 << (bits - 1)), np.uint64((1 << bits) - 1)
    found: NDArray[np.uint64]
    if pa.types.is_floating(kind):
        numbers = _numbers(values)
        numbers = numbers + numbers.dtype.type(0)  # -0 becomes 0
        found = numbers.view(f"u{bits // 8}").astype(np.uint64)
        return np.where(found & sign != 0, found ^ ones, found | sign)
    if pa.types.is_boolean(kind):
        return _numbers(values.cast(pa.uint8())).astype(np.uint64)
    if not pa.types.is_integer(kind):
        values = values.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_unsigned_integer(kind):
        return _numbers(values).astype(np.uint64)
    found = _numbers(values).astype(np.int64).view(np.uint64)
    return (found & ones) ^ sign


def _numbers(values: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = values.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers
