"""Joins whose build side fits in memory: it is in hash tables, and the probe side streams past them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Final, Generic

from bamquery.engine.device import Frame
from bamquery.engine.execution.ordered_map import are_small_frames, ordered_map
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, gather_frames
from bamquery.engine.operators.join.build_side import (
    MEMORY_LEVEL,
    BuildSide,
    concatenate_columns,
    make_build_partitions,
    make_build_side,
)
from bamquery.engine.operators.join.dense_build import make_dense_build
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.one_build_row import OneBuildRow
from bamquery.engine.operators.join.partitions import PARTITIONS
from bamquery.engine.operators.join.probe import JoinProbe
from bamquery.engine.operators.join.strategy import JoinTask, ProbeRows

_MOST_ROWS: Final = 1 << 30
"""Build rows that a device finds in one table which is not the host's: all that its columns have room for."""
_MANY_ROWS: Final = 1 << 22
"""Build rows beyond which a table of all takes long, without a chance to stop, and is slow to look up in."""
_AT_ONCE: Final = 4
"""Portions of a chunk's pairs that a thread makes ahead; a chunk with more is finished one by one."""
_NOTES_MATCHES: Final = ("right", "full")
"""Kinds whose probes note which build rows were matched, and so are of one run."""


class InMemoryJoin(Generic[Frame]):
    """A `JoinStrategy` for build rows that have been counted in the task's memory."""

    def __init__(self, task: JoinTask[Frame], summary: KeySummary[Frame]) -> None:
        """`summary` is told of each build key."""
        self._task = task
        self._summary = summary

    def join(self, probe: ProbeRows[Frame], build: Iterable[Frame]) -> Generator[Frame, None, None]:
        """See `JoinStrategy`."""
        yield from self.join_sides(probe, self.make_sides(list(build)))

    def join_sides(
        self, probe: ProbeRows[Frame], sides: Sequence[BuildSide[Frame]]
    ) -> Generator[Frame, None, None]:
        """The same where the summary knows the keys, and the build rows are ready to be found."""
        task = self._task
        if task.kept is not None:
            task.kept.sides = sides
        build_rows = sum(side.rows for side in sides)
        task.add_figure("build_rows", build_rows)
        task.profile.details["peak_memory"] = task.memory.peak
        if task.gives_nothing(build_rows):
            return
        task.require_single(build_rows)
        self._summary.publish()
        one = OneBuildRow.of_join(task, sides[0]) if build_rows == len(sides) == 1 else None
        yield from probe_sides(task, probe, sides) if one is None else one.rows(probe)

    def make_sides(self, frames: list[Frame]) -> Sequence[BuildSide[Frame]]:
        """All build rows, ready to be found; the list may be emptied."""
        task, context, condition = self._task, self._task.context, self._task.condition
        device = context.device
        context.check_cancelled()
        self._summary.add_all(frames)
        rows = sum(map(device.row_count, frames))
        most = _MANY_ROWS if device.capabilities.on_host else _MOST_ROWS
        if task.level == 0 and condition.build_keys and rows > most:
            whole = make_dense_build(context, frames, len(task.build_fields), condition, task.memory)
            if whole is not None:
                return [whole]
            return make_build_partitions(context, frames, condition, task.memory)
        no_pairs = task.kind != "mark" and condition.is_never_true
        columns = len(task.build_fields)
        frames = [concatenate_columns(context, [device.empty(task.build_fields), *frames], columns)]
        return [
            make_build_side(context, frames, condition, task.memory, no_pairs=no_pairs, encodes=task.encodes)
        ]


def probe_sides(
    task: JoinTask[Frame], probe: ProbeRows[Frame], sides: Sequence[BuildSide[Frame]]
) -> Generator[Frame, None, None]:
    """What becomes of probe rows, and of unmatched ones of the build side, which may be partitioned."""
    kept = task.kept
    probes = kept.probes if kept is not None else []
    if not probes:
        columns = len(task.probe_fields)
        probes = [JoinProbe(task.context, side, task.kind, task.condition, columns) for side in sides]
        if kept is not None and task.kind not in _NOTES_MATCHES:
            kept.probes = probes
    with closing(probe()) as frames:
        yield from _stream(task, frames, probes)
    if any(one.gives_unmatched for one in probes):
        nothing = task.context.device.empty(task.probe_fields)
        for one in probes:
            yield from one.unmatched_rows(nothing)


def _stream(
    task: JoinTask[Frame], frames: Iterable[Frame], probes: Sequence[JoinProbe[Frame]]
) -> Generator[Frame, None, None]:
    context, device = task.context, task.context.device

    def start_frame(gathered: Sequence[Frame]) -> Iterator[Frame]:
        frame = device.concatenate(gathered)
        if len(probes) == 1:
            rows = probes[0].probe(frame)
        else:
            keys = device.evaluate(task.condition.probe_keys, frame)
            pieces = zip(probes, device.partition(frame, keys, PARTITIONS, MEMORY_LEVEL), strict=True)
            rows = coalesce_frames(context, chain.from_iterable(one.probe(piece) for one, piece in pieces))
        return chain(list(islice(rows, _AT_ONCE)), rows)

    is_small = partial(are_small_frames, device)
    with (
        closing(gather_frames(context, frames)) as chunks,
        closing(ordered_map(context, start_frame, chunks, is_small=is_small)) as answers,
    ):
        for answer in answers:
            yield from filter(device.row_count, answer)
