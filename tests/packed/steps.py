"""What bounds of packed vectors' parts mean, in Python's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.packed.parameters import DECIMAL, FLOAT32, INTEGER, RAW

PART_ROWS = 128
PARTS = 8
LAST_STEP = 255


def has_parts(vector: Any) -> bool:
    """Whether a vector with these parameters (PACKED_VECTOR) has parts."""
    return int(vector["exponent_form"]) >> 5 != RAW and int(vector["bits"]) >= 8


def first_special(vector: Any) -> int:
    """The first code that is no ordinary one."""
    special = int(vector["escapes_nulls"])
    return (1 << int(vector["bits"])) - (special & 0x3FFF) - (special >> 15)


def code_value(vector: Any, code: int, dtype: Any, scale: tuple[int, int]) -> Any:
    """The value of an ordinary code: a number, or None where it is none that the type has."""
    form, exponent = int(vector["exponent_form"]) >> 5, int(vector["exponent_form"]) & 31
    number = int(vector["base"]) + code
    kind = np.dtype(dtype)
    if form == DECIMAL:
        return kind.type(np.float64(number) / np.float64(10**exponent))
    if form == FLOAT32:
        if number >= 1 << 32:
            return None
        bits = number ^ 0x80000000 if number & 0x80000000 else number ^ 0xFFFFFFFF
        return kind.type(np.array(bits, np.uint32).view(np.float32))
    limits = np.iinfo(kind)
    if form == INTEGER:
        origin = scale[1] if kind.kind == "u" or scale[1] < 1 << 63 else scale[1] - (1 << 64)
        number = number * scale[0] + origin
    elif kind == np.uint64:
        number %= 1 << 64
    return number if limits.min <= number <= limits.max else None


def ordered_codes(vector: Any, dtype: Any, scale: tuple[int, int]) -> int:
    """How many codes from 0 on have values."""
    low, high = 0, first_special(vector)
    while low < high:
        middle = (low + high) // 2
        if code_value(vector, middle, dtype, scale) is None:
            high = middle
        else:
            low = middle + 1
    return low


def step_range(vector: Any, low: int, high: int, dtype: Any, scale: tuple[int, int]) -> tuple[Any, Any]:
    """The values that a part from step `low` to step `high` may have; None: no bound, and NaN is possible."""
    shift = int(vector["bits"]) - 8
    ordered = ordered_codes(vector, dtype, scale)
    escapes = bool(int(vector["escapes_nulls"]) & 0x3FFF)
    least = greatest = None
    if ordered and not (low == 0 and escapes):
        least = code_value(vector, min(low << shift, ordered - 1), dtype, scale)
    if ordered and not (high == LAST_STEP and escapes):
        greatest = code_value(vector, min(((high + 1) << shift) - 1, ordered - 1), dtype, scale)
        greatest = greatest if greatest == greatest else None  # noqa: PLR0124 - NaN is above all
    return least, greatest


def misplaced_part(
    vector: Any, bounds: Any, values: NDArray[Any], valid: NDArray[np.bool_], scale: tuple[int, int]
) -> int | None:
    """The first part of a vector that has a value outside of its bounds, steps of shape (2, PARTS)."""
    lows, highs = bounds
    for part in range(PARTS):
        rows = slice(part * PART_ROWS, (part + 1) * PART_ROWS)
        found = values[rows][valid[rows]]
        if not len(found):
            continue
        low, high = int(lows[part]), int(highs[part])
        if low > high:
            return part
        if not has_parts(vector):
            if (low, high) != (0, LAST_STEP):
                return part
            continue
        least, greatest = step_range(vector, low, high, values.dtype, scale)
        if least is not None and (found < least).any():
            return part
        if greatest is not None and not (found <= greatest).all():  # NaN is above all
            return part
    return None
