"""Expressions whose arguments count on some rows only: case, coalesce, and, or.

An argument is first computed for all rows, which is the fastest. Only if that fails is it computed for the
rows that need it, so `CASE WHEN x <> 0 THEN 1 // x END` and `x > 0 AND ln(x) > 1` see no error that SQL
would not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.frames import as_type, decode_dictionary_in_room
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    as_column,
    boolean_values,
    compute,
    constant,
    fill_null,
    filter_batch,
    nulls,
    take_shared,
    where,
)
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Expression, Literal

Evaluate: TypeAlias = Callable[[Expression, pa.RecordBatch], Datum]
Form: TypeAlias = Callable[[Sequence[Expression], pa.DataType, pa.RecordBatch, Evaluate], Datum]

_MOST_RESULTS: Final = 127
"""Whose places eight bits hold."""


def _compute_where(
    expression: Expression, batch: pa.RecordBatch, evaluate: Evaluate, needed: Callable[[], Column]
) -> Datum:
    """The expression's value on rows where `needed()` is true; anything on the others."""
    try:
        return _decode_datum(evaluate(expression, batch))
    except ExecutionError:
        mask = needed()
        wanted = boolean_values(mask)
        if wanted.all():
            raise
        if not wanted.any():
            return nulls(batch.num_rows, expression.type)
        subset = filter_batch(batch, mask)
        values = decode_dictionary_in_room(as_column(evaluate(expression, subset), subset.num_rows))
        return take_shared(values, pa.array(np.cumsum(wanted) - 1, mask=~wanted))


def _decode_datum(datum: Datum) -> Datum:
    return decode_dictionary_in_room(datum) if isinstance(datum, pa.Array) else datum


def _is_true(condition: Datum, rows: int) -> Column:
    return compute("coalesce", as_column(condition, rows), constant(False, pa.bool_()))


def _case(
    arguments: Sequence[Expression], kind: pa.DataType, batch: pa.RecordBatch, evaluate: Evaluate
) -> Datum:
    strings = chosen_literals(arguments, kind, batch, evaluate)
    if strings is not None:
        return decode_dictionary_in_room(strings)
    rows = batch.num_rows
    undecided = as_column(constant(True, pa.bool_()), rows)
    branches: list[tuple[Column, Datum]] = []
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        met = _is_true(_compute_where(condition, batch, evaluate, partial(_unchanged_mask, undecided)), rows)
        taken = compute("and", undecided, met)
        branches.append((taken, _compute_where(value, batch, evaluate, partial(_unchanged_mask, taken))))
        undecided = compute("and_not", undecided, met)
    result = _compute_where(arguments[-1], batch, evaluate, partial(_unchanged_mask, undecided))
    for taken, chosen in reversed(branches):
        result = where(taken, chosen, result)
    return as_type(as_column(result, rows), kind)


def chosen_literals(
    arguments: Sequence[Expression], kind: pa.DataType, batch: pa.RecordBatch, evaluate: Evaluate
) -> pa.DictionaryArray[Any, Any] | None:
    """CASE whose results are strings of the statement, as places among those; None if it is not such.

    Raises:
        ExecutionError: a condition cannot be computed.
    """
    results = [*arguments[1::2], arguments[-1]]
    if not pa.types.is_large_string(kind) or len(results) > _MOST_RESULTS:
        return None
    strings = [result.value for result in results if isinstance(result, Literal) and result.type == kind]
    if len(strings) < len(results):
        return None
    rows = batch.num_rows
    undecided = as_column(constant(True, pa.bool_()), rows)
    places: Datum = constant(len(results) - 1, pa.int8())
    taken: list[Column] = []
    for condition in arguments[:-1:2]:
        met = _is_true(_compute_where(condition, batch, evaluate, partial(_unchanged_mask, undecided)), rows)
        taken.append(compute("and", undecided, met))
        undecided = compute("and_not", undecided, met)
    for place in reversed(range(len(taken))):
        places = where(taken[place], constant(place, pa.int8()), places)
    return pa.DictionaryArray.from_arrays(as_column(places, rows), pa.array(strings, kind))


def _coalesce(
    arguments: Sequence[Expression], kind: pa.DataType, batch: pa.RecordBatch, evaluate: Evaluate
) -> Datum:
    result = as_column(_decode_datum(evaluate(arguments[0], batch)), batch.num_rows)
    for argument in arguments[1:]:
        if not result.null_count:
            break
        value = _compute_where(argument, batch, evaluate, partial(compute, "is_null", result))
        result = fill_null(result, value)
    return as_type(result, kind)


def _unchanged_mask(mask: Column) -> Column:
    return mask


def _junction(kernel: str, settled: bool) -> Form:
    """AND and OR: an argument matters where those before have not settled the answer."""

    def open_rows(so_far: Column) -> Column:
        decided = so_far if settled else compute("invert", so_far)
        return compute("invert", _is_true(decided, len(so_far)))

    def apply(
        arguments: Sequence[Expression], kind: pa.DataType, batch: pa.RecordBatch, evaluate: Evaluate
    ) -> Datum:
        rows = batch.num_rows
        result = as_column(evaluate(arguments[0], batch), rows)
        for argument in arguments[1:]:
            value = _compute_where(argument, batch, evaluate, partial(open_rows, result))
            result = compute(kernel, result, as_column(value, rows))
        return result

    return apply


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "case": _case,
        "coalesce": _coalesce,
        "and": _junction("and_kleene", settled=False),
        "or": _junction("or_kleene", settled=True),
    }
)
