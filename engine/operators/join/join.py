"""Joins: rows of two sides put together, by the strategy that their size and their kind ask for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, drain_list
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.block_nested_loop import BlockNestedLoopJoin
from bamquery.engine.operators.join.build_order import CollectedBuild, ReadBuild, read_builds
from bamquery.engine.operators.join.build_side import BuildSide, collect_build_side
from bamquery.engine.operators.join.hybrid_hash import HybridHashJoin
from bamquery.engine.operators.join.in_memory import InMemoryJoin, probe_sides
from bamquery.engine.operators.join.key_filter import (
    KeySummary,
    filters_of_rows,
    key_filters,
    push_filter_to_sides,
    push_filters_of_probe,
)
from bamquery.engine.operators.join.keys_only import KeysOnlyJoin
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.partitions import MOST_LEVELS
from bamquery.engine.operators.join.probe_first import build_side_filters, probe_first
from bamquery.engine.operators.join.strategy import JoinStrategy, JoinTask, KeptBuild, ProbeRows
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, walk
from bamquery.plan.format import expression_text
from bamquery.plan.nodes import Field, JoinKind

_GIVES_BUILD_ROWS: Final = ("inner", "left", "right", "full", "single")
"""Kinds whose rows have columns of build rows."""


class Join(Operator[Frame], Generic[Frame]):
    """Pairs of rows; the second child is the build side, among whose rows those of the first are looked up.

    A strategy is chosen once it is known whether the build side fits `memory_limit`, and for each partition
    of it again. See `bamquery.plan.nodes.Join` for the kinds: the first child is its left side.
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
        build.take_all_rows()
        self._kind = kind
        self._condition = condition
        self.reservations = 2 if condition.only_keys_matter(kind) else 1  # keys are grouped, then found
        self._dynamic_filters: Mapping[int, DynamicFilter] = {}
        self._probe_first_filters: Mapping[int, DynamicFilter] = {}
        self._encodes = False
        self._keeps_build = False
        self._kept: KeptBuild[Frame] | None = None
        self._knows_probe = False
        self._read: ReadBuild[Frame] | None = None
        self.build_estimate = 0.0

    def keep_build(self) -> None:
        """Build rows are the same in each run: keep them where they fit in memory. Called before it runs."""
        self._keeps_build = True

    def read_again(self) -> Sequence[Operator[Frame]]:
        """The probe side only, where build rows have been kept."""
        return self.children if self._kept is None else self.children[:1]

    def let_go(self) -> None:
        """Build rows may go."""
        if self._kept is not None:
            self._kept.memory.close()
            self._kept = None

    def filter_probe(self) -> None:
        """Once the build rows are known, let scans of the other side read less. Called before it runs."""
        self._dynamic_filters = key_filters(self.children[0], self._kind, self._condition)
        self.runs_again = not self._dynamic_filters

    def filter_build_by_chain(self, build_estimate: float) -> None:
        """Let joins below the probe side be read first where scans of the build side read less by them.

        `build_estimate`: build rows, as far as known. Called before it runs.
        """
        self.build_estimate = build_estimate
        if self._kind == "inner":
            self._knows_probe = push_filters_of_probe(self.children[0], self.children[1], self._condition)

    def join_filters(self) -> Sequence[tuple[Expression, DynamicFilter]]:
        """Those of its own keys, and of joins below the probe side."""
        return filters_of_rows(self.children[0], self._kind, self._condition, self._dynamic_filters)

    def nullable_fields(self) -> Sequence[bool | None]:
        """Those of both sides; of a side that may have no partner all are."""
        kind, (probe, build) = self._kind, (child.nullable_fields() for child in self.children)
        if kind in ("right", "full"):
            probe = [True] * len(probe)
        if kind in ("left", "full", "single"):
            build = [True] * len(build)
        both = [*probe, *build] if kind in _GIVES_BUILD_ROWS else [*probe, None]  # a mark is last
        return both[: len(self.fields)]

    def build_paths(self) -> Sequence[tuple[Operator[Frame], ...]]:
        """Its own, and those below the probe side."""
        if self._kind != "inner" or self._keeps_build or self._probe_first_filters:
            return []
        return [(self,), *((self, *path) for path in self.children[0].build_paths())]

    def filter_build(self) -> bool:
        """Read probe rows first, so that scans of the build side read less; whether any can."""
        self._probe_first_filters = build_side_filters(self.children[1], self._kind, self._condition)
        if self._probe_first_filters:
            self.runs_again = False
            self.reservations += 1
            self.profile.details["reads_first"] = "left side"
        return bool(self._probe_first_filters)

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """To the side that it is about, where that side's rows come as they are."""
        return push_filter_to_sides(self.children, self._kind, self._condition, value, dynamic_filter)

    def keep_encoded(self) -> None:
        """Those of build rows, and of the other side's where they are not compared here."""
        self._encodes = self._kind in _GIVES_BUILD_ROWS
        read = [
            *self._condition.probe_keys,
            *([self._condition.residual] if self._condition.residual else []),
        ]
        if self._encodes and not any(map(_reads_string, read)):
            self.children[0].keep_encoded()

    def take_all_rows(self) -> None:
        """Those of build rows are taken in any case."""
        self.children[0].take_all_rows()

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, unmatched ones of the build side last."""
        probe = partial(self.children[0].frames, context)
        if self._kept is not None:
            task = self._task(context, self._kept)
            if not task.gives_nothing(sum(side.rows for side in self._kept.sides)):
                yield from probe_sides(task, probe, self._kept.sides)
            return
        if self._read is None:
            self.profile.details["build_rows"] = 0
        if not self._probe_first_filters:
            yield from self._join_chain(context, probe)
            return
        with probe_first(context, self.children[0], self._condition, self._probe_first_filters) as probed:
            if probed is not None:
                yield from self._join_sides(context, probed)

    def _join_chain(
        self, context: ExecutionContext[Frame], probe: ProbeRows[Frame]
    ) -> Generator[Frame, None, None]:
        """As `_join_sides`; build sides of all joins below the probe side are read before, if that helps."""
        paths = self.build_paths() if self._read is None else []
        joins = [path[-1] for path in paths if isinstance(path[-1], Join)]
        if not any(join._knows_probe for join in joins):
            yield from self._join_sides(context, probe)
            return
        try:
            if read_builds(context, paths, joins):
                yield from self._join_sides(context, probe)
        finally:
            for join in joins:
                join.forget_build()

    def read_build(self, context: ExecutionContext[Frame]) -> bool:
        """See `ReadsAhead`."""
        with ExitStack() as resources:
            self.profile.details["build_rows"] = 0
            kept: KeptBuild[Frame] = KeptBuild(context.memory.reservation("JOIN"))
            resources.callback(kept.memory.close)
            build = resources.enter_context(closing(self.children[1].frames(context)))
            summary = resources.enter_context(KeySummary(context, self._condition, self._dynamic_filters))
            chunks = resources.enter_context(closing(coalesce_frames(context, build)))
            frames, beyond = collect_build_side(context, chunks, kept.memory)
            rows = CollectedBuild(frames, beyond, chunks)
            sides: Sequence[BuildSide[Frame]] | None = None
            task = self._task(context, kept)
            if beyond is None:
                sides = InMemoryJoin(task, summary).make_sides(list(drain_list(frames)))
                summary.publish()
            may_have_rows = sides is None or not task.gives_nothing(sum(side.rows for side in sides))
            self._read = ReadBuild(kept, summary, rows, sides, resources.pop_all())
        return may_have_rows

    def forget_build(self) -> None:
        """See `ReadsAhead`."""
        if self._read is not None:
            read, self._read = self._read, None
            read.resources.close()

    def _join_sides(
        self, context: ExecutionContext[Frame], probe: ProbeRows[Frame]
    ) -> Generator[Frame, None, None]:
        if self._read is not None:
            read, self._read = self._read, None
            with read.resources:
                task = self._task(context, read.kept)
                if read.sides is None:
                    yield from self._join_collected(task, read.summary, probe, read.rows)
                else:
                    yield from InMemoryJoin(task, read.summary).join_sides(probe, read.sides)
            return
        kept: KeptBuild[Frame] = KeptBuild(context.memory.reservation("JOIN"))
        try:
            with (
                closing(self.children[1].frames(context)) as build,
                KeySummary(context, self._condition, self._dynamic_filters) as summary,
            ):
                yield from self._join_level(self._task(context, kept), summary, probe, build)
        finally:
            if self._keeps_build and kept.sides:
                self._kept = kept
            else:
                kept.memory.close()

    def _task(self, context: ExecutionContext[Frame], kept: KeptBuild[Frame]) -> JoinTask[Frame]:
        probe, build = self.children
        return JoinTask(
            context,
            self._kind,
            self._condition,
            probe.fields,
            build.fields,
            kept.memory,
            self.profile,
            encodes=self._encodes,
            kept=kept if self._keeps_build else None,
        )

    def _join_level(
        self,
        task: JoinTask[Frame],
        summary: KeySummary[Frame],
        probe: ProbeRows[Frame],
        build: Generator[Frame, None, None],
    ) -> Generator[Frame, None, None]:
        """All of both sides, or one of the partitions that they were split into `task.level` times."""
        if task.condition.only_keys_matter(task.kind):
            yield from KeysOnlyJoin(task, summary).join(probe, build)
            return
        with closing(coalesce_frames(task.context, build)) as chunks:
            frames, beyond = collect_build_side(task.context, chunks, task.memory)
            rows = CollectedBuild(frames, beyond, chunks)
            yield from self._join_collected(task, summary, probe, rows)

    def _join_collected(
        self,
        task: JoinTask[Frame],
        summary: KeySummary[Frame],
        probe: ProbeRows[Frame],
        build: CollectedBuild[Frame],
    ) -> Generator[Frame, None, None]:
        """The same once as many build rows have been read as fit in memory, or all of them."""
        strategy: JoinStrategy[Frame]
        memory = task.memory
        rows: Iterable[Frame] = drain_list(build.frames)
        if build.beyond is None:
            strategy = InMemoryJoin(task, summary)
        else:
            # Nothing will be made of them: what is left of the memory is for the list of their keys.
            memory.resize(min(memory.held, sum(map(task.context.device.nbytes, build.frames))))
            rows = summary.observe_rows(chain(rows, [build.beyond], build.rest))
            if task.condition.build_keys and task.level < MOST_LEVELS:
                strategy = HybridHashJoin(task, summary, self._join_level)
            else:
                strategy = BlockNestedLoopJoin(task)
        yield from strategy.join(probe, rows)


def _keys(condition: JoinCondition) -> list[str]:
    signs = (" IS NOT DISTINCT FROM " if equal else " = " for equal in condition.nulls_equal)
    return [
        f"{expression_text(left)}{sign}{expression_text(right)}"
        for left, right, sign in zip(condition.probe_keys, condition.build_keys, signs, strict=True)
    ]


def _reads_string(expression: Expression) -> bool:
    return any(
        isinstance(node, ColumnRef) and pa.types.is_large_string(node.type) for node in walk(expression)
    )


def _residual(condition: JoinCondition) -> str:
    return "" if condition.residual is None else expression_text(condition.residual)
