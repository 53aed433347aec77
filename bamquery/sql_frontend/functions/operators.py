"""Operators on bound expressions: the casts that DuckDB would insert, then the call.

Functions here raise `ValueError` in words for types that do not fit; the binder knows the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.assumptions import ask, compute
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.plan.literals.evaluation import evaluate
from bamquery.plan.literals.scalars import scalar
from bamquery.sql_frontend.functions import interval_arithmetic
from bamquery.sql_frontend.functions.coercion import (
    arithmetic_types,
    coerce,
    common_type,
    comparison_type,
    decode,
    division_type,
    is_null,
    is_string_literal,
)
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.text.statement_text import Place

BOOLEAN: Final = pa.bool_()
STRING: Final = pa.large_string()
_EQUALITIES: Final = frozenset({"equal", "not_equal", "is_distinct_from", "is_not_distinct_from"})
_TO_DAYS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())


def literal(value: object, kind: pa.DataType) -> Literal:
    """A constant of a type."""
    return Literal(scalar(value, kind))


def as_boolean(expression: Expression, what: str) -> Expression:
    """The expression as a truth value; numbers are true where they are not zero."""
    expression = decode(expression)
    kind = expression.type
    if (
        pa.types.is_boolean(kind)
        or is_null(expression)
        or types.is_numeric(kind)
        or is_string_literal(expression)
    ):
        return coerce(expression, BOOLEAN)
    raise ValueError(f"{what} needs BOOLEAN, not {type_name(kind)}")


def compare(function: str, left: Expression, right: Expression) -> Expression:
    """One of the comparison functions."""
    check_cancelled()
    left, right = decode(left), decode(right)
    kind = comparison_type(left, right, ordered=function not in _EQUALITIES)
    if pa.types.is_null(kind):
        kind = pa.int32()
    return Call(function, (coerce(left, kind), coerce(right, kind)), BOOLEAN)


def between(value: Expression, low: Expression, high: Expression) -> Expression:
    """``low <= value AND value <= high``."""
    return Call("and", (compare("greater_equal", value, low), compare("less_equal", value, high)), BOOLEAN)


def is_in(value: Expression, candidates: Sequence[Expression]) -> Expression:
    """IN over a list: one call where all candidates are literals, else a chain of comparisons.

    All of them are compared in one type, so that what a candidate equals may depend on the others.
    """
    value = decode(value)
    candidates = [decode(candidate) for candidate in candidates]
    if len(candidates) == 1 and not isinstance(candidates[0], Literal):
        return compare("equal", value, candidates[0])
    kind = common_type([value, *candidates], compared=True)
    if pa.types.is_null(kind):
        kind = pa.int32()
    value, *candidates = (coerce(expression, kind) for expression in (value, *candidates))
    if all(isinstance(candidate, Literal) for candidate in candidates):
        return Call("in", (value, *candidates), BOOLEAN)
    return Call("or", tuple(Call("equal", (value, candidate), BOOLEAN) for candidate in candidates), BOOLEAN)


def logical(function: str, operands: Sequence[Expression]) -> Expression:
    """AND or OR over two or more operands."""
    name = function.upper()
    return Call(function, tuple(as_boolean(operand, name) for operand in operands), BOOLEAN)


def negation(operand: Expression) -> Expression:
    """NOT."""
    return Call("not", (as_boolean(operand, "NOT"),), BOOLEAN)


def is_null_test(operand: Expression, *, negate: bool) -> Expression:
    """IS [NOT] NULL."""
    return Call("is_not_null" if negate else "is_null", (decode(operand),), BOOLEAN)


def is_truth_value(operand: Expression, truth: bool) -> Expression:
    """IS TRUE or IS FALSE, never null."""
    return Call("is_not_distinct_from", (as_boolean(operand, "IS"), literal(truth, BOOLEAN)), BOOLEAN)


def add(left: Expression, right: Expression) -> Expression:
    """Numbers; a date and a number of days."""
    left, right = decode(left), decode(right)
    for date, days in ((left, right), (right, left)):
        if pa.types.is_date(date.type) and days.type in _TO_DAYS:
            return Call("add_days", (date, coerce(days, pa.int32())), date.type)
    missing = _moment_with_null("add", left, right)
    if missing is not None:
        return missing
    moved = interval_arithmetic.arithmetic("add", left, right)
    return _arithmetic("add", left, right) if moved is None else moved


def subtract(left: Expression, right: Expression) -> Expression:
    """Numbers; a date and a number of days; two dates, whose difference is in days."""
    left, right = decode(left), decode(right)
    if pa.types.is_date(left.type) and right.type in _TO_DAYS:
        return Call("add_days", (left, minus(coerce(right, pa.int32()))), left.type)
    if pa.types.is_date(left.type) and pa.types.is_date(right.type):
        return Call("days_between", (left, right), pa.int64())
    missing = _moment_with_null("subtract", left, right)
    if missing is not None:
        return missing
    moved = interval_arithmetic.arithmetic("subtract", left, right)
    return _arithmetic("subtract", left, right) if moved is None else moved


def multiply(left: Expression, right: Expression) -> Expression:
    """Numbers; an interval and a number."""
    left, right = decode(left), decode(right)
    scaled = interval_arithmetic.arithmetic("multiply", left, right)
    return _arithmetic("multiply", left, right) if scaled is None else scaled


def divide(left: Expression, right: Expression) -> Expression:
    """Numbers, always as floating point; an interval by a number."""
    left, right = decode(left), decode(right)
    scaled = interval_arithmetic.arithmetic("divide", left, right)
    if scaled is not None:
        return scaled
    if division_type(left, right) == pa.float32():
        return _quotient_of_singles(coerce(left, pa.float32()), coerce(right, pa.float32()))
    return Call("divide", (coerce(left, pa.float64()), coerce(right, pa.float64())), pa.float64())


def floor_divide(left: Expression, right: Expression) -> Expression:
    """``//``: integers are truncated toward zero; other numbers are divided as they are; null by zero."""
    left, right = decode(left), decode(right)
    if _is_integer_division(left, right):
        return _arithmetic("floor_divide", left, right)
    kind = division_type(left, right)
    return Call("floor_divide", (coerce(left, kind), coerce(right, kind)), kind)


