"""Expressions as functions of numpy's arrays: those few that take as many calls as they have operations.

What cannot be computed is left to a device, with `LeftToDeviceError`: which error or null it is, is said in
one place only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.engine.operators.recursion.by_column.numbers import NUMBER_CALLS, alike, cast, move_moments
from bamquery.engine.operators.recursion.by_column.row_by_row import row_by_row
from bamquery.engine.operators.recursion.by_column.text_functions import text_function
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    TEXT,
    Column,
    ColumnFunction,
    Columns,
    MakeColumns,
    Valid,
    both,
    is_for_columns,
    numpy_type,
    with_bounds,
)
from bamquery.engine.operators.recursion.by_row.dates import SIGNS
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError, value_of
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

_MOST_MEMBERS: Final = 8
"""Of a list that IN looks among, one by one."""
_OF_CODES: Final = (operator.eq, operator.ne)
"""Comparisons that texts' numbers answer: they have no order."""


def column_function(expression: Expression, texts: TextCodes) -> ColumnFunction | None:
    """What gives the expression's values for columns of at least one row; None: it is not among these few.

    The function raises `LeftToDeviceError`. `texts`: those of the columns and of constants.
    """
    if not is_for_columns(expression.type):
        return None
    match expression:
        case ColumnRef(index=index):
            return itemgetter(index)
        case Literal():
            return _constant(expression, texts)
        case _:
            return (
                _arrays(expression, texts)
                or text_function(expression, texts, lambda part: column_function(part, texts))
                or row_by_row(expression, texts)
            )


def functions_of(expressions: Sequence[Expression], texts: TextCodes) -> list[ColumnFunction] | None:
    """Those of all; None where one has none."""
    found = [column_function(expression, texts) for expression in expressions]
    known = [function for function in found if function is not None]
    return known if len(known) == len(found) else None


def _arrays(expression: Expression, texts: TextCodes) -> ColumnFunction | None:
    """By as many calls of numpy as it has operations."""
    match expression:
        case Cast(argument=argument, type=kind, try_=False):
            return _call(cast, (argument,), kind, texts)
        case Call(function="in", arguments=(_, *members), type=kind) if len(members) <= _MOST_MEMBERS:
            return _call(_is_member, expression.arguments, kind, texts)
        case Call(function=name, arguments=(value, Literal() as span), type=kind) if name in SIGNS:
            return _call(move_moments(span, SIGNS[name]), (value,), kind, texts)
        case Call(function=name, arguments=arguments, type=kind) if name in _CALLS:
            return _call(_CALLS[name], arguments, kind, texts)
        case _:
            return None


def _call(
    make: MakeColumns, arguments: Sequence[Expression], kind: pa.DataType, texts: TextCodes
) -> ColumnFunction | None:
    functions = functions_of(arguments, texts)
    # What is made of constants alone is one, but for what a device has an error for.
    if functions is None or all(isinstance(argument, Literal) for argument in arguments):
        return None
    return make(functions, [argument.type for argument in arguments], kind)


def _constant(literal: Literal, texts: TextCodes) -> ColumnFunction | None:
    kind = literal.type
    try:
        value = value_of(literal.value)
        if kind == TEXT and value is not None:
            value = texts.codes_of(pa.array([value], kind))[0]
        # An array without a dimension: with numbers of Python or numpy an operation takes twice as long.
        values = np.array(0 if value is None else value, numpy_type(kind))
    except (LeftToDeviceError, OverflowError):
        return None
    found = with_bounds(values, None if value is not None else np.array(False), kind)
    return lambda columns: found


def _test(compare: Callable[..., Any]) -> MakeColumns:
    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction | None:
        left, right = functions
        if TEXT in kinds and compare not in _OF_CODES:
            return None

        def function(columns: Columns) -> Column:
            one, other = left(columns), right(columns)
            return Column(compare(one.values, other.values), both(one.valid, other.valid))

        return function if kinds[0] == kinds[1] else None

    return make


