"""Expressions as programs, kept for the next statement that has the same."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import pylibcudf as plc

from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.pipeline.gpu_program import GpuProgram
from bamquery.engine.pipeline.outputs import program_of
from bamquery.plan.expressions import Expression

_KEPT: Final = 256
"""Programs: each is a few kilobytes."""
_LEAST_OPERATIONS: Final = 2
"""Of a program: one operation is one call of libcudf, for which nobody waits."""


def compiled_columns(
    kernels: Kernels, expressions: Sequence[Expression], frame: CudaFrame
) -> list[plc.Column]:
    """As `evaluate_columns`: one column per expression, by a program where there is one.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    found: list[plc.Column | None] = [None] * len(expressions)
    if frame.rows:
        program, places = _compile(tuple(expressions))
        columns = None if program is None else program.evaluate(kernels, frame)
        for place, column in zip(places if columns is not None else (), columns or (), strict=True):
            found[place] = column
    left = [expression for expression, column in zip(expressions, found, strict=True) if column is None]
    rest = iter(evaluate_columns(kernels, left, frame))
    return [next(rest) if column is None else column for column in found]


@functools.lru_cache(maxsize=_KEPT)
def _compile(expressions: tuple[Expression, ...]) -> tuple[GpuProgram | None, tuple[int, ...]]:
    """A program for those of the expressions that it computes, and which these are."""
    found = program_of(expressions, _LEAST_OPERATIONS)
    if found is None:
        return None, ()
    program, places = found
    made = GpuProgram(program, [expressions[place].type for place in places])
    return (made, places) if made.fits else (None, ())
