"""Build sides of joins that stand on each other, read in the order in which they tell most."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Generic, Protocol

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.build_side import BuildSide
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.strategy import KeptBuild


@dataclass(frozen=True, slots=True)
class CollectedBuild(Generic[Frame]):
    """Build rows, as far as they fit in memory.

    Attributes:
        frames: those that do; whoever uses them empties the list.
        beyond: the first that did not, if any.
        rest: those to come.
    """

    frames: list[Frame]
    beyond: Frame | None
    rest: Iterable[Frame]


@dataclass(frozen=True, slots=True)
class ReadBuild(Generic[Frame]):
    """Build rows that were read before anybody asked for the join's rows.

    Attributes:
        kept: what their memory is counted in.
        summary: of their keys.
        rows: where they did not fit in memory.
        sides: all of them, ready to be found; None: they did not fit.
        resources: closed once the join is done.
    """

    kept: KeptBuild[Frame]
    summary: KeySummary[Frame]
    rows: CollectedBuild[Frame]
    sides: Sequence[BuildSide[Frame]] | None
    resources: ExitStack


class ReadsAhead(Protocol[Frame]):
    """A join of a chain."""

    build_estimate: float

    def read_build(self, context: ExecutionContext[Frame]) -> bool:
        """Read build rows, and tell scans their keys; whether the join may have rows."""
        ...

    def forget_build(self) -> None:
        """Let go of what was read, if rows were never asked for."""
        ...


def read_builds(
    context: ExecutionContext[Frame],
    paths: Sequence[tuple[Operator[Frame], ...]],
    joins: Sequence[ReadsAhead[Frame]],
) -> bool:
    """Read the build sides of joins, those of few rows first: their keys are conditions of others' scans.

    `paths` lead from the first of the joins to each. False where one has no rows, and so none of them has.
    """
    order = sorted(range(len(joins)), key=lambda i: joins[i].build_estimate)
    for place in order:
        *above, operator = paths[place]
        started = time.perf_counter()
        with operator.measured() if above else nullcontext():  # it is measured already
            may_have_rows = joins[place].read_build(context)
        for one in above[1:]:
            one.count_seconds_below(time.perf_counter() - started)
        if not may_have_rows:
            return False
    return True
