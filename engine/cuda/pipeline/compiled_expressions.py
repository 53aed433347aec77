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
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.pipeline.outputs import may_be_kept, program_of
from bamquery.errors import MemoryLimitError
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
    program, places = _find_program(tuple(expressions)) if frame.rows else (None, ())
    columns = None if program is None else program.evaluate(kernels, frame)
    try:
        return _rest_by_operators(kernels, expressions, frame, places, columns)
    except (MemoryError, MemoryLimitError):
        if program is None or columns is not None:
            raise
    # What operators make between their steps has no room; a program makes nothing of the kind.
    columns = program.evaluate(kernels, frame, waits=True)
    return _rest_by_operators(kernels, expressions, frame, places, columns)


def start_compiling(
    session: CudaSession, expressions: Sequence[Expression], nullable: Sequence[bool | None]
) -> None:
    """Begin with the kernel that `compiled_columns` will take; see `GpuProgram.start_compiling`."""
    program, _ = _find_program(tuple(expressions))
    if program is not None:
        program.start_compiling(session, nullable)


def _rest_by_operators(
    kernels: Kernels,
    expressions: Sequence[Expression],
    frame: CudaFrame,
    places: Sequence[int],
    columns: Sequence[plc.Column] | None,
) -> list[plc.Column]:
    """All columns, of which a program has computed those of some places, or none."""
    found: list[plc.Column | None] = [None] * len(expressions)
    if columns is not None:
        for place, column in zip(places, columns, strict=True):
            found[place] = column
    left = [expression for expression, column in zip(expressions, found, strict=True) if column is None]
    rest = iter(evaluate_columns(kernels, left, frame))
    return [next(rest) if column is None else column for column in found]


def _find_program(expressions: tuple[Expression, ...]) -> tuple[GpuProgram | None, tuple[int, ...]]:
    """As `_compile`, if it may be kept; else the operators compute all."""
    return _compile(expressions) if may_be_kept(expressions) else (None, ())


@functools.lru_cache(maxsize=_KEPT)
def _compile(expressions: tuple[Expression, ...]) -> tuple[GpuProgram | None, tuple[int, ...]]:
    """A program for those of the expressions that it computes, and which these are."""
    found = program_of(expressions, _LEAST_OPERATIONS)
    if found is None:
        return None, ()
    program, places = found
    made = GpuProgram(program, [expressions[place].type for place in places])
    return (made, places) if made.fits else (None, ())
