"""Aggregates over frames that compare strings or choose one: of numbers that stand for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.aggregation import CudaGroups
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.keys.portions import is_string
from bamquery.engine.cuda.windows.ranks import rank_values
from bamquery.engine.windows.rows import Outside
from bamquery.plan.expressions import AggregateCall, ColumnRef


@dataclass(frozen=True)
class OfRanks:
    """A call over numbers instead of strings.

    Attributes:
        call: that, over the columns of `frame`.
        frame: the rows, with columns of numbers behind theirs.
        outside: the states of what is before the rows and behind them, with the same numbers.
        strings: what the call's value is the number of; None: it is the value itself.
    """

    call: AggregateCall
    frame: CudaFrame
    outside: Outside | None
    strings: plc.Column | None = None


def number_strings(
    kernels: Kernels, call: AggregateCall, frame: CudaFrame, outside: Outside | None
) -> OfRanks:
    """The call with numbers for its strings; as it is where it has none that are compared.

    The columns of a state that are strings are those of the row's arguments and sort keys in the same places.

    Raises:
        ExecutionError: an argument cannot be computed.
    """
    inputs = [*call.arguments, *(key.expression for key in call.order)]
    places = [place for place, value in enumerate(inputs) if _is_string(value.type)]
    if call.function == "string_agg":  # which gives what no row has
        places = [place for place in places if place]
    elif call.function == "count" and not call.distinct:
        places = []
    columns, sides = [*frame.columns], list(outside or ())
    strings: plc.Column | None = None
    for place in places:
        kind = value_type(inputs[place].type)
        (own,) = evaluate_columns(kernels, [inputs[place]], frame)
        states = [side for side in sides if side is not None and _has_string(side, place)]
        (numbers, *others), values = _numbers(
            kernels, [own, *(state.aggregates[0][place] for state in states)], kind
        )
        inputs[place] = ColumnRef(len(columns), "rank", pa.int64())
        columns.append(numbers)
        known = {
            id(state): _replace_strings(state, place, n) for state, n in zip(states, others, strict=True)
        }
        sides = [known.get(id(side), side) for side in sides]
        if place == 0 and _is_string(call.type):
            strings = values
    if not places:
        return OfRanks(call, frame, outside)
    count = len(call.arguments)
    keys = tuple(
        replace(key, expression=value) for key, value in zip(call.order, inputs[count:], strict=True)
    )
    kind = call.type if strings is None else pa.int64()
    coded = replace(call, arguments=tuple(inputs[:count]), order=keys, type=kind)
    given = None if outside is None else (sides[0], sides[1])
    return OfRanks(coded, make_frame(columns, frame.rows), given, strings)


def _numbers(
    kernels: Kernels, pieces: list[plc.Column], kind: pa.DataType
) -> tuple[list[plc.Column], plc.Column]:
    """Numbers of strings in several columns, null for null, and the strings by number."""
    column = kernels.concatenate(pieces)
    ranks = rank_values(kernels, Operand(kind, column))
    numbers = ranks.numbers.column
    if column.null_count():
        numbers = kernels.null_where(kernels.is_null(column), numbers, pa.int64())
    found: list[plc.Column] = []
    start = 0
    for piece in pieces:
        found.append(kernels.slice_column(numbers, start, start + piece.size()))
        start += piece.size()
    return found, ranks.values


def _is_string(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _has_string(state: CudaGroups, place: int) -> bool:
    columns = state.aggregates[0]
    return place < len(columns) and is_string(columns[place])


def _replace_strings(state: CudaGroups, place: int, numbers: plc.Column) -> CudaGroups:
    (columns,) = state.aggregates
    return replace(state, aggregates=((*columns[:place], numbers, *columns[place + 1 :]),))
