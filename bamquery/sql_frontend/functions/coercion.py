"""Which type expressions meet in, and the casts that take them there: DuckDB's rules for implicit casts.

A literal has no firm type yet: an integer literal takes the other side's type where it fits, a string
literal is read as a value of it, NULL is of any type. Every function here raises `ValueError` in words; the
binder knows the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.assumptions import ask, compute
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.plan.literals.conversion import NotConvertedError, convert
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.plan.literals.scalars import scalar
from bamquery.statement_context.cancellation import check_cancelled

SYMBOLS: Final[Mapping[str, str]] = MappingProxyType(
    {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "modulo": "%"}
)
"""How the arithmetic functions are written."""

_Pair: TypeAlias = Callable[[pa.DataType, pa.DataType], pa.DataType | None]
"""How two types become one, None where they do not."""

_DECIMAL_WIDTHS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
_UNITS: Final = ("s", "ms", "us", "ns")
_MAX_WIDTH: Final = 38
_INT64_WIDTH: Final = 18


def decode(expression: Expression) -> Expression:
    """The expression as values: a dictionary column's codes are looked up."""
    kind = types.value_type(expression.type)
    return expression if kind == expression.type else Cast(expression, kind)


def coerce(expression: Expression, kind: pa.DataType) -> Expression:
    """The expression as `kind`; a literal is converted here and now."""
    check_cancelled()
    if expression.type == kind:
        return expression
    if isinstance(expression, Literal):
        try:
            made = compute(partial(_converted, kind=kind), expression)
            assert made is not None
            return made
        except NotConvertedError:
            pass  # not a conversion of constants: a device may know it
    return Cast(expression, kind)


def _converted(literal: Literal, kind: pa.DataType) -> Literal:
    return Literal(convert(literal.value, kind))


def coerce_beside(expression: Expression, kind: pa.DataType, others: Iterable[Expression]) -> Expression:
    """The expression as `kind` where none of the others is NULL, for a function that is NULL where one is.

    A date that is no timestamp is an error only where the function needs it.
    """
    if not (pa.types.is_date(expression.type) and pa.types.is_timestamp(kind)):
        return coerce(expression, kind)
    for other in map(fold_expression, others):
        if isinstance(other, Literal):
            if other.is_null:
                return Literal(scalar(None, kind))
            continue
        missing = Call("is_null", (other,), pa.bool_())
        nothing = Literal(scalar(None, expression.type))
        expression = Call("case", (missing, nothing, expression), expression.type)
    return coerce(expression, kind)


def constant_nulls(*expressions: Expression) -> list[Expression]:
    """Those that are NULL in every row, as is known before there are rows."""
    constants = [constant for constant in map(fold_expression, expressions) if isinstance(constant, Literal)]
    return [constant for constant in constants if constant.is_null]


def is_null(expression: Expression) -> bool:
    """Whether it is the untyped NULL."""
    return pa.types.is_null(expression.type)


def is_string_literal(expression: Expression) -> bool:
    """Whether it is a quoted string, to be read as whatever is wanted."""
    return _is_literal(expression) and types.is_string(expression.type)


def is_integer_literal(expression: Expression) -> bool:
    """Whether it is an integer as written, of the smallest of INTEGER, BIGINT and HUGEINT that holds it."""
    return _is_literal(expression) and types.is_integral(expression.type)


def _is_literal(expression: Expression) -> bool:
    """Whether it is a value as written; a NULL that has a type has it for good."""
    return isinstance(expression, Literal) and not expression.is_null


def common_type(expressions: Sequence[Expression], *, compared: bool = False) -> pa.DataType:
    """The type that CASE, COALESCE and IN bring their values to; `pa.null()` where all are NULL.

    Values are met one by one, as in DuckDB: a literal takes the type of what it meets first, and two of them,
    or one and NULL, are INTEGER (or what holds them), or VARCHAR, for whatever comes later. Where they are
    `compared`, strings wait for any type, and values may be equal that do not mix.
    """
    pair = _compared_type if compared else combined_type
    kind: pa.DataType | None = None
    loose: Expression | None = None  # an integer literal that has met nothing yet
    text = False
    for place, expression in enumerate(expressions):
        check_cancelled()
        if is_null(expression) or is_string_literal(expression):
            loose = None
            text = text or is_string_literal(expression)
            if kind is None and text and place and not compared:
                kind = pa.large_string()
        elif kind is None:
            kind = expression.type
            loose = expression if place == 0 and is_integer_literal(expression) else None
        else:
            if loose is not None and not is_integer_literal(expression):
                kind = _type_beside(loose, expression.type, pair)
            elif is_integer_literal(expression):
                kind = _type_beside(expression, kind, pair)
            else:
                kind = _common_type(kind, expression.type, pair)
            loose = None
    if kind is None:
        return pa.large_string() if text else pa.null()
    return kind


def _type_beside(literal: Expression, kind: pa.DataType, pair: _Pair) -> pa.DataType:
    """The type of an integer literal beside values of `kind`."""
    return kind if _literal_fits(literal, kind) else _common_type(kind, literal.type, pair)