def _distinctness(*, distinct: bool) -> MakeColumns:
    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction | None:
        left, right = functions

        def function(columns: Columns) -> Column:
            one, other = left(columns), right(columns)
            same = one.values == other.values
            if one.valid is not None or other.valid is not None:
                here, there = _is_known(one), _is_known(other)
                same = (same & here & there) | ~(here | there)
            return Column(~same if distinct else same, None)

        return function if kinds[0] == kinds[1] else None

    return make


def _connective(decisive: bool) -> MakeColumns:
    """AND, which one false decides, and OR, which one true does."""

    def two(one: Column, other: Column) -> Column:
        combine = operator.or_ if decisive else operator.and_
        values = combine(one.values, other.values)
        if one.valid is None and other.valid is None:
            return Column(values, None)
        decided = [_known_as(column, decisive) for column in (one, other)]
        known = (_is_known(one) & _is_known(other)) | decided[0] | decided[1]
        return Column(np.where(decided[0] | decided[1], decisive, not decisive), known)

    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction | None:
        if any(each != pa.bool_() for each in kinds):
            return None
        return lambda columns: reduce(two, [argument(columns) for argument in functions])

    return make


def _is_known(column: Column) -> Any:
    """Which values are not null."""
    return np.True_ if column.valid is None else column.valid


def _known_as(column: Column, value: bool) -> Any:
    """Where it is that truth value, and not null."""
    same = column.values if value else ~column.values
    return same if column.valid is None else same & column.valid


def _not(
    functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> ColumnFunction:
    def function(columns: Columns) -> Column:
        column = functions[0](columns)
        return Column(~column.values, column.valid)

    return function


def _nullness(*, null: bool) -> MakeColumns:
    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction:
        def function(columns: Columns) -> Column:
            column = functions[0](columns)
            valid = np.ones(column.values.shape, np.bool_) if column.valid is None else column.valid
            return Column(~valid if null else valid, None)

        return function

    return make


def _choose(condition: Any, one: Column, other: Column) -> Column:
    """One where it is true, the other where it is not."""
    valid: Valid = None
    if one.valid is not None or other.valid is not None:
        valid = np.where(condition, _is_known(one), _is_known(other))
    values = np.where(condition, one.values, other.values)
    return Column(values, valid, min(one.low, other.low), max(one.high, other.high))


def _coalesce(
    functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> ColumnFunction:
    def two(one: Column, other: Column) -> Column:
        return one if one.valid is None else _choose(one.valid, one, other)

    return lambda columns: reduce(two, [argument(columns) for argument in functions])


def _case(
    functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> ColumnFunction | None:
    if len(functions) % 2 == 0 or any(each != kind for each in [*kinds[1::2], kinds[-1]]):
        return None
    branches = list(zip(functions[0:-1:2], functions[1::2], strict=True))

    def function(columns: Columns) -> Column:
        found = functions[-1](columns)
        for condition, value in reversed(branches):
            found = _choose(_known_as(condition(columns), True), value(columns), found)
        return found

    return function


def _is_member(
    functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> ColumnFunction | None:
    tests = [
        _test(operator.eq)((functions[0], member), (kinds[0], own), kind)
        for member, own in zip(functions[1:], kinds[1:], strict=True)
    ]
    known = [test for test in tests if test is not None]
    return _connective(True)(known, [kind] * len(known), kind) if len(known) == len(tests) else None


_CALLS: Final[Mapping[str, MakeColumns]] = MappingProxyType(
    {
        **NUMBER_CALLS,
        "equal": _test(operator.eq),
        "not_equal": _test(operator.ne),
        "less": _test(operator.lt),
        "less_equal": _test(operator.le),
        "greater": _test(operator.gt),
        "greater_equal": _test(operator.ge),
        "is_distinct_from": _distinctness(distinct=True),
        "is_not_distinct_from": _distinctness(distinct=False),
        "and": _connective(decisive=False),
        "or": _connective(decisive=True),
        "not": _not,
        "is_null": _nullness(null=True),
        "is_not_null": _nullness(null=False),
        "coalesce": alike(_coalesce),
        "case": _case,
    }
)
