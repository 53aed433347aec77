"""Joins: rows of two sides put together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.execution.spill_files import SpillFile, spilled_fields
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, drain_list
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.block_nested_loop import BlockNestedLoopJoin
from bamquery.engine.operators.join.build_side import (
    MEMORY_LEVEL,
    BuildSide,
    KeyFacts,
    collect_build_side,
    distinct_key_frames,
    make_build_partitions,
    make_build_side,
    make_existence_side,
)
from bamquery.engine.operators.join.device_join import several_rows_error
from bamquery.engine.operators.join.key_filter import KeySummary, key_filters, push_filter_to_sides
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.partitions import MOST_LEVELS, PARTITIONS, HashPartitions
from bamquery.engine.operators.join.probe import JoinProbe
from bamquery.engine.operators.join.probe_first import build_side_filters, probe_first
from bamquery.engine.profiling.query_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, walk
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field, JoinKind

_MANY_ROWS: Final = 1 << 22
"""Held rows beyond which a table of all takes long, without a chance to stop, and is slow to look up in."""
_ONE_KEY: Final = 0.9
"""Share of rows that come into one of many parts where most of them have one key."""
_AT_ONCE: Final = 4
"""Portions of a chunk's pairs that a thread makes ahead; a chunk with more is finished one by one."""

_GIVES_LONE: Final = ("right", "full")
"""Kinds that note which held rows were found."""
_GIVES_BUILD_ROWS: Final = ("inner", "left", "right", "full", "single")
"""Kinds whose rows have columns of held rows."""