def modulo(left: Expression, right: Expression) -> Expression:
    """``%`` with the sign of the dividend; null by zero."""
    left, right = decode(left), decode(right)
    remainder = _arithmetic("modulo", left, right)
    if not pa.types.is_floating(remainder.type) or any(pa.types.is_floating(e.type) for e in (left, right)):
        return remainder
    # Exact numbers that only DOUBLE holds, whose own remainder by zero is NaN.
    zero = compare("equal", coerce(right, pa.float64()), literal(0.0, pa.float64()))
    return Call("case", (zero, literal(None, remainder.type), remainder), remainder.type)


def bitwise(function: str, left: Expression, right: Expression) -> Expression:
    """``&``, ``|``, xor and shifts of integers."""
    left, right = decode(left), decode(right)
    for one in (left, right):
        if not (types.is_integral(one.type) or is_null(one) or is_string_literal(one)):
            raise ValueError(f"bit operations need integers, not {type_name(one.type)}")
    if is_string_literal(left):
        left = coerce(left, right.type)
    if is_string_literal(right):
        right = coerce(right, left.type)
    left_type, right_type, kind = arithmetic_types("add", left, right)
    return Call(function, (coerce(left, left_type), coerce(right, right_type)), kind)


def bitwise_not(operand: Expression) -> Expression:
    """``~`` of an integer."""
    operand = decode(operand)
    if is_null(operand):
        return literal(None, pa.int64())
    if not types.is_integral(operand.type):
        raise ValueError(f"bit operations need integers, not {type_name(operand.type)}")
    return Call("bit_not", (operand,), operand.type)


def power(left: Expression, right: Expression) -> Expression:
    """Numbers, as DOUBLE."""
    return Call("power", (as_double(left, "power()"), as_double(right, "power()")), pa.float64())


def plus(operand: Expression) -> Expression:
    """Unary plus: a number, which has its type for good, also where it is a literal."""
    operand = decode(operand)
    if is_null(operand):
        return literal(None, pa.int64())
    if not types.is_numeric(operand.type):
        raise ValueError(f"there is no +{type_name(operand.type)}")
    return Cast(operand, operand.type) if isinstance(operand, Literal) else operand


def minus(operand: Expression) -> Expression:
    """Unary minus; of a literal, the negative literal."""
    operand = decode(operand)
    kind = operand.type
    if is_null(operand):
        return literal(None, pa.int64())
    if types.is_interval(kind):
        return Call("interval_negate", (operand,), kind)
    if not types.is_numeric(kind):
        raise ValueError(f"there is no -{type_name(kind)}")
    if isinstance(operand, Literal) and not operand.is_null:
        negative = compute(_negative_literal, operand)
        assert negative is not None
        return negative
    if pa.types.is_unsigned_integer(kind):
        return Call("subtract", (literal(0, kind), operand), kind)
    if pa.types.is_integer(kind) and isinstance(operand, Cast) and isinstance(operand.argument, Literal):
        least, _ = types.integer_range(kind)
        constant = evaluate(operand)
        if constant is not None and constant.value.as_py() == least:
            return literal(-least, _WIDER[kind])
    return Call("negate", (operand,), kind)


_WIDER: Final[Mapping[pa.DataType, pa.DataType]] = MappingProxyType(
    {pa.int8(): pa.int16(), pa.int16(): pa.int32(), pa.int32(): pa.int64(), pa.int64(): HUGEINT}
)
"""What holds the negative of the smallest value of a type, which is there for constants only."""


