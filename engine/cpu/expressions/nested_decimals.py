"""Sums, differences and products of decimals nested in each other, computed in 64 bits from end to end.

What is between the columns and the result needs no 128 bits, and no look at its values: bounds of the
columns' values give bounds of all that is computed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, Datum, Kind, as_column, valid_rows
from bamquery.engine.cpu.numeric.small_decimals import from_small, small_values
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

_LARGEST: Final = 2**63 - 1
_FUNCTIONS: Final[dict[str, Callable[..., NDArray[np.int64]]]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
}


@dataclass(frozen=True, slots=True)
class _Small:
    """Unscaled values (one for all rows, or one each), and a bound of their absolute values."""

    values: NDArray[np.int64]
    bound: int


def is_nested(expression: Expression) -> bool:
    """Whether it is arithmetic of decimals with such arithmetic in it."""
    return _is_arithmetic(expression) and any(map(_has_arithmetic, _parts(expression)))


def evaluate_nested(expression: Expression, batch: pa.RecordBatch) -> Column | None:
    """The expression's values; None where 64 bits may not hold them, or what leads to them."""
    columns: list[Datum] = []
    small = _small_values(expression, batch, columns)
    if small is None or small.values.shape == ():
        return None
    return from_small(small.values, expression.type, valid_rows(*columns), small.bound)


def _parts(expression: Expression) -> Sequence[Expression]:
    match expression:
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument):
            return (argument,)
        case _:
            return ()


def _is_arithmetic(expression: Expression) -> bool:
    return (
        isinstance(expression, Call)
        and expression.function in _FUNCTIONS
        and pa.types.is_decimal128(expression.type)
    )


def _has_arithmetic(expression: Expression) -> bool:
    return _is_arithmetic(expression) or (
        isinstance(expression, Cast) and _has_arithmetic(expression.argument)
    )


def _small_values(expression: Expression, batch: pa.RecordBatch, columns: list[Datum]) -> _Small | None:
    if not pa.types.is_decimal128(expression.type):
        return None
    match expression:
        case ColumnRef(index=index):
            columns.append(batch.column(index))
            return _from_small_values(small_values(batch.column(index)))
        case Literal(value=value) if value.is_valid:
            found = _from_small_values(small_values(as_column(value, 1)))
            return None if found is None else _Small(found.values[0], found.bound)
        case Cast(argument=argument, type=kind) if pa.types.is_decimal128(argument.type):
            return _rescale(_small_values(argument, batch, columns), argument.type, kind)
        case Call(function=name, arguments=(one, other), type=kind) if name in _FUNCTIONS:
            return _compute(name, (one, other), kind, batch, columns)
        case _:
            return None


def _compute(
    name: str, arguments: Sequence[Expression], kind: Kind, batch: pa.RecordBatch, columns: list[Datum]
) -> _Small | None:
    sides: list[_Small] = []
    for argument in arguments:
        side = _small_values(argument, batch, columns)
        if side is not None and name != "multiply":
            side = _scale(side, argument.type, kind.scale)
        if side is None:
            return None
        sides.append(side)
    left, right = sides
    bound = left.bound * right.bound if name == "multiply" else left.bound + right.bound
    if bound > _LARGEST:
        return None
    return _require_fit(_Small(_FUNCTIONS[name](left.values, right.values), bound), kind)


def _scale(small: _Small, own: Kind, scale: int) -> _Small | None:
    """The same numbers with no fewer digits behind the point."""
    digits = scale - own.scale
    if digits < 0 or max(small.bound, 1) * 10**digits > _LARGEST:
        return None
    return _Small(small.values * 10**digits, small.bound * 10**digits) if digits else small


def _rescale(small: _Small | None, own: Kind, kind: Kind) -> _Small | None:
    return None if small is None else _require_fit(_scale(small, own, kind.scale), kind)


def _require_fit(small: _Small | None, kind: Kind) -> _Small | None:
    return small if small is not None and small.bound < 10**kind.precision else None


def _from_small_values(found: tuple[Any, int] | None) -> _Small | None:
    return None if found is None else _Small(*found)
