"""Joins: rows of two sides put together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import drained, gathered, sliced
from bamquery.engine.operators.join_build import Build, collected, held_keys, held_rows
from bamquery.engine.operators.join_pairs import (
    JoinCondition,
    PairFinder,
    Pairs,
    columns_of_nulls,
    kept_rows,
    truth_column,
)
from bamquery.engine.operators.join_partitions import MOST_LEVELS, PARTS, Partitions
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.engine.spill import spilled
from bamquery.errors import ExecutionError, MemoryLimitError
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field, JoinKind

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
        if self._only_keys:
            held = held_keys(context, build, fields, self._condition, memory)
        else:
            with closing(gathered(device, build)) as chunks:
                frames, beyond = collected(context, chunks, memory)
                if beyond is not None:
                    parts = self._in_parts(
                        context, probe, chain(drained(frames), [beyond], chunks), memory, level=level
                    )
                    with closing(parts) as rows:
                        yield from rows
                    return
            no_pairs = self._kind != "mark" and self._condition.is_never_true
            frames = [device.empty(fields), *frames]
            held = held_rows(context, frames, self._condition, memory, no_pairs=no_pairs)
        self.profile.details["held_rows"] += held.rows
        self.profile.details["peak_memory"] = memory.peak
        if self._gives_nothing(held):
            return
        if self._kind == "single" and not self._condition.probe_keys:
            self._check_single(held)
        matched = np.zeros(held.rows, np.bool_) if self._kind in ("right", "full") else None
        with closing(probe()) as probed:
            yield from self._probed(context, probed, held, matched)
        if matched is not None:
            yield from self._lone(device, held.frame, matched, device.empty(probe_fields))

    def _in_parts(
        self,
        context: ExecutionContext[Frame],
        probe: Callable[[], Generator[Frame, None, None]],
        build: Iterable[Frame],
        memory: Reservation,
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
        """Whether nothing of the held rows matters but which keys there are."""
        return self._kind in ("semi", "anti", "mark") and self._condition.residual is None

    def _gives_nothing(self, held: Build[Frame]) -> bool:
        nothing_held = not held.rows or self._condition.is_never_true
        if self._kind == "right":
            return not held.rows
        return self._kind in ("inner", "semi") and nothing_held

    def _check_single(self, held: Build[Frame]) -> None:
        if self._condition.residual is None and held.rows > 1:
            raise _several_rows()

    def _probed(
        self,
        context: ExecutionContext[Frame],
        frames: Iterable[Frame],
        held: Build[Frame],
        matched: NDArray[np.bool_] | None,
    ) -> Generator[Frame, None, None]:
        device = context.device
        finder = PairFinder(
            context,
            held.table,
            held.frame,
            self._condition,
            len(self.children[0].fields),
            wants_undecided=self._kind == "mark" and not self._only_keys,
        )
        give = self._giver(device, held, matched)

        def begun(frame: Frame) -> Iterator[Frame]:
            made = (give(frame, pairs) for pairs in finder.pairs(frame))
            return chain(list(islice(made, _AT_ONCE)), made)

        with (
            closing(gathered(device, frames)) as chunks,
            closing(ordered_map(context, begun, chunks)) as answers,
        ):
            for answer in answers:
                for frame in answer:
                    if device.row_count(frame):
                        yield frame

    def _giver(
        self, device: Device[Frame], held: Build[Frame], matched: NDArray[np.bool_] | None
    ) -> Callable[[Frame, Pairs], Frame]:
        """What becomes of a frame's rows and their partners."""

        def joined(frame: Frame, pairs: Pairs) -> Frame:
            if matched is not None:
                matched[pairs.found] = True
            positions, found = pairs.positions, pairs.found
            if self._kind in ("left", "full", "single"):
                lone = kept_rows(pairs.start, pairs.stop, positions, negate=True)
                if self._kind == "single" and (np.diff(positions) == 0).any():
                    raise _several_rows()
                if len(lone):
                    positions = np.concatenate([positions, lone])
                    found = np.concatenate([found, np.full(len(lone), -1, np.int64)])
                    order = np.argsort(positions, kind="stable")
                    positions, found = positions[order], found[order]
                    right = device.take_or_null(held.frame, found)
                    return device.join_columns([device.take(frame, positions), right])
            return device.join_columns([device.take(frame, positions), device.take(held.frame, found)])

        def chosen(frame: Frame, pairs: Pairs) -> Frame:
            rows = kept_rows(pairs.start, pairs.stop, pairs.positions, negate=self._kind == "anti")
            return device.take(frame, rows)

        def marked(frame: Frame, pairs: Pairs) -> Frame:
            rows = device.slice(frame, pairs.start, pairs.stop - pairs.start)
            truth = np.zeros(pairs.stop - pairs.start, np.bool_)
            truth[pairs.positions - pairs.start] = True
            if pairs.undecided is not None:
                unknown = np.zeros(len(truth), np.bool_)
                unknown[pairs.undecided - pairs.start] = True
            else:
                unknown = self._without_answer(device, rows, held)
            return device.join_columns([rows, truth_column(device, truth, unknown & ~truth)])

        if self._kind in ("semi", "anti"):
            return chosen
        return marked if self._kind == "mark" else joined

    def _without_answer(self, device: Device[Frame], rows: Frame, held: Build[Frame]) -> NDArray[np.bool_]:
        """For rows that have no equal among the held ones: whether it is for nulls that this is not known."""
        count = device.row_count(rows)
        if not held.rows or all(self._condition.nulls_equal):
            return np.zeros(count, np.bool_)
        if held.has_nulls:
            return np.ones(count, np.bool_)
        (key,) = self._condition.probe_keys
        return held.null_rows(device, device.evaluate([key], rows), key.type)

    def _lone(
        self, device: Device[Frame], build: Frame, matched: NDArray[np.bool_], nothing: Frame
    ) -> Generator[Frame, None, None]:
        """Held rows that were not found, beside nulls for the columns of `nothing`."""
        lone = device.take(build, np.flatnonzero(~matched))
        for frame in sliced(device, lone):
            rows = device.row_count(frame)
            if rows:
                yield device.join_columns([columns_of_nulls(device, nothing, rows), frame])


def _several_rows() -> ExecutionError:
    return ExecutionError(
        "a subquery that stands for one value gave several rows: add LIMIT 1 or an aggregate to it"
    )


def _keys(condition: JoinCondition) -> list[str]:
    signs = (" IS NOT DISTINCT FROM " if equal else " = " for equal in condition.nulls_equal)
    return [
        f"{format_expression(left)}{sign}{format_expression(right)}"
        for left, right, sign in zip(condition.probe_keys, condition.build_keys, signs, strict=True)
    ]


def _residual(condition: JoinCondition) -> str:
    return "" if condition.residual is None else format_expression(condition.residual)
