"""A column compared in another type than its own is compared in its own, which zone maps can prune by.

``CAST(x AS W) op literal`` becomes ``x op' literal'`` where the cast keeps the order of x's values: from
an integer to a wider one, a decimal or a double; from float to double; between decimals, dates and
timestamps. A literal that x's type does not have is moved to the nearest value that decides the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.assumptions import ask, compute
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.plan.literals.conversion import convert, count, from_count
from bamquery.plan.literals.evaluation import order_key
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import rewrite_everywhere

_BOOLEAN: Final = pa.bool_()
_UNITS: Final[Mapping[str, int]] = MappingProxyType({"s": 0, "ms": 1, "us": 2, "ns": 3})
_EXACT_IN_DOUBLE: Final = 1 << 53
_EXACT: Final = Context(prec=100)

_COMPARISONS: Final = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("is_distinct_from", "is_not_distinct_from"),
    }
)


def narrow_comparisons(plan: Plan) -> Plan:
    """Take casts off the left side of comparisons with literals, where the answer stays the same."""
    return rewrite_everywhere(plan, narrow_comparison)


def narrow_comparison(expression: Expression) -> Expression:
    """One comparison without the cast; any other expression as it is."""
    match expression:
        case Call(function=function, arguments=(Cast(argument=value, try_=False), Literal() as literal)) if (
            function in _COMPARISONS
        ):
            return _comparison(function, value, literal) or expression
        case Call(function="in", arguments=(Cast(argument=value, try_=False) as cast, *members)):
            return _membership(value, cast.type, members) or expression
        case _:
            return expression


def _comparison(function: str, value: Expression, literal: Literal) -> Expression | None:
    if literal.is_null:
        return None
    if pa.types.is_timestamp(value.type) and pa.types.is_date(literal.type):
        return _whole_day(function, value, literal)
    if not _keeps_order(value.type, literal):
        return None
    exact = _convert_literal(literal, value.type)
    if exact is not None:
        return Call(function, (value, exact), _BOOLEAN)
    return _between_values(function, value, literal)


def _membership(value: Expression, kind: pa.DataType, members: Sequence[Expression]) -> Expression | None:
    """IN: members that the value's type does not have are equal to none of its values."""
    literals = [member for member in members if isinstance(member, Literal)]
    if len(literals) < len(members) or not all(_keeps_order(value.type, m) for m in literals):
        return None
    nulls = [Literal(scalar(None, value.type)) for m in literals if m.is_null]
    found = [_convert_literal(member, value.type) for member in literals if not member.is_null]
    kept = [member for member in found if member is not None]
    if not kept:
        return None if nulls else _false_unless_null(value)
    return Call("in", (value, *kept, *nulls[:1]), _BOOLEAN)


def _keeps_order(kind: Any, literal: Literal) -> bool:
    """Whether the cast to the literal's type is strictly monotonic, at least near the literal."""
    wide: Any = literal.type
    if pa.types.is_integer(kind):
        if pa.types.is_float64(wide):
            return bool(kind.bit_width <= 32 or literal.is_null or ask(_is_small, literal))
        return bool(types.is_integral(wide) or _decimal_holds(kind, wide))
    if pa.types.is_float32(kind):
        return bool(pa.types.is_float64(wide))
    if pa.types.is_decimal(kind):
        return bool(
            pa.types.is_decimal(wide)
            and wide.scale >= kind.scale
            and wide.precision - wide.scale >= kind.precision - kind.scale
        )
    if pa.types.is_date(kind):
        return bool(pa.types.is_timestamp(wide))
    if pa.types.is_timestamp(kind):
        # To a finer unit a cast can fail, but only for values that no literal is near.
        return bool(pa.types.is_timestamp(wide)) and _UNITS[wide.unit] >= _UNITS[kind.unit]
    return False


def _is_small(literal: Literal) -> bool:
    number = literal.value.as_py()
    return math.isfinite(number) and abs(number) < _EXACT_IN_DOUBLE


def _decimal_holds(kind: pa.DataType, wide: Any) -> bool:
    if not pa.types.is_decimal(wide):
        return False
    smallest, largest = types.integer_range(kind)
    return bool(max(-smallest, largest) < 10 ** (wide.precision - wide.scale))


def _convert_literal(literal: Literal, kind: pa.DataType) -> Literal | None:
    """The literal as a value of the type, or None where it has no equal there."""
    return compute(partial(_converted, kind=kind), literal)


def _converted(literal: Literal, kind: pa.DataType) -> Literal | None:
    try:
        there = convert(literal.value, kind)
        back = convert(there, literal.type)
    except ValueError:
        return None
    return Literal(there) if order_key(back) == order_key(literal.value) else None


