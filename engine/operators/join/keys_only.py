"""Semi, anti and mark joins that ask of build rows only which keys there are: each key is held once."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Generic

from bamquery.engine.device import Frame
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.operators.join.build_side import (
    KeyFacts,
    collect_build_side,
    distinct_key_frames,
    make_existence_side,
)
from bamquery.engine.operators.join.hybrid_hash import HybridHashJoin
from bamquery.engine.operators.join.in_memory import InMemoryJoin
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.strategy import JoinTask, ProbeRows
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field


class KeysOnlyJoin(Generic[Frame]):
    """A `JoinStrategy`; without keys, it asks whether there is a row at all."""

    def __init__(self, task: JoinTask[Frame], summary: KeySummary[Frame]) -> None:
        """`summary` is told of each build key."""
        self._task = task
        self._summary = summary
        self._facts = KeyFacts(task.context, task.condition)

    def join(self, probe: ProbeRows[Frame], build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """See `JoinStrategy`."""
        task, context, condition = self._task, self._task.context, self._task.condition
        if not condition.build_keys:
            side = make_existence_side(context, build)
            yield from InMemoryJoin(task, self._summary).join_sides(probe, [side])
            return
        fields = [Field("key", key.type) for key in condition.build_keys]
        columns = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(fields))
        over_keys = replace(task, build_fields=fields, condition=replace(condition, build_keys=columns))
        with (
            context.memory.reservation("JOIN") as grouping,
            closing(
                distinct_key_frames(
                    context, build, task.build_fields, condition, memory=grouping, profile=task.profile
                )
            ) as keys,
            closing(self._facts.note_keys(keys)) as frames,
        ):
            yield from self._join_keys(over_keys, self._summary, probe, frames)

    def _join_keys(
        self,
        task: JoinTask[Frame],
        summary: KeySummary[Frame],
        probe: ProbeRows[Frame],
        keys: Generator[Frame, None, None],
    ) -> Generator[Frame, None, None]:
        """All different keys, or those of one partition."""
        frames, beyond = collect_build_side(task.context, keys, task.memory)
        if beyond is None:
            summary.add_all_keys(frames)
            nothing = task.context.device.empty(task.build_fields)
            side = self._facts.make_build_side([nothing, *frames], task.memory)
            del frames
            yield from InMemoryJoin(task, summary).join_sides(probe, [side])
        else:
            rows = summary.observe_keys(chain(drain_list(frames), [beyond], keys))
            yield from HybridHashJoin(task, summary, self._join_keys).join(probe, rows)