def _common_type(left: pa.DataType, right: pa.DataType, pair: _Pair) -> pa.DataType:
    kind = pair(left, right)
    if kind is None:
        raise ValueError(f"{type_name(left)} and {type_name(right)} do not mix: cast one of them")
    return kind


def comparison_type(left: Expression, right: Expression, *, ordered: bool = True) -> pa.DataType:
    """The type in which two values are compared; more types may be equal than are `ordered`."""
    for is_loose in (is_null, is_string_literal):  # beside NULL, a string literal is VARCHAR
        for one, other in ((left, right), (right, left)):
            if is_loose(one):
                return other.type
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and types.is_numeric(one.type) and _converts_exactly(one, other.type):
            return other.type
    common = _compared_type(left.type, right.type, ordered=ordered)
    if common is None:
        names = f"{type_name(left.type)} with {type_name(right.type)}"
        raise ValueError(f"cannot compare {names}: cast one of them")
    return common


def _compared_type(left: pa.DataType, right: pa.DataType, *, ordered: bool = False) -> pa.DataType | None:
    """The type in which values of two types are compared, or None."""
    if pa.types.is_decimal(left) and pa.types.is_decimal(right):
        return _exact_decimal(left, right)
    common = combined_type(left, right)
    return _equality_type(left, right) if common is None and not ordered else common


def _equality_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which values are equal that DuckDB neither orders nor mixes, or None."""
    for one, other in ((left, right), (right, left)):
        if pa.types.is_boolean(one) and pa.types.is_floating(other):
            return other
        if pa.types.is_boolean(one) and pa.types.is_decimal(other) and as_decimal(other).scale < _MAX_WIDTH:
            return _combine_numbers(pa.int8(), other)
        if pa.types.is_timestamp(one) and other == pa.timestamp("ns"):  # one of them has a zone
            return other
        if pa.types.is_time64(one) and other == pa.time64("ns"):
            return other
    return None


def combined_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The smallest type that holds the values of both, or None."""
    if left == right:
        return left
    if pa.types.is_null(left) or pa.types.is_null(right):
        return right if pa.types.is_null(left) else left
    if types.is_numeric(left) and types.is_numeric(right):
        return _combine_numbers(left, right)
    for one, other in ((left, right), (right, left)):
        if pa.types.is_boolean(one) and types.is_integral(other):
            return other
        if pa.types.is_date(one) and pa.types.is_timestamp(other):
            return other
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return _combine_timestamps(left, right)
    return None


def arithmetic_types(
    operator: str, left: Expression, right: Expression
) -> tuple[pa.DataType, pa.DataType, pa.DataType]:
    """What both arguments of ``add``, ``subtract``, ``multiply`` or ``modulo`` become, and the result's type.

    Both arguments get one type, but for decimals in ``multiply``.
    """
    left_type, right_type = _firm_types(left, right)
    if operator == "multiply" and is_null(left) and is_null(right):
        left_type = right_type = pa.int64()
    if not (types.is_numeric(left_type) and types.is_numeric(right_type)):
        raise ValueError(_no_operator(operator, left, right))
    if pa.types.is_floating(left_type) or pa.types.is_floating(right_type):
        kind = _combine_numbers(left_type, right_type)
        return kind, kind, kind
    if types.is_integral(left_type) and types.is_integral(right_type):
        kind = _arithmetic_integer(left_type, right_type)
        return kind, kind, kind
    left_type, right_type = as_decimal(left_type), as_decimal(right_type)
    match operator:
        case "multiply":
            result = _product(left_type, right_type)
            return left_type, right_type, result
        case "modulo":
            kind = _exact_decimal(left_type, right_type)
            if _whole_width(left_type, right_type) + kind.scale > _MAX_WIDTH:
                return pa.float64(), pa.float64(), pa.float64()
            return kind, kind, kind
        case _:
            scale = max(left_type.scale, right_type.scale)
            width = min(_whole_width(left_type, right_type) + scale + 1, _MAX_WIDTH)
            kind = pa.decimal128(width, scale)
            return kind, kind, kind


def division_type(left: Expression, right: Expression) -> pa.DataType:
    """DOUBLE, or FLOAT where a FLOAT meets anything else than a DOUBLE."""
    left_type, right_type = _firm_types(left, right)
    if not (types.is_numeric(left_type) and types.is_numeric(right_type)):
        raise ValueError(_no_operator("divide", left, right))
    singles = pa.types.is_float32(left_type) or pa.types.is_float32(right_type)
    doubles = pa.types.is_float64(left_type) or pa.types.is_float64(right_type)
    return pa.float32() if singles and not doubles else pa.float64()


def as_decimal(kind: pa.DataType) -> Any:
    """The decimal that holds every value of an integer type; decimals as they are."""
    if pa.types.is_decimal(kind):
        return kind
    width = _DECIMAL_WIDTHS[kind.bit_width] + (1 if kind == pa.uint64() else 0)
    return pa.decimal128(width, 0)