def _between_values(function: str, value: Expression, literal: Literal) -> Expression | None:
    """A comparison with something that lies between two neighbouring values of the type, or beyond all."""
    match function:
        case "equal":
            return _false_unless_null(value)
        case "not_equal":
            return _true_unless_null(value)
        case "is_distinct_from":
            return Literal(scalar(True, pa.bool_()))
        case "is_not_distinct_from":
            return Literal(scalar(False, pa.bool_()))
    upward = function in {"greater", "greater_equal"}
    bound = _neighbour(literal, value.type, upward=upward)
    if bound is None:
        return None
    if bound is _BEYOND:
        return _false_unless_null(value)
    if bound is _BEFORE:
        return _true_unless_null(value)
    return Call("greater_equal" if upward else "less_equal", (value, Literal(bound)), _BOOLEAN)


_BEYOND: Final = object()
"""No value of the type is on the wanted side of the literal."""
_BEFORE: Final = object()
"""Every value of the type is."""


def _neighbour(literal: Literal, kind: Any, *, upward: bool) -> Any:
    """The type's value next to the literal on the wanted side, `_BEYOND`, `_BEFORE`, or None if not known."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _next_moment(literal.value, kind, upward=upward)
    plain = literal.value.as_py()
    if pa.types.is_integer(kind):
        return _next_number(plain, kind, 0, types.integer_range(kind), upward=upward)
    if pa.types.is_decimal(kind):
        largest = 10**kind.precision - 1
        return _next_number(plain, kind, kind.scale, (-largest, largest), upward=upward)
    return scalar(_next_float(plain, upward=upward), kind)


def _next_number(plain: Any, kind: pa.DataType, scale: int, limits: tuple[int, int], *, upward: bool) -> Any:
    """The integer or decimal next to a number; `limits` are in units of the last digit."""
    if isinstance(plain, float) and not math.isfinite(plain):
        above = plain > 0 or math.isnan(plain)  # NaN is greater than every number
        return _BEYOND if above == upward else _BEFORE
    unit = Decimal(plain).scaleb(scale, _EXACT)
    whole = int(unit.to_integral_value(ROUND_CEILING if upward else ROUND_FLOOR))
    smallest, largest = limits
    if smallest <= whole <= largest:
        return scalar(Decimal(whole).scaleb(-scale, _EXACT) if scale else whole, kind)
    return _BEYOND if (whole > largest) == upward else _BEFORE


def _next_float(plain: float, *, upward: bool) -> np.float32:
    with np.errstate(over="ignore"):
        nearest = np.float32(plain)
    # Compared as doubles: numpy would round `plain` to a float first.
    if upward:
        return nearest if float(nearest) >= plain else np.nextafter(nearest, np.float32(np.inf))
    return nearest if float(nearest) <= plain else np.nextafter(nearest, np.float32(-np.inf))


def _next_moment(moment: pa.Scalar[Any], kind: pa.DataType, *, upward: bool) -> pa.Scalar[Any] | None:
    """The date or timestamp next to one of a finer type, which no value of the type is equal to."""
    try:
        nearest = convert(moment, kind)
        if (count(convert(nearest, moment.type)) > count(moment)) == upward:
            return nearest
        return from_count(count(nearest) + (1 if upward else -1), kind)
    except ValueError:
        return None


def _whole_day(function: str, value: Any, literal: Literal) -> Expression | None:
    """A timestamp's day compared with a date: the timestamp against the day's begin or end."""
    if value.type.unit == "ns":  # rounded to microseconds, its day may be the next one
        return None
    try:
        begin = Literal(convert(literal.value, value.type))
        end = Literal(convert(from_count(count(literal.value) + 1, literal.type), value.type))
    except ValueError:
        return None

    def compare_with(comparison: str, bound: Literal) -> Expression:
        return Call(comparison, (value, bound), _BOOLEAN)

    match function:
        case "less":
            return compare_with("less", begin)
        case "greater_equal":
            return compare_with("greater_equal", begin)
        case "less_equal":
            return compare_with("less", end)
        case "greater":
            return compare_with("greater_equal", end)
        case "equal":
            return Call("and", (compare_with("greater_equal", begin), compare_with("less", end)), _BOOLEAN)
        case "not_equal":
            return Call("or", (compare_with("less", begin), compare_with("greater_equal", end)), _BOOLEAN)
        case _:
            return None


def _false_unless_null(value: Expression) -> Expression:
    """False, or null where the value is."""
    return Call("and", (Call("is_null", (value,), _BOOLEAN), _UNKNOWN), _BOOLEAN)


def _true_unless_null(value: Expression) -> Expression:
    """True, or null where the value is."""
    return Call("or", (Call("is_not_null", (value,), _BOOLEAN), _UNKNOWN), _BOOLEAN)


_UNKNOWN: Final = Literal(scalar(None, _BOOLEAN))
