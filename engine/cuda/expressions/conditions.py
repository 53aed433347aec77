"""Expressions whose arguments count on some rows only: case, coalesce, and, or.

As on the CPU, an argument is first computed for all rows; only if that fails is it computed for the rows that
need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Datum, Kernels
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Expression

Evaluate: TypeAlias = Callable[[Kernels, Expression, CudaFrame], Datum]
Form: TypeAlias = Callable[[Kernels, Sequence[Expression], pa.DataType, CudaFrame, Evaluate], Datum]


def _compute_where(
    kernels: Kernels,
    expression: Expression,
    frame: CudaFrame,
    evaluate: Evaluate,
    needed: Callable[[], plc.Column],
) -> Datum:
    """The expression's value on rows where `needed()` is true; anything on the others."""
    try:
        return evaluate(kernels, expression, frame)
    except ExecutionError:
        wanted = kernels.fill_null(needed())
        places, *_ = kernels.keep([kernels.positions(frame.rows)], wanted)
        if places.size() == frame.rows:
            raise
        kind = value_type(expression.type)
        nothing = kernels.nulls(frame.rows, kind)
        if not places.size():
            return nothing
        subset = kernels.filter_frame(frame, wanted)
        values = kernels.column(evaluate(kernels, expression, subset), subset.rows)
        spread = plc.copying.scatter(
            plc.Table([values]), places, plc.Table([nothing]), stream=kernels.stream, mr=kernels.memory
        )
        return spread.columns()[0]


def _case(
    kernels: Kernels,
    arguments: Sequence[Expression],
    kind: pa.DataType,
    frame: CudaFrame,
    evaluate: Evaluate,
) -> Datum:
    undecided = kernels.repeat_scalar(kernels.truth(True), frame.rows)
    branches: list[tuple[plc.Column, Datum]] = []
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        found = _compute_where(kernels, condition, frame, evaluate, partial(_unchanged_mask, undecided))
        met = kernels.fill_null(kernels.column(found, frame.rows))
        taken = kernels.logical_and(undecided, met)
        branches.append(
            (taken, _compute_where(kernels, value, frame, evaluate, partial(_unchanged_mask, taken)))
        )
        undecided = kernels.logical_and(undecided, kernels.invert(met))
    result = _compute_where(kernels, arguments[-1], frame, evaluate, partial(_unchanged_mask, undecided))
    for taken, chosen in reversed(branches):
        result = kernels.where(taken, kernels.side(chosen), kernels.side(result))
    return result


def _coalesce(
    kernels: Kernels,
    arguments: Sequence[Expression],
    kind: pa.DataType,
    frame: CudaFrame,
    evaluate: Evaluate,
) -> Datum:
    result = kernels.column(evaluate(kernels, arguments[0], frame), frame.rows)
    for argument in arguments[1:]:
        if not result.null_count():
            break
        missing = kernels.is_null(result)
        value = _compute_where(kernels, argument, frame, evaluate, partial(_unchanged_mask, missing))
        result = kernels.where(missing, kernels.side(value), result)
    return result


def _unchanged_mask(mask: plc.Column) -> plc.Column:
    return mask


def _junction(*, settled: bool) -> Form:
    """AND and OR: an argument matters where those before have not settled the answer."""

    def apply(
        kernels: Kernels,
        arguments: Sequence[Expression],
        kind: pa.DataType,
        frame: CudaFrame,
        evaluate: Evaluate,
    ) -> Datum:
        result = kernels.column(evaluate(kernels, arguments[0], frame), frame.rows)
        for argument in arguments[1:]:
            before = result

            def open_rows(so_far: plc.Column = before) -> plc.Column:
                decided = so_far if settled else kernels.invert(so_far)
                return kernels.invert(kernels.fill_null(decided))

            value = kernels.side(_compute_where(kernels, argument, frame, evaluate, open_rows))
            result = kernels.logical_or(result, value) if settled else kernels.logical_and(result, value)
        return result

    return apply


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "case": _case,
        "coalesce": _coalesce,
        "and": _junction(settled=False),
        "or": _junction(settled=True),
    }
)
