"""Expressions as functions of one row: those few that Python's values answer exactly as a device's columns.

Whatever a value cannot be computed with here (a sum that leaves its type, a division by zero) is left to a
device, with `LeftToDeviceError`: which error or null it is, is said in one place only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.operators.recursion.by_row.dates import DATE_CALLS, SIGNS, cast_days, move_moment, part
from bamquery.engine.operators.recursion.by_row.strings import TEXT_CALLS, substring
from bamquery.engine.operators.recursion.by_row.values import (
    DAYS,
    WHOLE,
    LeftToDeviceError,
    Row,
    RowFunction,
    check_bounds,
    finite,
    is_for_rows,
    short,
    strict_binary,
    strict_unary,
    value_of,
)
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal


def row_function(expression: Expression) -> RowFunction | None:
    """What gives the expression's value for a row, a tuple by column; None where it is not among these few.

    The function raises `LeftToDeviceError`.
    """
    if not is_for_rows(expression.type):
        return None
    match expression:
        case ColumnRef(index=index):
            return itemgetter(index)
        case Literal(value=value):
            return _constant(value)
        case Cast(argument=argument, try_=False):
            return _cast_function(argument, expression.type)
        case Call(function="in", arguments=(value, *members)):
            return _membership_test(value, members)
        case Call(function=name, arguments=(value, span)) if name in SIGNS:
            function = row_function(value)
            return None if function is None else move_moment(function, value.type, span, SIGNS[name])
        case Call(function="date_part", arguments=(unit, value)):
            function = row_function(value)
            return None if function is None else part(unit, function, value.type)
        case Call(function="substring", arguments=(value, *places)):
            function = row_function(value)
            return None if function is None else substring(function, places)
        case Call(function=name, arguments=arguments):
            make = _CALLS.get(name)
            functions = [row_function(argument) for argument in arguments]
            known = [function for function in functions if function is not None]
            if make is None or len(known) < len(functions):
                return None
            return make(known, [argument.type for argument in arguments], expression.type)
        case _:
            return None


def functions_of(expressions: Sequence[Expression]) -> list[RowFunction] | None:
    """Those of all; None where one has none."""
    found = [row_function(expression) for expression in expressions]
    known = [function for function in found if function is not None]
    return known if len(known) == len(found) else None


def tuple_function(expressions: Sequence[Expression]) -> Callable[[Row], Row] | None:
    """What gives the values of all; None where one has no function."""
    functions = functions_of(expressions)
    match functions:
        case None:
            return None
        case [one]:
            return lambda row: (one(row),)
        case [one, other]:
            return lambda row: (one(row), other(row))
        case _:
            return lambda row: tuple([function(row) for function in functions])


_Make: TypeAlias = Callable[[Sequence[RowFunction], Sequence[pa.DataType], pa.DataType], RowFunction | None]


def _constant(scalar: pa.Scalar[Any]) -> RowFunction | None:
    try:
        value = value_of(scalar)
    except LeftToDeviceError:
        return None
    return lambda row: value


def _cast_function(argument: Expression, kind: pa.DataType) -> RowFunction | None:
    function = row_function(argument)
    if function is None:
        return None
    if argument.type in DAYS:
        return cast_days(function, argument.type, kind)
    if argument.type not in WHOLE:
        return None
    if kind in WHOLE:
        return check_bounds(WHOLE[kind], strict_unary(int, function))
    if kind == pa.float64() and argument.type != HUGEINT:
        return strict_unary(float, function)
    return strict_unary(str, function) if kind == pa.large_string() else None


def _arithmetic(compute: Callable[..., Any]) -> _Make:
    """One or two numbers of the result's type."""

    def make(
        arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        if any(each != kind for each in kinds):
            return None
        function = (
            strict_unary(compute, arguments[0]) if len(kinds) == 1 else strict_binary(compute, arguments)
        )
        if kind in WHOLE:
            return check_bounds(WHOLE[kind], function)
        return strict_unary(finite, function) if kind == pa.float64() else None

    return make


def _quotient(compute: Callable[[int, int], int]) -> _Make:
    """Of whole numbers, none below zero: Python rounds other quotients down, and SQL towards zero."""

    def divide_checked(one: int, other: int) -> int:
        if one < 0 or other <= 0:
            raise LeftToDeviceError
        return compute(one, other)

    def make(
        arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        whole = kind in WHOLE and all(each == kind for each in kinds)
        return strict_binary(divide_checked, arguments) if whole else None

    return make


def _divide(one: float, other: float) -> float:
    if not other:
        raise LeftToDeviceError
    return one / other


def _root(value: float) -> float:
    if value < 0:
        raise LeftToDeviceError
    return math.sqrt(value)


def _rounded(toward: Callable[[float], int]) -> Callable[[float], float]:
    """A whole DOUBLE with the number's sign, which a zero has too."""
    return lambda value: math.copysign(toward(value), value)


def _doubles_only(make: _Make) -> _Make:
    return lambda functions, kinds, kind: make(functions, kinds, kind) if kind == pa.float64() else None


def _comparison(compare: Callable[[Any, Any], bool]) -> _Make:
    def make(
        arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        return strict_binary(compare, arguments) if kinds[0] == kinds[1] else None

    return make


def _distinctness(compare: Callable[[Any, Any], bool]) -> _Make:
    """Python's None is equal to itself, and to nothing else."""

    def make(
        arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        left, right = arguments
        return (lambda row: compare(left(row), right(row))) if kinds[0] == kinds[1] else None

    return make


def _connective(decisive: bool) -> _Make:
    """AND, which one false decides, and OR, which one true does."""

    def make(
        arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        def function(row: Row) -> Any:
            answer: bool | None = not decisive
            for argument in arguments:
                value = argument(row)
                if value is decisive:
                    return decisive
                if value is None:
                    answer = None
            return answer

        return function if all(each == pa.bool_() for each in kinds) else None

    return make


def _not(arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType) -> RowFunction:
    return strict_unary(operator.not_, arguments[0])


def _is_null(
    arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction:
    (argument,) = arguments
    return lambda row: argument(row) is None


def _is_not_null(
    arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction:
    (argument,) = arguments
    return lambda row: argument(row) is not None


def _coalesce(
    arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    def function(row: Row) -> Any:
        for argument in arguments:
            value = argument(row)
            if value is not None:
                return value
        return None

    return function if all(each == kind for each in kinds) else None


def _case(
    arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    if len(arguments) % 2 == 0 or any(each != kind for each in [*kinds[1::2], kinds[-1]]):
        return None
    branches, otherwise = list(zip(arguments[0:-1:2], arguments[1::2], strict=True)), arguments[-1]

    def function(row: Row) -> Any:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return otherwise(row)

    return function


def _concat(
    arguments: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    """The operator ||: null where one part is."""
    if len(arguments) != 2 or any(each != pa.large_string() for each in [*kinds, kind]):
        return None
    return strict_unary(short, strict_binary(operator.add, arguments))


def _membership_test(value: Expression, members: Sequence[Expression]) -> RowFunction | None:
    function = row_function(value)
    literals = [each for each in members if isinstance(each, Literal) and each.type == value.type]
    if function is None or len(literals) < len(members):
        return None
    try:
        found = {value_of(each.value) for each in literals}
    except LeftToDeviceError:
        return None
    otherwise = None if None in found else False
    found.discard(None)

    def is_member(row: Row) -> Any:
        one = function(row)
        return None if one is None else (True if one in found else otherwise)

    return is_member


_CALLS: Final[Mapping[str, _Make]] = MappingProxyType(
    {
        "add": _arithmetic(operator.add),
        "subtract": _arithmetic(operator.sub),
        "multiply": _arithmetic(operator.mul),
        "negate": _arithmetic(operator.neg),
        "abs": _arithmetic(abs),
        "divide": _doubles_only(_arithmetic(_divide)),
        "sqrt": _doubles_only(_arithmetic(_root)),
        "floor": _doubles_only(_arithmetic(_rounded(math.floor))),
        "ceil": _doubles_only(_arithmetic(_rounded(math.ceil))),
        "floor_divide": _quotient(operator.floordiv),
        "modulo": _quotient(operator.mod),
        "equal": _comparison(operator.eq),
        "not_equal": _comparison(operator.ne),
        "less": _comparison(operator.lt),
        "less_equal": _comparison(operator.le),
        "greater": _comparison(operator.gt),
        "greater_equal": _comparison(operator.ge),
        "is_distinct_from": _distinctness(operator.ne),
        "is_not_distinct_from": _distinctness(operator.eq),
        "and": _connective(decisive=False),
        "or": _connective(decisive=True),
        "not": _not,
        "is_null": _is_null,
        "is_not_null": _is_not_null,
        "coalesce": _coalesce,
        "case": _case,
        "concat": _concat,
        **DATE_CALLS,
        **TEXT_CALLS,
    }
)
