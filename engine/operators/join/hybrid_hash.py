"""Joins whose build side does not fit in memory: both sides are partitioned by their keys, into files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from typing import Final, Generic, TypeAlias

from bamquery.engine.device import Frame
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.partitions import MOST_LEVELS, PARTITIONS, HashPartitions
from bamquery.engine.operators.join.strategy import JoinTask, ProbeRows

_ONE_KEY: Final = 0.9
"""Share of rows that come into one of many partitions where most of them have one key."""

JoinPartition: TypeAlias = Callable[
    [JoinTask[Frame], KeySummary[Frame], ProbeRows[Frame], Generator[Frame, None, None]],
    Generator[Frame, None, None],
]
"""Joins one partition by the strategy that is best for it."""


class HybridHashJoin(Generic[Frame]):
    """A `JoinStrategy` for sides with keys."""

    def __init__(
        self, task: JoinTask[Frame], summary: KeySummary[Frame], join_partition: JoinPartition[Frame]
    ) -> None:
        """`summary` knows each build key once the build rows have been read."""
        self._task = task
        self._summary = summary
        self._join_partition = join_partition

    def join(self, probe: ProbeRows[Frame], build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """See `JoinStrategy`."""
        task = self._task
        context, condition, level, profile = task.context, task.condition, task.level, task.profile
        with (
            HashPartitions(
                context, task.build_fields, condition.build_keys, level, profile
            ) as build_partitions,
            HashPartitions(
                context, task.probe_fields, condition.probe_keys, level, profile
            ) as probe_partitions,
            KeySummary(context, condition, {}) as nothing_to_add,
        ):
            build_partitions.fill(build)
            self._summary.publish()
            task.memory.resize(0)
            with closing(probe()) as frames:
                probe_partitions.fill(frames)
            task.add_figure("partitions", PARTITIONS)
            most = _ONE_KEY * sum(map(build_partitions.rows, range(PARTITIONS)))
            for number in range(PARTITIONS):
                below = MOST_LEVELS if build_partitions.rows(number) > most else level + 1
                rows = self._join_partition(
                    task.partition(below),
                    nothing_to_add,
                    partial(probe_partitions.frames, number),
                    build_partitions.frames(number),
                )
                yield from rows
                task.memory.resize(0)
