"""Joins: rows of two sides put together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any, Final, Generic

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.late_filter import LateFilter
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import drained, gathered
from bamquery.engine.operators.join_build import (
    MEMORY_LEVEL,
    Build,
    collected,
    held_keys,
    held_parts,
    held_rows,
)
from bamquery.engine.operators.join_pairs import JoinCondition
from bamquery.engine.operators.join_partitions import MOST_LEVELS, PARTS, Partitions
from bamquery.engine.operators.join_rows import JoinedRows, several_rows
from bamquery.engine.operators.key_filter import KeySummary, key_filters, narrow_sides
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.engine.spill import spilled
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Expression
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field, JoinKind

_MANY_ROWS: Final = 1 << 22
"""Held rows beyond which a table of all takes long, without a chance to stop, and is slow to look up in."""
_AT_ONCE: Final = 4
"""Portions of a chunk's pairs that a thread makes ahead; a chunk with more is finished one by one."""


class Join(Operator[Frame], Generic[Frame]):
    """Pairs of rows; holds the second child's rows and looks those of the first up, chunk by chunk.

    Where the held rows do not fit `memory_limit`, both sides are split by the hash of their keys into parts
    in files, which are joined one after the other.

    See `bamquery.plan.nodes.Join` for the kinds: the first child is its left side.
    """

    def __init__(
        self,
        probe: Operator[Frame],
        build: Operator[Frame],
        kind: JoinKind,
        condition: JoinCondition,
        fields: tuple[Field, ...],
    ) -> None:
        details = {"kind": kind, "keys": _keys(condition), "condition": _residual(condition)}
        name = "Hash join" if condition.probe_keys else "Nested loop join"
        super().__init__(fields, (probe, build), OperatorProfile(name, details))
        self._kind = kind
        self._condition = condition
        self._late: Mapping[int, LateFilter] = {}

    def filter_probe(self) -> None:
        """Once the held rows are known, let scans of the other side read less. Called before it runs."""
        self._late = key_filters(self.children[0], self._kind, self._condition)

    def narrow(self, value: Expression, late: LateFilter) -> bool:
        """To the side that it is about, where that side's rows come as they are."""
        return narrow_sides(self.children, self._kind, self._condition, value, late)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, those of held rows without a partner last."""
        probe, build = self.children
        self.profile.details["held_rows"] = 0
        with (
            context.memory.reservation("JOIN") as memory,
            closing(build.frames(context)) as frames,
            closing(self._joined(context, lambda: probe.frames(context), frames, memory, level=0)) as rows,
        ):
            yield from rows

    def _joined(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterator[Frame],
        memory: Reservation,
        *,
        level: int,
    ) -> Generator[Frame, None, None]:
        """All of both sides, or one of the parts that they were split into `level` times."""
        device = context.device
        # In parts, columns are as files give them back.
        fields, probe_fields = (
            spilled(child.fields) if level else child.fields for child in reversed(self.children)
        )
        # Parts of what was split have told before.
        summary = KeySummary(device, self._condition, {} if level else self._late)
        if self._only_keys:
            builds = [held_keys(context, build, fields, self._condition, memory)]
            if self._condition.build_keys:
                summary.add_keys(builds[0].frame)
        else:
            with closing(gathered(device, build)) as chunks:
                frames, beyond = collected(context, chunks, memory)
                if beyond is not None:
                    all_rows = summary.noted(chain(drained(frames), [beyond], chunks))
                    in_parts = self._in_parts(context, probe, all_rows, memory, summary, level=level)
                    with closing(in_parts) as rows:
                        yield from rows
                    return
            for frame in frames:
                context.check_cancelled()
                summary.add(frame)
            if level == 0 and self._condition.build_keys and _rows(device, frames) > _MANY_ROWS:
                builds = held_parts(context, frames, self._condition, memory)
            else:
                no_pairs = self._kind != "mark" and self._condition.is_never_true
                frames = [device.empty(fields), *frames]
                builds = [held_rows(context, frames, self._condition, memory, no_pairs=no_pairs)]
        self.profile.details["held_rows"] += sum(held.rows for held in builds)
        self.profile.details["peak_memory"] = memory.peak
        if self._gives_nothing(builds):
            return
        self._check_single(builds)
        summary.hand_down()
        columns = len(self.children[0].fields)
        parts = [JoinedRows(context, held, self._kind, self._condition, columns) for held in builds]
        with closing(probe()) as probed:
            yield from self._probed(context, probed, parts)
        for part in parts:
            yield from part.lone(device.empty(probe_fields))

    def _in_parts(
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
        if not condition.build_keys or level == MOST_LEVELS:
            what = "rows of one key" if condition.build_keys else "rows that no key finds"
            raise MemoryLimitError(
                f"JOIN needs {what} in memory, and they do not fit memory_limit: raise it with "
                "SET memory_limit = '...', or make the query hold less"
            )
        left, right = self.children
        with (
            Partitions(context, right.fields, condition.build_keys, level) as held,
            Partitions(context, left.fields, condition.probe_keys, level) as probed,
        ):
            held.fill(build)
            summary.hand_down()
            memory.resize(0)
            with closing(probe()) as frames:
                probed.fill(frames)
            self.profile.details["parts"] = self.profile.details.get("parts", 0) + PARTS
            for part in range(PARTS):
                rows = self._joined(
                    context, partial(probed.frames, part), held.frames(part), memory, level=level + 1
                )
                with closing(rows) as joined:
                    yield from joined
                memory.resize(0)

    @property
    def _only_keys(self) -> bool:
        return self._condition.only_keys_matter(self._kind)

    def _gives_nothing(self, builds: Sequence[Build[Frame]]) -> bool:
        nothing_held = not any(held.rows for held in builds)
        if self._kind == "right":
            return nothing_held
        return self._kind in ("inner", "semi") and (nothing_held or self._condition.is_never_true)

    def _check_single(self, builds: Sequence[Build[Frame]]) -> None:
        every_row_pairs = not self._condition.probe_keys and self._condition.residual is None
        if self._kind == "single" and every_row_pairs and builds[0].rows > 1:
            raise several_rows()

    def _probed(
        self, context: ExecutionContext[Frame], frames: Iterable[Frame], parts: Sequence[JoinedRows[Frame]]
    ) -> Generator[Frame, None, None]:
        device = context.device

        def begun(frame: Frame) -> Iterator[Frame]:
            if len(parts) == 1:
                made = parts[0].of(frame)
                return chain(list(islice(made, _AT_ONCE)), made)
            keys = device.evaluate(self._condition.probe_keys, frame)
            pieces = zip(parts, device.partition(frame, keys, PARTS, MEMORY_LEVEL), strict=True)
            made = chain.from_iterable(part.of(piece) for part, piece in pieces)
            return chain([device.concatenate(list(islice(made, PARTS)))], made)

        with (
            closing(gathered(device, frames)) as chunks,
            closing(ordered_map(context, begun, chunks)) as answers,
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


def _residual(condition: JoinCondition) -> str:
    return "" if condition.residual is None else format_expression(condition.residual)
