"""Expressions computed over one record batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import cast as typed

import pyarrow as pa

from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.conditions import FORMS
from bamquery.engine.cpu.frames import decoded
from bamquery.engine.cpu.functions import FUNCTIONS, NULLS_MATTER
from bamquery.engine.cpu.kernels import Column, Constant, Datum, column_of, nulls, take
from bamquery.engine.cpu.literal_sets import LONG, literal_set
from bamquery.engine.cpu.member_sets import among
from bamquery.engine.cpu.once import once
from bamquery.engine.cpu.small_expressions import is_nested, nested
from bamquery.errors import ExecutionError, placed_at
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members


def evaluate_columns(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[Column]:
    """One column per expression, of its type. No rows, no errors.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    if not batch.num_rows:
        return [nulls(0, expression.type) for expression in expressions]
    with once():
        return [column_of(evaluate(expression, batch), batch.num_rows) for expression in expressions]


def evaluate(expression: Expression, batch: pa.RecordBatch) -> Datum:
    """The expression's value for each row, or one for all of at least one row.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    match expression:
        case ColumnRef(index=index):
            return batch.column(index)
        case Literal(value=value):
            return value
        case Cast(argument=argument, type=kind, try_=try_, place=place):
            with placed_at(place):
                return _cast(evaluate(argument, batch), kind, try_=try_)
        case Call(function=name, arguments=arguments, type=kind) if name in FORMS:
            return FORMS[name](arguments, kind, batch, evaluate)
        case Call(function="in", arguments=(argument, Members() as members)):
            return among(column_of(evaluate(argument, batch), batch.num_rows), members)
        case Call(function="in", arguments=arguments) if len(arguments) > LONG:
            return _in(expression, batch)
        case Call(function=name, arguments=arguments, type=kind):
            small = nested(expression, batch) if is_nested(expression) else None
            if small is not None:
                return small
            return _call(name, [evaluate(argument, batch) for argument in arguments], kind)
        case Members():
            raise AssertionError("members are looked among, not computed")


def _in(call: Call, batch: pa.RecordBatch) -> Datum:
    value = evaluate(call.arguments[0], batch)
    members = literal_set(call)
    if members is not None and isinstance(value, pa.Array) and value.type == members.type:
        return among(value, members)
    return _call("in", [value, *(evaluate(member, batch) for member in call.arguments[1:])], call.type)


def _cast(datum: Datum, kind: pa.DataType, *, try_: bool) -> Datum:
    if isinstance(datum, pa.Array):
        return cast(datum, kind, try_=try_)
    return typed(Constant, cast(column_of(datum, 1), kind, try_=try_)[0])


def _call(name: str, arguments: list[Datum], kind: pa.DataType) -> Datum:
    arrays = [i for i, argument in enumerate(arguments) if isinstance(argument, pa.Array)]
    if not arrays:
        # Kernels want one array; the others stay constants, since some functions take literals only.
        place = 1 if name in ("date_part", "date_trunc") else 0
        arguments[place] = column_of(arguments[place], 1)
        return typed(Constant, _apply(name, arguments, kind)[0])
    if len(arrays) == 1 and name not in NULLS_MATTER:
        column = arguments[arrays[0]]
        if isinstance(column, pa.DictionaryArray):
            return _over_dictionary(name, arguments, arrays[0], column, kind)
    return _apply(name, arguments, kind)


def _apply(name: str, arguments: list[Datum], kind: pa.DataType) -> Column:
    plain = [decoded(argument) if isinstance(argument, pa.Array) else argument for argument in arguments]
    try:
        result = FUNCTIONS[name](plain, kind)
    except pa.ArrowInvalid as error:  # a pattern too long for a regular expression, say
        raise ExecutionError(f"{name}: {error}") from None
    assert result.type == kind, f"{name} gave {result.type} for {kind}"
    return result


def _over_dictionary(
    name: str, arguments: list[Datum], place: int, column: pa.DictionaryArray[Any, Any], kind: pa.DataType
) -> Column:
    """Each dictionary value once; rows decide only where a value fails, since no row may use it."""
    try:
        values: list[Datum] = [*arguments[:place], column.dictionary, *arguments[place + 1 :]]
        return take(_apply(name, values, kind), column.indices)
    except ExecutionError:
        return _apply(name, arguments, kind)