def concatenate(left: Expression, right: Expression) -> Expression:
    """``||``: null if either is null."""
    if pa.types.is_large_binary(left.type) and pa.types.is_large_binary(right.type):
        raise ValueError("there is no BLOB || BLOB")
    return Call("concat", (as_string(left), as_string(right)), STRING)


def as_double(expression: Expression, what: str) -> Expression:
    """A number, or a string literal that is one, as DOUBLE."""
    expression = decode(expression)
    if types.is_numeric(expression.type) or is_null(expression) or is_string_literal(expression):
        return coerce(expression, pa.float64())
    raise ValueError(f"{what} needs a number, not {type_name(expression.type)}")


def as_string(expression: Expression) -> Expression:
    """Any value as VARCHAR."""
    expression = decode(expression)
    return expression if types.is_string(expression.type) else explicit_cast(expression, STRING)


def explicit_cast(
    expression: Expression, kind: pa.DataType, *, try_: bool = False, place: Place | None = None
) -> Expression:
    """CAST or TRY_CAST as a statement writes it, at a place that errors show."""
    expression = decode(expression)
    if is_null(expression):
        return literal(None, kind)
    if not _castable(expression.type, kind):
        raise ValueError(f"cannot cast {type_name(expression.type)} to {type_name(kind)}")
    # A literal stays below its cast: it has a type of its own from here on.
    if expression.type == kind and not isinstance(expression, Literal):
        return expression
    return Cast(expression, kind, try_, place)


def _arithmetic(function: str, left: Expression, right: Expression) -> Expression:
    for one, other in ((left, right), (right, left)):
        if is_null(one) and pa.types.is_decimal(other.type) and not types.is_integral(other.type):
            return literal(None, pa.int32())  # as DuckDB types it
    left_type, right_type, kind = arithmetic_types(function, left, right)
    return Call(function, (coerce(left, left_type), coerce(right, right_type)), kind)


def _quotient_of_singles(left: Expression, right: Expression) -> Expression:
    """The quotient of two FLOATs: infinite where FLOAT does not hold it, and by zero as IEEE 754 has it."""
    kind = pa.float32()
    quotient = Call("floor_divide", (left, right), kind)  # of floats it does not truncate
    if isinstance(right, Literal) and ask(_is_not_zero, right):
        return quotient
    # It is null by zero, where DOUBLE's quotient is infinite or NaN; a finite one may not be a FLOAT.
    doubles = Call("divide", (coerce(left, pa.float64()), coerce(right, pa.float64())), pa.float64())
    return Call("coalesce", (quotient, Cast(doubles, kind, try_=True)), kind)


def _is_not_zero(literal: Literal) -> bool:
    return bool(literal.value.as_py())


def _moment_with_null(function: str, left: Expression, right: Expression) -> Expression | None:
    """A date, time or timestamp and the untyped NULL: null, of the type of the operator that DuckDB takes."""
    if is_null(left) == is_null(right):
        return None
    kind: Any = left.type if is_null(right) else right.type
    if function == "subtract" and is_null(left):
        if pa.types.is_date(kind):
            return literal(None, pa.int64())
        return literal(None, types.INTERVAL) if pa.types.is_timestamp(kind) else None
    if pa.types.is_timestamp(kind):
        return literal(None, pa.timestamp("us", kind.tz))
    if pa.types.is_date(kind) or (function == "subtract" and kind == pa.time64("us")):
        return literal(None, kind)
    return None


def _is_integer_division(left: Expression, right: Expression) -> bool:
    return all(types.is_integral(e.type) or is_null(e) for e in (left, right))


def _negative_literal(operand: Literal) -> Literal:
    value, kind = operand.value.as_py(), operand.type
    if types.is_integral(kind):
        return integer_literal(-int(value))
    # The operator would round a decimal to 28 digits.
    return literal(value.copy_negate() if isinstance(value, Decimal) else -value, kind)


def integer_literal(value: int) -> Literal:
    """An integer as written: INTEGER, BIGINT or HUGEINT, whichever first holds it, else DOUBLE."""
    for kind in (pa.int32(), pa.int64(), HUGEINT):
        smallest, largest = types.integer_range(kind)
        if smallest <= value <= largest:
            return literal(value, kind)
    return literal(float(value), pa.float64())


def _castable(source: Any, target: Any) -> bool:
    if source == target:
        return True
    if pa.types.is_large_binary(source) or pa.types.is_large_binary(target):
        return types.is_string(source) or types.is_string(target)
    if types.is_string(source) or types.is_string(target):
        return True
    number_like = (pa.types.is_boolean, types.is_numeric)
    if any(is_kind(source) for is_kind in number_like):
        return any(is_kind(target) for is_kind in number_like)
    if pa.types.is_timestamp(source):
        if pa.types.is_time64(target):
            return source.tz is None
        return bool(pa.types.is_timestamp(target) or pa.types.is_date(target))
    if pa.types.is_date(source):
        return bool(pa.types.is_timestamp(target))
    return bool(pa.types.is_time64(source) and pa.types.is_time64(target))
