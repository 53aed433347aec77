"""Strings as places in a few different ones: grouping by those spares putting every row's text together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cpu.calendar import days_of
from bamquery.engine.cpu.expressions.conditions import chosen_literals
from bamquery.engine.cpu.expressions.evaluation import evaluate, evaluate_columns
from bamquery.engine.cpu.frames import decode_dictionary_in_room
from bamquery.engine.cpu.kernels import Column, Constant, as_column, concatenate, from_values, valid_rows
from bamquery.engine.cpu.temporal.instants import NAMES, column_of_names
from bamquery.plan.expressions import Call, Cast, Expression, Literal


def evaluate_encoded(expressions: Sequence[Expression], batch: pa.RecordBatch) -> list[Column]:
    """One column per expression, of its values; those that are a few strings have dictionaries.

    A dictionary's values may repeat, be null, or be used by no row.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    if not batch.num_rows:
        return evaluate_columns(expressions, batch)
    return [_encode(expression, batch) for expression in expressions]


def _encode(expression: Expression, batch: pa.RecordBatch) -> Column:
    match expression:
        case Call(function="case", arguments=arguments):
            chosen = chosen_literals(arguments, expression.type, batch, evaluate)
            if chosen is not None:
                return chosen
        case Call(function="coalesce", arguments=(argument, Literal(value=other))):
            found = _encode(argument, batch)
            if (
                isinstance(found, pa.DictionaryArray)
                and found.type.value_type == other.type == expression.type
            ):
                return _fill_nulls(found, other)
        case Cast(argument=argument, type=kind) if argument.type != kind == value_type(argument.type):
            return _encode(argument, batch)
        case Call(function=name, arguments=(argument,)) if name in NAMES:
            column = decode_dictionary_in_room(as_column(evaluate(argument, batch), batch.num_rows))
            names, place = NAMES[name]
            places = from_values(place(days_of(column)), pa.int64(), valid_rows(column))
            return pa.DictionaryArray.from_arrays(places, column_of_names(names))
    return as_column(evaluate(expression, batch), batch.num_rows)


def _fill_nulls(column: pa.DictionaryArray[Any, Any], other: Constant) -> Column:
    """The constant in place of nulls, of places and of values."""
    values = column.dictionary
    if not (column.null_count or values.null_count):
        return column
    indices: Any = column.indices.cast(pa.int32()).fill_null(len(values))
    return pa.DictionaryArray.from_arrays(
        indices, concatenate([values.fill_null(other), as_column(other, 1)])
    )