class Join(Operator[Frame], Generic[Frame]):
    """Pairs of rows; holds the second child's rows and looks those of the first up, chunk by chunk.

    Where the held rows do not fit `memory_limit`, both sides are split by the hash of their keys into parts
    in files, which are joined one after the other.

    See `bamquery.plan.nodes.Join` for the kinds: the first child is its left side.
    """

    runs_again = True

    def __init__(
        self,
        probe: Operator[Frame],
        build: Operator[Frame],
        kind: JoinKind,
        condition: JoinCondition,
        fields: tuple[Field, ...],
    ) -> None:
        details = {"kind": kind, "keys": _keys(condition), "condition": _residual(condition)}
        name = "Hash join" if condition.probe_keys or condition.compared else "Nested loop join"
        super().__init__(fields, (probe, build), OperatorProfile(name, details))
        self._kind = kind
        self._condition = condition
        self.reservations = 2 if self._is_keys_only else 1  # keys are grouped, then found
        self._dynamic_filters: Mapping[int, DynamicFilter] = {}
        self._probe_first_filters: Mapping[int, DynamicFilter] = {}
        self._encodes = False
        self._keeps_build = False
        self._kept: list[BuildSide[Frame]] | None = None
        self._kept_memory: Reservation | None = None
        self._kept_rows: list[JoinProbe[Frame]] | None = None

    def keep_build(self) -> None:
        """Held rows are the same in each run: keep them where they fit in memory. Called before it runs."""
        self._keeps_build = True

    def read_again(self) -> Sequence[Operator[Frame]]:
        """The probed side only, where held rows have been kept."""
        return self.children if self._kept is None else self.children[:1]

    def let_go(self) -> None:
        """Held rows may go."""
        self._kept = self._kept_rows = None
        if self._kept_memory is not None:
            self._kept_memory.__exit__(None, None, None)
            self._kept_memory = None

    def filter_probe(self) -> None:
        """Once the held rows are known, let scans of the other side read less. Called before it runs."""
        self._dynamic_filters = key_filters(self.children[0], self._kind, self._condition)
        self.runs_again = not self._dynamic_filters

    def filter_build(self) -> bool:
        """Read probed rows first, so that scans of the held side read less; whether any can."""
        self._probe_first_filters = build_side_filters(self.children[1], self._kind, self._condition)
        if self._probe_first_filters:
            self.runs_again = False
            self.reservations += 1
            self.profile.details["reads_first"] = "left side"
        return bool(self._probe_first_filters)

    def push_dynamic_filter(self, value: Expression, late: DynamicFilter) -> bool:
        """To the side that it is about, where that side's rows come as they are."""
        return push_filter_to_sides(self.children, self._kind, self._condition, value, late)

    def encode_strings(self) -> None:
        """Those of held rows, and of the other side's where they are not compared here."""
        self._encodes = self._kind in _GIVES_BUILD_ROWS
        read = [
            *self._condition.probe_keys,
            *([self._condition.residual] if self._condition.residual else []),
        ]
        if self._encodes and not any(map(_reads_string, read)):
            self.children[0].encode_strings()

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, those of held rows without a partner last."""
        probe = self.children[0]
        if self._kept is not None:
            if not self._gives_nothing(self._kept):
                again = self._answers(context, lambda: probe.frames(context), self._kept, probe.fields)
                with closing(again) as rows:
                    yield from rows
            return
        self.profile.details["held_rows"] = 0
        if not self._probe_first_filters:
            yield from self._join_sides(context, lambda: probe.frames(context))
            return
        with probe_first(context, probe, self._condition, self._probe_first_filters) as probed:
            if probed is not None:
                yield from self._join_sides(context, probed)

    def _join_sides(
        self, context: ExecutionContext[Frame], probe: Callable[[], Generator[Frame, None, None]]
    ) -> Generator[Frame, None, None]:
        memory = context.memory.reservation("JOIN")
        try:
            with (
                closing(self.children[1].frames(context)) as frames,
                closing(self._join_level(context, probe, frames, memory, level=0)) as rows,
            ):
                yield from rows
        finally:
            if self._kept is None:
                memory.__exit__(None, None, None)
            else:
                self._kept_memory = memory

    def _join_level(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterator[Frame],
        memory: Reservation,
        *,
        level: int,
    ) -> Generator[Frame, None, None]:
        """All of both sides, or one of the parts that they were split into `level` times."""
        # Parts of what was split have told before.
        with (
            KeySummary(context, self._condition, {} if level else self._dynamic_filters) as summary,
            closing(self._choose_strategy(context, probe, build, memory, summary, level=level)) as rows,
        ):
            yield from rows

    def _choose_strategy(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterator[Frame],
        memory: Reservation,
        summary: KeySummary[Frame],
        *,
        level: int,
    ) -> Generator[Frame, None, None]:
        device = context.device
        # In parts, columns are as files give them back.
        fields, probe_fields = (
            spilled_fields(child.fields) if level else child.fields for child in reversed(self.children)
        )
        if self._is_keys_only:
            if self._condition.build_keys:
                with closing(self._join_keys_only(context, probe, build, memory, summary)) as rows:
                    yield from rows
                return
            builds = [make_existence_side(context, build)]
        else:
            with closing(coalesce_frames(context, build)) as chunks:
                frames, beyond = collect_build_side(context, chunks, memory)
                if beyond is not None:
                    # Nothing will be made of them: what is left of the memory is for the list of their keys.
                    memory.resize(min(memory.held, sum(map(device.nbytes, frames))))
                    all_rows = summary.observe_rows(chain(drain_list(frames), [beyond], chunks))
                    in_parts = self._hybrid_hash_join(context, probe, all_rows, memory, summary, level=level)
                    with closing(in_parts) as rows:
                        yield from rows
                    return
            for frame in frames:
                context.check_cancelled()
                summary.add(frame)
            many = _MANY_ROWS * device.task_size
            if level == 0 and self._condition.build_keys and _rows(device, frames) > many:
                builds = make_build_partitions(context, frames, self._condition, memory)
            else:
                no_pairs = self._kind != "mark" and self._condition.is_never_true
                frames = [device.empty(fields), *frames]
                builds = [
                    make_build_side(
                        context,
                        frames,
                        self._condition,
                        memory,
                        no_pairs=no_pairs,
                        encodes=self._encodes and not level,
                    )
                ]
        found = self._probe_in_memory(
            context, probe, builds, memory, summary, probe_fields=probe_fields, level=level
        )
        with closing(found) as rows:
            yield from rows

    def _probe_in_memory(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        builds: Sequence[BuildSide[Frame]],
        memory: Reservation,
        summary: KeySummary[Frame],
        *,
        probe_fields: Sequence[Field],
        level: int,
    ) -> Generator[Frame, None, None]:
        """What becomes of probed rows, and of held ones without a partner."""
        if self._keeps_build and not level:
            self._kept = list(builds)
        self.profile.details["held_rows"] += sum(held.rows for held in builds)
        self.profile.details["peak_memory"] = memory.peak
        if self._gives_nothing(builds):
            return
        self._check_single(builds[0].rows)
        summary.publish()
        with closing(self._answers(context, probe, builds, probe_fields)) as rows:
            yield from rows

    def _answers(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        builds: Sequence[BuildSide[Frame]],
        probe_fields: Sequence[Field],
    ) -> Generator[Frame, None, None]:
        parts = self._kept_rows
        if parts is None:
            columns = len(self.children[0].fields)
            parts = [JoinProbe(context, held, self._kind, self._condition, columns) for held in builds]
            if self._kept is not None and self._kind not in _GIVES_LONE:
                self._kept_rows = parts
        with closing(probe()) as probed:
            yield from self._probe(context, probed, parts)
        for part in parts:
            yield from part.unmatched(context.device.empty(probe_fields))

    def _join_keys_only(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterator[Frame],
        memory: Reservation,
        summary: KeySummary[Frame],
    ) -> Generator[Frame, None, None]:
        """The answer where no more is asked of held rows than which keys there are."""
        fields = self.children[1].fields
        condition = self._condition
        found = KeyFacts(context, condition)
        with (
            context.memory.reservation("JOIN") as grouping,
            closing(
                distinct_key_frames(context, build, fields, condition, memory=grouping, profile=self.profile)
            ) as keys,
            closing(found.note_keys(summary.observe_keys(keys))) as frames,
            closing(
                self._join_key_level(context, probe, frames, found, memory, summary=summary, level=0)
            ) as rows,
        ):
            yield from rows

    def _join_key_level(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        keys: Iterator[Frame],
        found: KeyFacts[Frame],
        memory: Reservation,
        *,
        summary: KeySummary[Frame],
        level: int,
    ) -> Generator[Frame, None, None]:
        """All of both sides, or one of the parts that they were split into `level` times."""
        device, condition = context.device, self._condition
        fields = [Field("key", key.type) for key in condition.build_keys]
        frames, beyond = collect_build_side(context, keys, memory)
        if beyond is None:
            nothing = device.empty(spilled_fields(fields) if level else fields)
            build = found.make_build_side([nothing, *frames], memory)
            found_rows = self._probe_in_memory(
                context, probe, [build], memory, summary, probe_fields=(), level=level
            )
            with closing(found_rows) as rows:
                yield from rows
            return
        columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(fields)]
        left = self.children[0].fields
        with (
            HashPartitions(context, fields, columns, level, self.profile) as held,
            HashPartitions(context, left, condition.probe_keys, level, self.profile) as probed,
            KeySummary(context, condition, {}) as told,  # parts of what was split have nothing to add
        ):
            held.fill(chain(drain_list(frames), [beyond], keys))
            memory.resize(0)
            summary.publish()
            with closing(probe()) as wanted:
                probed.fill(wanted)
            self.profile.details["parts"] = self.profile.details.get("parts", 0) + PARTITIONS
            for part in range(PARTITIONS):
                probe_part = partial(probed.frames, part)
                joined = self._join_key_level(
                    context, probe_part, held.frames(part), found, memory, summary=told, level=level + 1
                )
                with closing(joined) as rows:
                    yield from rows
                memory.resize(0)

    def _hybrid_hash_join(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterable[Frame],
        memory: Reservation,
        summary: KeySummary[Frame],
        *,
        level: int,
    ) -> Generator[Frame, None, None]:
        """Both sides split by their keys into files, and the parts joined one by one."""
        condition = self._condition
        left, right = self.children
        if not condition.build_keys or level == MOST_LEVELS:
            with closing(self._block_nested_loop_join(context, probe, build, memory, level=level)) as rows:
                yield from rows
            return
        with (
            HashPartitions(context, right.fields, condition.build_keys, level, self.profile) as held,
            HashPartitions(context, left.fields, condition.probe_keys, level, self.profile) as probed,
        ):
            held.fill(build)
            summary.publish()
            memory.resize(0)
            with closing(probe()) as frames:
                probed.fill(frames)
            self.profile.details["parts"] = self.profile.details.get("parts", 0) + PARTITIONS
            most = _ONE_KEY * sum(map(held.rows, range(PARTITIONS)))
            for part in range(PARTITIONS):
                below = MOST_LEVELS if held.rows(part) > most else level + 1
                rows = self._join_level(
                    context, partial(probed.frames, part), held.frames(part), memory, level=below
                )
                with closing(rows) as joined:
                    yield from joined
                memory.resize(0)

    def _block_nested_loop_join(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterable[Frame],
        memory: Reservation,
        *,
        level: int,
    ) -> Generator[Frame, None, None]:
        """All held rows, in blocks, with the other side from a file."""
        device = context.device
        assert context.spill_folder is not None
        left, right = self.children
        with (
            SpillFile(device, context.spill_folder, left.fields, self.profile) as probed,
            SpillFile(device, context.spill_folder, right.fields, self.profile) as held,
        ):
            # The held side first: the other one's operators may hold something, too, until they are done.
            for frame in build:
                context.check_cancelled()
                held.write(frame)
            self._check_single(held.rows)
            memory.resize(0)
            with closing(probe()) as frames:
                for frame in frames:
                    context.check_cancelled()
                    probed.write(frame)
            self.profile.details["held_rows"] += held.rows
            columns = len(left.fields)
            nothing = device.empty(spilled_fields(right.fields))
            blocks = BlockNestedLoopJoin(
                context, self._kind, self._condition, probed, nothing=nothing, columns=columns
            )
            with closing(held.frames()) as rows, closing(coalesce_frames(context, rows)) as chunks:
                joined = blocks.join(chunks, memory, device.empty(spilled_fields(left.fields)))
                with closing(joined) as answers:
                    yield from answers
            self.profile.details["blocks"] = self.profile.details.get("blocks", 0) + blocks.blocks
            self.profile.details["peak_memory"] = memory.peak

    @property
    def _is_keys_only(self) -> bool:
        return self._condition.only_keys_matter(self._kind)

    def _gives_nothing(self, builds: Sequence[BuildSide[Frame]]) -> bool:
        nothing_held = not any(held.rows for held in builds)
        if self._kind == "right":
            return nothing_held
        return self._kind in ("inner", "semi") and (nothing_held or self._condition.is_never_true)

    def _check_single(self, build_rows: int) -> None:
        every_row_pairs = not self._condition.probe_keys and self._condition.residual is None
        if self._kind == "single" and every_row_pairs and build_rows > 1:
            raise several_rows_error()

    def _probe(
        self, context: ExecutionContext[Frame], frames: Iterable[Frame], probes: Sequence[JoinProbe[Frame]]
    ) -> Generator[Frame, None, None]:
        device = context.device

        def start_frame(frame: Frame) -> Iterator[Frame]:
            if len(probes) == 1:
                made = probes[0].probe(frame)
                return chain(list(islice(made, _AT_ONCE)), made)
            keys = device.evaluate(self._condition.probe_keys, frame)
            pieces = zip(probes, device.partition(frame, keys, PARTITIONS, MEMORY_LEVEL), strict=True)
            made = chain.from_iterable(part.probe(piece) for part, piece in pieces)
            rows = coalesce_frames(context, made)
            return chain(list(islice(rows, _AT_ONCE)), rows)

        with (
            closing(coalesce_frames(context, frames)) as chunks,
            closing(ordered_map(context, start_frame, chunks)) as answers,
        ):
            for answer in answers:
                for frame in answer:
                    if device.row_count(frame):
                        yield frame


def _rows(device: Device[Any], frames: Iterable[Any]) -> int:
    return sum(map(device.row_count, frames))


def _keys(condition: JoinCondition) -> list[str]:
    signs = (" IS NOT DISTINCT FROM " if equal else " = " for equal in condition.nulls_equal)
    return [
        f"{format_expression(left)}{sign}{format_expression(right)}"
        for left, right, sign in zip(condition.probe_keys, condition.build_keys, signs, strict=True)
    ]


def _reads_string(expression: Expression) -> bool:
    return any(
        isinstance(part, ColumnRef) and pa.types.is_large_string(part.type) for part in walk(expression)
    )


def _residual(condition: JoinCondition) -> str:
    return "" if condition.residual is None else format_expression(condition.residual)
