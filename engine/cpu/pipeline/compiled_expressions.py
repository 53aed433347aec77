"""Expressions as programs, kept for the next statement that has the same."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cpu.stored_frame import StoredFrame, needed_batch
from bamquery.engine.device import ConditionProgram
from bamquery.engine.pipeline.outputs import may_be_kept, program_of
from bamquery.plan.expressions import ColumnRef, Expression, referenced_columns

if TYPE_CHECKING:
    from bamquery.storage.encodings.packed.selection import PackedSelection

_KEPT: Final = 256
"""Programs: each is a few kilobytes."""


def compiled_columns(
    expressions: Sequence[Expression], frame: pa.RecordBatch | StoredFrame
) -> list[Column | PackedSelection]:
    """As `evaluate_columns`: one column per expression, by a program where there is one.

    Columns that are only handed on stay as they are.
    """
    found: list[Column | PackedSelection | None] = [None] * len(expressions)
    if frame.num_rows:
        program, places = _find_program(tuple(expressions))
        columns = None if program is None else program.evaluate(frame)
        for place, column in zip(places if columns is not None else (), columns or (), strict=True):
            found[place] = column
    if isinstance(frame, StoredFrame) or frame.num_rows:
        column_of = frame.columns.__getitem__ if isinstance(frame, StoredFrame) else frame.column
        for place, expression in enumerate(expressions):
            if isinstance(expression, ColumnRef):
                found[place] = column_of(expression.index)
    left = [place for place, column in enumerate(found) if column is None]
    if left:
        others = [expressions[place] for place in left]
        rest = evaluate_columns(others, needed_batch(frame, referenced_columns(*others)))
        for place, column in zip(left, rest, strict=True):
            found[place] = column
    return cast("list[Column | PackedSelection]", found)


def compiled_positions(
    predicate: Expression, frame: pa.RecordBatch | StoredFrame
) -> NDArray[np.int64] | None:
    """Ascending positions of the rows for which a condition is true; None where there is no program."""
    if not frame.num_rows:
        return None
    program, _ = _find_program((predicate,))
    return None if program is None else program.select(frame)


def condition_program(condition: Expression) -> ConditionProgram | None:
    """The program of a condition; None where there is none, or one that needs more than columns."""
    program, _ = _find_program((condition,))
    return None if program is None else program.as_condition()


def compiled_mask(predicate: Expression, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """Whether a condition is true for each row, null where it is; None where there is no program."""
    if not batch.num_rows:
        return None
    program, _ = _find_program((predicate,))
    columns = None if program is None else program.evaluate(batch)
    if columns is None:
        return None
    assert isinstance(columns[0], pa.BooleanArray)
    return columns[0]


def _find_program(expressions: tuple[Expression, ...]) -> tuple[NativeProgram | None, tuple[int, ...]]:
    """As `_compile`, if it may be kept; else the operators compute all."""
    return _compile(expressions) if may_be_kept(expressions) else (None, ())


@functools.lru_cache(maxsize=_KEPT)
def _compile(expressions: tuple[Expression, ...]) -> tuple[NativeProgram | None, tuple[int, ...]]:
    """A program for those of the expressions that it computes, and which these are."""
    found = program_of(expressions)
    if found is None:
        return None, ()
    program, places = found
    return NativeProgram(program, [expressions[place].type for place in places]), places
