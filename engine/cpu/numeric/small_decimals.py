"""Decimals whose unscaled values and results fit 64 bits: nearly all, and several times quicker than in 128.

Types do not tell: the product of two prices is a type of 30 digits and more. So the values are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.frame_memo import memoize, recall
from bamquery.engine.cpu.kernels import Column, Datum, Kind, as_column, from_buffer, stored_values, valid_rows

_DIGITS: Final = 18
"""Digits that always fit 64 bits."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def small_values(column: Column) -> tuple[NDArray[np.int64], int] | None:
    """Unscaled values, anything where null, and a bound of their absolute values; None if 64 bits are few."""
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(len(column), np.int64), 0
    return memoize(
        _key(buffer, column.offset, len(column)), buffer, lambda: _compute_small_values(column, buffer)
    )


def known_small_values(column: Column) -> NDArray[np.int64] | None:
    """The unscaled values in 64 bits where they were looked for in this frame, and found; else None."""
    buffer = column.buffers()[1]
    found = None if buffer is None else recall(_key(buffer, column.offset, len(column)))
    return None if found is None else found[0]


def _compute_small_values(column: Column, buffer: pa.Buffer) -> tuple[NDArray[np.int64], int] | None:
    start, length = 16 * column.offset, 2 * len(column)
    words: NDArray[np.int64] = np.frombuffer(memoryview(buffer), np.int64, count=length, offset=start)
    # A copy without gaps takes less time than it saves.
    low, high = np.ascontiguousarray(words[::2]), words[1::2]
    if not len(low):
        return low, 0
    least, greatest = int(low.min()), int(low.max())
    if least == _SMALLEST:
        return None  # it has no absolute value
    kind: Kind = column.type
    if kind.precision > _DIGITS or column.null_count:  # a null may hide anything
        signs_fit = not high.any() if least >= 0 else bool((high == low >> 63).all())
        if not signs_fit:
            return None
    return low, max(greatest, -least)


def arithmetic(name: str, arguments: Sequence[Datum], kind: Kind) -> Column | None:
    """The sum, difference or product; None where it, or what leads to it, may not fit 64 bits or the type."""
    operands = []
    bounds = []
    for argument in arguments:
        if not pa.types.is_decimal128(argument.type) or not (
            isinstance(argument, pa.Array) or argument.is_valid
        ):
            return None
        found = small_values(argument if isinstance(argument, pa.Array) else as_column(argument, 1))
        if found is None:
            return None
        operands.append(found[0])
        bounds.append(found[1])
    if name == "multiply":
        limit = bounds[0] * bounds[1]
    else:
        scale = max(argument.type.scale for argument in arguments)
        for place, argument in enumerate(arguments):
            factor = 10 ** (scale - argument.type.scale)
            if max(bounds[place], 1) * factor > _LARGEST:
                return None
            bounds[place] *= factor
            if factor > 1:
                operands[place] = operands[place] * factor
        limit = sum(bounds)
    if limit > _LARGEST or limit >= 10**kind.precision:
        return None
    return from_small(_FUNCTIONS[name](*operands), kind, valid_rows(*arguments), limit)


def rescale(column: Column, kind: Kind) -> Column | None:
    """The same numbers under a type of no smaller scale; None where that may not fit 64 bits or the type."""
    own: Kind = column.type
    if own.scale == kind.scale and own.precision <= kind.precision:
        buffers = column.buffers()
        return pa.Array.from_buffers(kind, len(column), buffers, -1, column.offset)
    found = small_values(column)
    if found is None:
        return None
    return _scale(*found, kind.scale - own.scale, kind, valid_rows(column))


def from_integers(column: Column, kind: Kind) -> Column | None:
    """Integers as decimals; None where they may not fit 64 bits or the type."""
    values = stored_values(column)
    bound = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if bound > _LARGEST:
        return None
    return _scale(values.astype(np.int64, copy=False), bound, kind.scale, kind, valid_rows(column))


def _scale(
    values: NDArray[np.int64], bound: int, digits: int, kind: Kind, validity: Column | None
) -> Column | None:
    factor = 10**digits
    if max(bound, 1) * factor > _LARGEST or bound * factor >= 10**kind.precision:
        return None
    return from_small(values * factor if factor > 1 else values, kind, validity)


def from_small(
    values: NDArray[np.int64],
    kind: pa.DataType,
    validity: Column | None = None,
    bound: int | None = None,
) -> Column:
    """A decimal128 column of unscaled values, which must fit its precision.

    `bound`: of their absolute values, even where null, for whoever asks for small values of the column.
    """
    if len(values) and values.min() >= 0:
        words = np.zeros((len(values), 2), np.int64)
    else:
        words = np.empty((len(values), 2), np.int64)
        np.right_shift(values, 63, out=words[:, 1])
    words[:, 0] = values
    buffer = pa.py_buffer(words.data)
    if bound is not None:
        memoize(_key(buffer, 0, len(values)), buffer, lambda: (values, bound))
    return from_buffer(buffer, len(values), kind, validity)


def _key(buffer: pa.Buffer, offset: int, rows: int) -> tuple[object, ...]:
    return ("small", buffer.address, offset, rows)


_FUNCTIONS: Final[dict[str, Callable[..., NDArray[Any]]]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
}