def _firm_types(left: Expression, right: Expression) -> tuple[pa.DataType, pa.DataType]:
    """Both types, after a literal has taken on the other side's where it may."""
    if is_null(left) and is_null(right):
        return pa.int32(), pa.int32()
    if is_null(left):
        return right.type, right.type
    if is_null(right):
        return left.type, left.type
    if is_integer_literal(left) and not _is_literal(right) and _literal_fits(left, right.type):
        return right.type, right.type
    if is_integer_literal(right) and not _is_literal(left) and _literal_fits(right, left.type):
        return left.type, left.type
    return left.type, right.type


def _no_operator(operator: str, left: Expression, right: Expression) -> str:
    return f"there is no {type_name(left.type)} {SYMBOLS[operator]} {type_name(right.type)}"


def _literal_fits(literal: Expression, kind: pa.DataType) -> bool:
    """Whether an integer literal can be taken for a value of the type."""
    assert isinstance(literal, Literal)
    if pa.types.is_floating(kind):
        return True
    if not types.is_integral(kind):
        return False
    return ask(partial(_is_within, kind=kind), literal)


def _is_within(literal: Literal, kind: pa.DataType) -> bool:
    value = literal.value.as_py()
    smallest, largest = types.integer_range(kind)
    return value is None or smallest <= int(value) <= largest


def _converts_exactly(literal: Literal, kind: pa.DataType) -> bool:
    if literal.is_null or not types.is_numeric(kind) or pa.types.is_floating(literal.type):
        return False
    if pa.types.is_integer(literal.type) and pa.types.is_integer(kind):
        return ask(partial(_is_within, kind=kind), literal)
    return ask(partial(_comes_back, kind=kind), literal)


def _comes_back(literal: Literal, kind: pa.DataType) -> bool:
    """Whether a value is there in another type, so that it is the same after both conversions."""
    try:
        there = convert(literal.value, kind)
        return bool(convert(there, literal.type) == literal.value)
    except ValueError:
        return False


def _combine_numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_float64(left) or pa.types.is_float64(right):
        return pa.float64()
    if pa.types.is_float32(left) or pa.types.is_float32(right):
        return pa.float32()
    if types.is_integral(left) and types.is_integral(right):
        return _combine_integers(left, right)
    for one, other in ((left, right), (right, left)):
        if types.is_integral(one):  # the decimal's scale stays
            scale = as_decimal(other).scale
            whole = max(as_decimal(one).precision, as_decimal(other).precision - scale)
            return pa.decimal128(min(whole + scale, _MAX_WIDTH), scale)
    whole = _whole_width(left, right)
    scale = min(max(as_decimal(left).scale, as_decimal(right).scale), _MAX_WIDTH - whole)
    return pa.decimal128(whole + scale, scale)


def _combine_integers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    smallest, largest = _joint_range(left, right)
    for kind in (left, right, pa.int16(), pa.int32(), pa.int64()):
        if _covers_range(kind, smallest, largest):
            return kind
    return HUGEINT


def _arithmetic_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """As DuckDB picks its operator: one of the two types if it holds the other, else BIGINT or HUGEINT."""
    smallest, largest = _joint_range(left, right)
    for kind in (left, right, pa.int64()):
        if _covers_range(kind, smallest, largest):
            return kind
    return HUGEINT


def _joint_range(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    (left_min, left_max), (right_min, right_max) = types.integer_range(left), types.integer_range(right)
    return min(left_min, right_min), max(left_max, right_max)


def _covers_range(kind: pa.DataType, smallest: int, largest: int) -> bool:
    kind_min, kind_max = types.integer_range(kind)
    return kind_min <= smallest and largest <= kind_max


def _whole_width(left: Any, right: Any) -> int:
    """Digits before the point that hold the values of both."""
    return int(max(left.precision - left.scale, right.precision - right.scale))


def _exact_decimal(left: Any, right: Any) -> pa.Decimal128Type[Any, Any]:
    scale = max(left.scale, right.scale)
    return pa.decimal128(min(_whole_width(left, right) + scale, _MAX_WIDTH), scale)


def _product(left: Any, right: Any) -> pa.DataType:
    scale = left.scale + right.scale
    if scale > _MAX_WIDTH:
        raise ValueError(
            f"{type_name(left)} * {type_name(right)} would need a scale of {scale}, more than {_MAX_WIDTH}: "
            "cast one side to a smaller scale or to DOUBLE"
        )
    width = left.precision + right.precision
    # DuckDB stays within 64 bits while both arguments do and a digit before the point is left, and checks
    # for overflow.
    narrow = max(left.precision, right.precision) <= _INT64_WIDTH and scale < _INT64_WIDTH
    return pa.decimal128(min(width, _INT64_WIDTH if narrow else _MAX_WIDTH), scale)


def _combine_timestamps(left: Any, right: Any) -> pa.DataType | None:
    if (left.tz is None) != (right.tz is None) and "ns" in {left.unit, right.unit}:
        return None
    unit: Any = _UNITS[max(_UNITS.index(left.unit), _UNITS.index(right.unit))]
    return pa.timestamp(unit, left.tz or right.tz)
