"""The probe side of a join read before the build side: where it has few rows, others need not be held."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter, has_ordered_bounds
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.plan.format import expression_text
from bamquery.plan.nodes import JoinKind

MOST_ROWS: Final = 1 << 20
"""Probe rows up to which they are kept; their keys are collected up to as many."""


def build_side_filters(
    build: Operator[Any], kind: JoinKind, condition: JoinCondition
) -> Mapping[int, DynamicFilter]:
    """A filter for each key, by its number, that some scan below the build side has taken.

    None for kinds that ask more of build rows than which ones have a probe row's keys: unmatched ones,
    or where a null among them makes the answer null.
    """
    asks_for_keys = kind in ("semi", "anti", "single") or (kind == "mark" and all(condition.nulls_equal))
    taken = {}
    if asks_for_keys:
        for number, (key, probe_key) in enumerate(
            zip(condition.build_keys, condition.probe_keys, strict=True)
        ):
            dynamic_filter = DynamicFilter(f"keys of a join, {expression_text(probe_key)}")
            if has_ordered_bounds(key.type) and build.push_dynamic_filter(key, dynamic_filter):
                taken[number] = dynamic_filter
    return taken


@contextmanager
def probe_first(
    context: ExecutionContext[Frame],
    probe: Operator[Frame],
    condition: JoinCondition,
    filters: Mapping[int, DynamicFilter],
) -> Iterator[Callable[[], Generator[Frame, None, None]] | None]:
    """Probe rows, to be asked for once; None where there are none. Filters have been told their keys.

    Beyond some number of rows, or where memory ends, the rest is read when it is asked for, and filters stay
    empty.
    """
    device = context.device
    turned = JoinCondition(condition.build_keys, condition.probe_keys, condition.nulls_equal)
    with (
        context.memory.reservation("JOIN") as memory,
        closing(probe.frames(context)) as frames,
        ExitStack() as stack,
    ):
        kept: list[Frame] = []
        rows = size = 0
        complete = True
        for frame in frames:
            kept.append(frame)
            rows += device.row_count(frame)
            size += device.nbytes(frame)
            if rows > MOST_ROWS or not memory.fits(size):
                complete = False
                break
        if complete and rows:
            summary = stack.enter_context(KeySummary(context, turned, filters))
            for frame in kept:
                context.check_cancelled()
                summary.add(frame)
            summary.publish()

        def replay() -> Generator[Frame, None, None]:
            yield from drain_list(kept)
            yield from frames

        yield replay if rows or not complete else None
