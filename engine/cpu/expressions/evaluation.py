"""Expressions computed over one record batch."""

# ruff: noqa: PLC0415 (functions and casts are imported when an expression first has one)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import cast as typed

import pyarrow as pa

from bamquery.engine.cpu.frame_memo import memo_scope
from bamquery.engine.cpu.frames import concatenate_columns, decode_dictionary_in_room
from bamquery.engine.cpu.kernels import Column, Constant, Datum, as_column, nulls, take_shared
from bamquery.engine.execution.string_limits import LargeStringError, current_string_limits
from bamquery.errors import ExecutionError, attach_place
from bamquery.function_catalog.plan_functions import SCALAR_FUNCTIONS
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members
from bamquery.statement_context.cancellation import check_cancelled


def evaluate_columns(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[Column]:
    """One column per expression, of its type. No rows, no errors.

    Raises:
        ExecutionError: a value cannot be computed.
        LargeStringError: the columns have more text than a thread may make.
    """
    if not batch.num_rows:
        return [nulls(0, expression.type) for expression in expressions]
    try:
        return _evaluate_at_once(expressions, batch)
    except LargeStringError:
        if batch.num_rows == 1:
            raise
    return _evaluate_in_pieces(expressions, batch)


def _evaluate_at_once(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[Column]:
    with memo_scope():
        return [as_column(evaluate(expression, batch), batch.num_rows) for expression in expressions]


def _evaluate_in_pieces(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[Column]:
    """The columns where strings on the way to them are too large to be there for all rows at once."""
    bounds = current_string_limits()
    found: list[list[Column]] = []
    start, count, size = 0, batch.num_rows // 2, 0
    while start < batch.num_rows:
        check_cancelled()
        piece = batch.slice(start, count)
        try:
            columns = _evaluate_at_once(expressions, piece)
        except LargeStringError:
            if piece.num_rows == 1:
                raise
            count = piece.num_rows // 2
            continue
        found.append(columns)
        start += piece.num_rows
        size += sum(column.nbytes for column in columns)
        if size > bounds.answer and start < batch.num_rows:
            raise LargeStringError(
                f"strings of {batch.num_rows:,} rows take more than {bounds.answer:,} bytes, the part of "
                "memory_limit for those of one thread. Raise it with SET memory_limit = '...'"
            )
    return [concatenate_columns(columns) for columns in zip(*found, strict=True)]


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
            values = evaluate(argument, batch)
            with attach_place(place):
                return _cast(values, kind, try_=try_)
        case Call():
            check_cancelled()  # there may be tens of thousands of them
            return _evaluate_call(expression, batch)
        case Members():
            raise AssertionError("members are looked among, not computed")


def _evaluate_call(call: Call, batch: pa.RecordBatch) -> Datum:
    from bamquery.engine.cpu.expressions.conditions import FORMS
    from bamquery.engine.cpu.expressions.literal_sets import LONG
    from bamquery.engine.cpu.expressions.nested_decimals import evaluate_nested, is_nested

    match call:
        case Call(function=name, arguments=arguments, type=kind) if name in FORMS:
            return FORMS[name](arguments, kind, batch, evaluate)
        case Call(function="in", arguments=(argument, Members() as members)):
            from bamquery.engine.cpu.expressions.member_sets import is_member

            return is_member(as_column(evaluate(argument, batch), batch.num_rows), members)
        case Call(function="in", arguments=arguments) if len(arguments) > LONG:
            return _evaluate_in(call, batch)
    small = evaluate_nested(call, batch) if is_nested(call) else None
    if small is not None:
        return small
    return _call(call.function, [evaluate(argument, batch) for argument in call.arguments], call.type)


def _evaluate_in(call: Call, batch: pa.RecordBatch) -> Datum:
    from bamquery.engine.cpu.expressions.literal_sets import literal_set
    from bamquery.engine.cpu.expressions.member_sets import is_member

    value = evaluate(call.arguments[0], batch)
    members = literal_set(call)
    if members is not None and isinstance(value, pa.Array) and value.type == members.type:
        return is_member(value, members)
    return _call("in", [value, *(evaluate(member, batch) for member in call.arguments[1:])], call.type)


def _cast(datum: Datum, kind: pa.DataType, *, try_: bool) -> Datum:
    from bamquery.engine.cpu.casts.cast import cast

    if isinstance(datum, pa.Array):
        return cast(datum, kind, try_=try_)
    return typed(Constant, cast(as_column(datum, 1), kind, try_=try_)[0])


def _call(name: str, arguments: list[Datum], kind: pa.DataType) -> Datum:
    arrays = [i for i, argument in enumerate(arguments) if isinstance(argument, pa.Array)]
    if not arrays:
        # Kernels want one array; the others stay constants, since some functions take literals only.
        place = 1 if name in ("date_part", "date_trunc") else 0
        arguments[place] = as_column(arguments[place], 1)
        return typed(Constant, _apply(name, arguments, kind)[0])
    if len(arrays) == 1 and SCALAR_FUNCTIONS[name].strict:
        column = arguments[arrays[0]]
        if isinstance(column, pa.DictionaryArray):
            return _apply_to_dictionary(name, arguments, arrays[0], column, kind)
    return _apply(name, arguments, kind)


def _apply(name: str, arguments: list[Datum], kind: pa.DataType) -> Column:
    from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS

    plain = [decode_dictionary_in_room(one) if isinstance(one, pa.Array) else one for one in arguments]
    try:
        result = FUNCTIONS[name](plain, kind)
    except pa.ArrowInvalid as error:  # a pattern too long for a regular expression, say
        raise ExecutionError(f"{name}: {error}") from None
    assert result.type == kind, f"{name} gave {result.type} for {kind}"
    return result


def _apply_to_dictionary(
    name: str, arguments: list[Datum], place: int, column: pa.DictionaryArray[Any, Any], kind: pa.DataType
) -> Column:
    """Each dictionary value once; rows decide only where a value fails, since no row may use it."""
    try:
        values: list[Datum] = [*arguments[:place], column.dictionary, *arguments[place + 1 :]]
        return take_shared(_apply(name, values, kind), column.indices)
    except ExecutionError:
        return _apply(name, arguments, kind)
