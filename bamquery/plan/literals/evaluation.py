"""Constant expressions to literals, exactly as a device would compute them.

What is not here, or would fail, is left to the device: a plan never fails because it was folded.
Other functions are folded once, by the CPU device, before any rule runs (`engine/constant_folding.py`). Rules
and binder know no engine and make constants of the functions here by the dozen, in microseconds each.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.assumptions import compute
from bamquery.plan.expressions import Call, Cast, Expression, Literal, transform
from bamquery.plan.literals.conversion import NotConvertedError, convert, count, from_count
from bamquery.plan.literals.scalars import scalar

_EXACT: Final = Context(prec=100)
_FLOATS: Final = {32: np.float32, 64: np.float64}

Scalar = Any  # a pyarrow.Scalar; its value as `_value` gives it is compared and computed with


def fold_expression(expression: Expression) -> Expression:
    """The expression with every constant part that is known replaced by its value."""
    return transform(expression, lambda node: evaluate(node) or node)


def evaluate(expression: Expression) -> Literal | None:
    """The literal that an expression over literals is, or None where that is not known.

    Children must be folded already: only one call or cast is looked at.
    """
    match expression:
        case Literal():
            return expression
        case Cast(argument=Literal() as argument, type=kind, try_=try_):
            return compute(partial(_cast, kind=kind, try_=try_), argument)
        case Call(function=function, arguments=arguments, type=kind) if function in _FUNCTIONS:
            literals = [argument for argument in arguments if isinstance(argument, Literal)]
            if len(literals) < len(arguments):
                return None
            if function in _NULL_IN_NULL_OUT and any(one.origin is None and one.is_null for one in literals):
                return Literal(scalar(None, kind))  # whatever the others are
            return compute(partial(_call, function, kind), *literals)
        case _:
            return None


def _call(function: str, kind: pa.DataType, *arguments: Literal) -> Literal | None:
    try:
        return Literal(_scalar(_FUNCTIONS[function]([one.value for one in arguments], kind), kind))
    except (ArithmeticError, ValueError, pa.ArrowInvalid):
        return None


def order_key(value: pa.Scalar[Any]) -> Any:
    """What values of one type compare by: NaN equals itself and is greater than every number; -0 = 0."""
    plain = _value(value)
    if isinstance(plain, float | np.floating):
        return (1, 0.0) if math.isnan(plain) else (0, plain)
    return plain


def _cast(argument: Literal, kind: pa.DataType, *, try_: bool) -> Literal | None:
    try:
        return Literal(convert(argument.value, kind))
    except NotConvertedError:
        return None
    except ValueError:
        return Literal(scalar(None, kind)) if try_ else None


def _value(value: pa.Scalar[Any]) -> Any:
    """The value in Python; dates and times as a count of their unit, floats of 32 bits as such."""
    if not value.is_valid:
        return None
    if types.is_interval(value.type):
        return _interval_key(value)
    if pa.types.is_temporal(value.type):
        return count(value)
    if pa.types.is_float32(value.type):
        return np.float32(value.as_py())
    return value.as_py()


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar[Any]:
    """The scalar of a value as `_value` gives it, or of a scalar; ValueError where it does not fit."""
    if isinstance(value, pa.Scalar):
        return value
    if value is not None and pa.types.is_integer(kind):
        smallest, largest = types.integer_range(kind)
        if not smallest <= value <= largest:
            raise ValueError("overflow")
    if isinstance(kind, pa.Decimal128Type) and value is not None:
        value = Decimal(value)
        if value.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
            raise ValueError("overflow")
    if value is not None and pa.types.is_date(kind):
        return from_count(value, kind)
    return scalar(value, kind)


def _interval_key(value: Any) -> int:
    """What intervals compare by: microseconds, 30 days to a month."""
    parts = value.as_py()
    return int((parts.months * 30 + parts.days) * 86_400 * 10**6 + parts.nanoseconds // 1000)


_Compute = Callable[[Sequence[Scalar], pa.DataType], Any]


def _null_in_null_out(compute: Callable[..., Any]) -> _Compute:
    """Null in, null out."""

    def apply(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
        values = [_value(argument) for argument in arguments]
        return None if None in values else compute(kind, *values)

    return apply


def _float_of(kind: pa.DataType, value: Any) -> Any:
    return _FLOATS[kind.bit_width](value)


def _arithmetic(exact: Callable[[Any, Any], Any], of_decimals: Callable[[Any, Any], Any]) -> _Compute:
    def compute(kind: pa.DataType, left: Any, right: Any) -> Any:
        if pa.types.is_floating(kind):
            with np.errstate(all="ignore"):
                return exact(_float_of(kind, left), _float_of(kind, right))
        return (of_decimals if isinstance(left, Decimal) else exact)(left, right)

    return _null_in_null_out(compute)


def _quotient(kind: pa.DataType, left: Any, right: Any) -> Any:
    with np.errstate(all="ignore"):
        return _float_of(kind, left) / _float_of(kind, right)


def _whole_quotient(kind: pa.DataType, left: Any, right: Any) -> Any:
    if right == 0:
        return None
    if pa.types.is_floating(kind):
        return _quotient(kind, left, right)
    left, right = int(left), int(right)
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(kind: pa.DataType, left: Any, right: Any) -> Any:
    if pa.types.is_floating(kind):
        with np.errstate(all="ignore"):
            return np.fmod(_float_of(kind, left), _float_of(kind, right))
    if right == 0:
        return None
    if isinstance(left, Decimal):
        return _EXACT.remainder(left, right)  # with the sign of the dividend, as wanted
    if right == -1 and left == -(1 << (kind.bit_width - 1)):
        return -left  # the quotient, which DuckDB takes the remainder from, does not fit
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _negative(kind: pa.DataType, value: Any) -> Any:
    # The operator would round a decimal to 28 digits.
    return value.copy_negate() if isinstance(value, Decimal) else -value


def _magnitude(kind: pa.DataType, value: Any) -> Any:
    # As above; and of -0.0 the operator makes 0.0.
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _comparison(holds: Callable[[Any, Any], bool]) -> _Compute:
    def apply(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
        left, right = arguments
        if not (left.is_valid and right.is_valid):
            return None
        return holds(order_key(left), order_key(right))

    return apply


def _distinct(left: Scalar, right: Scalar) -> bool:
    if not (left.is_valid and right.is_valid):
        return bool(left.is_valid != right.is_valid)
    return bool(order_key(left) != order_key(right))


def _is_in(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
    value, *members = arguments
    if not value.is_valid:
        return None
    if any(member.is_valid and order_key(member) == order_key(value) for member in members):
        return True
    return False if all(member.is_valid for member in members) else None


def _connective(decisive: bool) -> _Compute:
    """AND (decided by a false) or OR (decided by a true) in three-valued logic."""

    def apply(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
        values = [argument.as_py() for argument in arguments]
        if decisive in values:
            return decisive
        return None if None in values else not decisive

    return apply


def _coalesce(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
    return next((argument for argument in arguments if argument.is_valid), arguments[0])


def _case(arguments: Sequence[Scalar], kind: pa.DataType) -> Any:
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if condition.as_py():
            return value
    return arguments[-1]


_FUNCTIONS: Final[Mapping[str, _Compute]] = MappingProxyType(
    {
        "add": _arithmetic(operator.add, _EXACT.add),
        "subtract": _arithmetic(operator.sub, _EXACT.subtract),
        "multiply": _arithmetic(operator.mul, _EXACT.multiply),
        "divide": _null_in_null_out(_quotient),
        "floor_divide": _null_in_null_out(_whole_quotient),
        "modulo": _null_in_null_out(_remainder),
        "negate": _null_in_null_out(_negative),
        "abs": _null_in_null_out(_magnitude),
        "equal": _comparison(operator.eq),
        "not_equal": _comparison(operator.ne),
        "less": _comparison(operator.lt),
        "less_equal": _comparison(operator.le),
        "greater": _comparison(operator.gt),
        "greater_equal": _comparison(operator.ge),
        "is_distinct_from": lambda arguments, kind: _distinct(*arguments),
        "is_not_distinct_from": lambda arguments, kind: not _distinct(*arguments),
        "in": _is_in,
        "and": _connective(False),
        "or": _connective(True),
        "not": _null_in_null_out(lambda kind, value: not value),
        "is_null": lambda arguments, kind: not arguments[0].is_valid,
        "is_not_null": lambda arguments, kind: arguments[0].is_valid,
        "coalesce": _coalesce,
        "case": _case,
        "concat": _null_in_null_out(lambda kind, left, right: left + right),
        "add_days": _null_in_null_out(lambda kind, date, days: date + days),
        "days_between": _null_in_null_out(lambda kind, later, earlier: later - earlier),
    }
)

_NULL_IN_NULL_OUT: Final = frozenset(
    {
        *(
            "add",
            "subtract",
            "multiply",
            "divide",
            "floor_divide",
            "modulo",
            "negate",
            "abs",
            "not",
            "concat",
        ),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("add_days", "days_between"),
    }
)
