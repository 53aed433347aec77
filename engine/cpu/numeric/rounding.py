"""round, floor and ceil. `round` goes half away from zero, in DuckDB's way for floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    compute,
    convert,
    from_values,
    nulls,
    stored_values,
    valid_rows,
)
from bamquery.engine.cpu.numeric.arithmetic import integer_range
from bamquery.errors import ExecutionError

_HALF_AWAY: Final = "half_towards_infinity"


def half_away_from_zero(values: NDArray[Any]) -> NDArray[Any]:
    """Nearest whole float; adding 0.5 instead would turn 0.49999999999999994 into 1."""
    whole = np.trunc(values)
    return np.asarray(whole + np.copysign(np.abs(values - whole) >= 0.5, values), values.dtype)


def _round_floats(column: Column, digits: int, kind: pa.DataType) -> Column:
    values = stored_values(column)
    with np.errstate(all="ignore"):
        unit = np.float64(10.0) ** abs(digits)
        if digits < 0:
            rounded = half_away_from_zero(values / unit) * unit
            rounded = np.where(np.isfinite(rounded), rounded, 0.0 if np.isinf(unit) else values)
        else:
            rounded = half_away_from_zero(values * unit) / unit
            rounded = np.where(np.isfinite(rounded), rounded, values)
    return from_values(rounded.astype(values.dtype), kind, valid_rows(column))


def _round_integers(column: Column, digits: int, kind: pa.DataType) -> Column:
    low, high = integer_range(kind)
    unit = 10 ** min(-digits, 20)
    # Widened to decimals: a 64-bit integer may round to more than it holds.
    options = pc.RoundOptions(ndigits=-min(-digits, 20), round_mode=_HALF_AWAY)
    wide = convert(column, pa.decimal256(40, 0))
    rounded = compute("round", wide, options=options)
    try:
        return convert(rounded, kind)
    except pa.ArrowInvalid:
        outside = pc.max(compute("abs", rounded)).as_py()
        raise ExecutionError(
            f"{type_name(kind)} overflow: rounding to multiples of {unit} gives {outside}, "
            f"which does not fit {low} to {high}"
        ) from None


def round_decimals(column: Column, digits: int) -> Column:
    """decimal128 or 256 rounded to so many digits after the point (before it, if below 0), as decimal256."""
    return round_decimals_toward(column, digits, _HALF_AWAY)


def round_decimals_toward(column: Column, digits: int, mode: str) -> Column:
    """As `round_decimals`, in one of Arrow's modes."""
    scale = column.type.scale
    wide = convert(column, pa.decimal256(76, scale))
    if digits >= scale:
        return wide
    options = pc.RoundOptions(ndigits=max(digits, -(75 - scale)), round_mode=mode)  # type: ignore[arg-type]
    return compute("round", wide, options=options)


def _round(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    column = arguments[0]
    assert isinstance(column, pa.Array)
    digits = arguments[1].as_py() if len(arguments) > 1 and isinstance(arguments[1], pa.Scalar) else 0
    if digits is None:
        return nulls(len(column), kind)
    if pa.types.is_integer(kind):
        return column if digits >= 0 else _round_integers(column, digits, kind)
    if pa.types.is_floating(kind):
        return _round_floats(column, digits, kind)
    try:
        return convert(round_decimals(column, digits), kind)
    except pa.ArrowInvalid:
        raise ExecutionError(
            f"{type_name(kind)} overflow: round of {type_name(column.type)} to {digits} digits"
        ) from None


def _round_toward(name: str) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        column = arguments[0]
        assert isinstance(column, pa.Array)
        if pa.types.is_integer(kind):
            return column
        if pa.types.is_decimal(kind):
            wide = convert(column, pa.decimal256(76, column.type.scale))
            return convert(compute(name, wide), kind)
        return compute(name, column)

    return apply


FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Datum], pa.DataType], Column]]] = MappingProxyType(
    {"round": _round, "floor": _round_toward("floor"), "ceil": _round_toward("ceil")}
)
