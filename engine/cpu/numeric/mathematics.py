"""Functions of floating-point numbers, and of integers that are no arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    boolean_column,
    compute,
    constant,
    convert,
    from_values,
    operand,
    stored_values,
    take,
    valid_rows,
)
from bamquery.engine.cpu.numeric.rounding import round_decimals_toward
from bamquery.engine.cpu.value_kernels import per_value, python_value
from bamquery.errors import ExecutionError

_MOST_FACTORIAL: Final = 33
_FACTORIALS: Final = [Decimal(math.factorial(n)) for n in range(_MOST_FACTORIAL + 1)]


def _floats(function: Callable[..., NDArray[Any]]) -> Implementation:
    """A function of numpy's."""

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        with np.errstate(all="ignore"):
            found = function(*(operand(argument) for argument in arguments))
        return from_values(found, kind, valid_rows(*arguments))

    return apply


def _round_to_even(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The next even number away from zero."""
    away = np.ceil(np.abs(values))
    away = np.where(np.fmod(away, 2) == 1, away + 1, away)
    return np.copysign(away, values)


def _gamma(value: float) -> float:
    if value == 0:
        return math.copysign(math.inf, value)
    try:
        return math.gamma(value)
    except OverflowError:  # below 0 but next to it, the other way
        return math.copysign(math.inf, value)
    except ValueError:  # at the poles and at -inf
        return math.nan


def _lgamma(value: float) -> float:
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):
        return math.inf


def _float_test(test: Callable[..., NDArray[np.bool_]]) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        (column,) = arguments
        assert isinstance(column, pa.Array)
        found = boolean_column(test(stored_values(column)))
        if not column.null_count:
            return found
        return compute("if_else", compute("is_valid", column), found, constant(None, kind))

    return apply


def _sign(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    (column,) = arguments
    assert isinstance(column, pa.Array)
    values = stored_values(column)
    return from_values((values > 0).astype(np.int8) - (values < 0).astype(np.int8), kind, valid_rows(column))


def _to_digits(floats: Callable[[NDArray[Any]], NDArray[Any]], mode: str) -> Implementation:
    """Numbers with so many digits after the point, cut or rounded in some way."""

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        column, count = arguments
        assert isinstance(column, pa.Array)
        digits: int = python_value(count)
        if pa.types.is_floating(kind):
            return from_values(_scale_digits(stored_values(column), digits, floats), kind, valid_rows(column))
        if pa.types.is_integer(kind):
            column = convert(column, pa.decimal128(20, 0))
        try:
            return convert(round_decimals_toward(column, digits, mode), kind)
        except pa.ArrowInvalid:
            raise ExecutionError(
                f"{type_name(kind)} overflow: rounding to {digits} digits gives more than it holds"
            ) from None

    return apply


def _scale_digits(
    values: NDArray[Any], digits: int, floats: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    if digits == 0:
        return floats(values)
    with np.errstate(all="ignore"):
        unit = np.float64(10.0) ** abs(digits)
        if digits < 0:
            cut = floats(values / unit) * unit
            cut = np.where(np.isfinite(cut), cut, 0.0 if np.isinf(unit) else values)
        else:
            cut = floats(values * unit) / unit
            cut = np.where(np.isfinite(cut), cut, values)
    return cut.astype(values.dtype)


def _integers(
    name: str, fast: Callable[..., NDArray[np.int64]], exact: Callable[[int, int], int]
) -> Implementation:
    """Of two BIGINTs by numpy where nothing can overflow, else exactly, one by one."""

    def one(a: int | Decimal, b: int | Decimal, low: int, high: int) -> int:
        found = exact(int(a), int(b))
        if not low <= found <= high:
            raise ValueError(f"{name}({a}, {b}) is out of range")
        return found

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        if pa.types.is_integer(kind):
            sides: list[Any] = [operand(argument) for argument in arguments]
            # Products of what is below this fit.
            if all(np.all((side < 2**31) & (side > -(2**31))) for side in sides):
                return from_values(np.asarray(fast(*sides)), kind, valid_rows(*arguments))
        low, high = integer_range(kind)
        return per_value(lambda a, b: one(a, b, low, high))(arguments, kind)

    return apply


def _factorial(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    (column,) = arguments
    assert isinstance(column, pa.Array)
    if column.null_count < len(column):
        extremes: Any = pc.min_max(column).as_py()
        low, high = extremes["min"], extremes["max"]
        if low < 0:
            raise ExecutionError(f"the factorial of a negative number, {low}, is undefined")
        if high > _MOST_FACTORIAL:
            raise ExecutionError(f"the factorial of {high} is out of range: {_MOST_FACTORIAL} is the last")
    factorials: Column = pa.array(_FACTORIALS, kind)
    return take(factorials, column)


def _broadcast_constants(kernel: Implementation) -> Implementation:
    """The kernel with all constants made columns, as numpy's functions of two columns want them."""

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = next(len(a) for a in arguments if isinstance(a, pa.Array))
        return kernel([as_column(argument, rows) for argument in arguments], kind)

    return apply


def _nan_on_error(function: Callable[[float], float]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda values: np.array([function(value) for value in values.tolist()], np.float64)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "cbrt": _floats(np.cbrt),
        "log2": _floats(np.log2),
        "log10": _floats(np.log10),
        "sin": _floats(np.sin),
        "cos": _floats(np.cos),
        "tan": _floats(np.tan),
        "asin": _floats(np.arcsin),
        "acos": _floats(np.arccos),
        "atan": _floats(np.arctan),
        "cot": _floats(lambda values: 1.0 / np.tan(values)),
        "sinh": _floats(np.sinh),
        "cosh": _floats(np.cosh),
        "tanh": _floats(np.tanh),
        "asinh": _floats(np.arcsinh),
        "acosh": _floats(np.arccosh),
        "atanh": _floats(np.arctanh),
        "atan2": _broadcast_constants(_floats(np.arctan2)),
        "nextafter": _broadcast_constants(_floats(np.nextafter)),
        "even": _floats(_round_to_even),
        "gamma": _floats(_nan_on_error(_gamma)),
        "lgamma": _floats(_nan_on_error(_lgamma)),
        "sign": _sign,
        "isnan": _float_test(np.isnan),
        "isinf": _float_test(np.isinf),
        "isfinite": _float_test(np.isfinite),
        "signbit": _float_test(np.signbit),
        "trunc": _to_digits(np.trunc, "towards_zero"),
        "round_even": _to_digits(np.rint, "half_to_even"),
        "gcd": _broadcast_constants(_integers("gcd", np.gcd, math.gcd)),
        "lcm": _broadcast_constants(_integers("lcm", np.lcm, math.lcm)),
        "factorial": _factorial,
    }
)
