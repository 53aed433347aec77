"""What becomes of probe rows and their partners, by the kind of join."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.device import Device, Frame, HostPositions
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.engine.operators.base.frame_sizing import slice_frame
from bamquery.engine.operators.join.build_side import BuildSide
from bamquery.engine.operators.join.device_join import (
    DeviceJoin,
    DeviceProbe,
    NullMarks,
    as_device_join_table,
    several_rows_error,
)
from bamquery.engine.operators.join.mark_join import MarkJoinProbe
from bamquery.engine.operators.join.pairs import (
    JoinCondition,
    JoinPairFinder,
    MarkingTable,
    PairCondition,
    Pairs,
    null_columns,
    select_positions,
    truth_column,
)
from bamquery.plan.nodes import JoinKind


class JoinProbe(Generic[Frame]):
    """Looks rows up among build rows and gives what a join of a kind makes of them; thread-safe.

    Attributes:
        gives_unmatched: whether build rows that were never found are wanted.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        build: BuildSide[Frame],
        kind: JoinKind,
        condition: JoinCondition,
        probe_columns: int,
    ) -> None:
        self._device: Device[Frame] = context.device
        self._check = context.check_cancelled
        self._build = build
        self._kind = kind
        self._condition = condition
        self._mark_probe = MarkJoinProbe(context, build.frame, condition) if condition.compared else None
        self._device_probe = self._start_device_join(probe_columns)
        self.gives_unmatched = kind in ("right", "full")
        gives_pairs = self._device_probe is None and kind not in ("semi", "anti", "mark")
        self._copies = CopiedRows(context.device, build.frame) if gives_pairs else None
        self._portion = context.string_limits.piece
        self._matched = np.zeros(
            build.rows if self.gives_unmatched and self._device_probe is None else 0, np.bool_
        )
        self._finder = JoinPairFinder(
            context,
            build.table,
            build.frame,
            condition,
            probe_columns,
            wants_undecided=kind == "mark" and not condition.only_keys_matter(kind),
        )

    def probe(self, frame: Frame) -> Iterator[Frame]:
        """What the frame's rows become, in portions.

        Raises:
            ExecutionError: a key or condition cannot be computed, or a single row has several partners.
        """
        if self._mark_probe is not None:
            equal, unknown = self._mark_probe.probe(frame)
            mark = truth_column(self._device, equal, unknown & ~equal)
            yield self._device.join_columns([frame, mark])
            return
        if self._device_probe is not None:
            keys = self._device.evaluate(self._condition.probe_keys, frame)
            for rows in self._device_probe.probe(frame, keys):
                self._check()
                yield rows
            return
        marked = self._marked_rows(frame)
        if marked is not None:
            yield marked
            return
        probed = None if self._copies is None else CopiedRows(self._device, frame)
        for pairs in self._finder.pairs(frame):
            if probed is not None:
                yield from self._pair_rows(probed, pairs)
            elif self._kind == "mark":
                yield self._mark_rows(frame, pairs)
            else:
                yield self._filter_rows(frame, pairs)

    def _start_device_join(self, probe_columns: int) -> DeviceProbe | None:
        """The join as the device does it by itself, if it can."""
        table = as_device_join_table(self._build.table, self._condition)
        if table is None:
            return None
        residual = self._condition.residual
        condition = None if residual is None else PairCondition.from_residual(residual, probe_columns)
        return table.start_join(DeviceJoin(self._kind, self._build.frame, condition, self._null_marks()))

    def unmatched_rows(self, nothing: Frame) -> Generator[Frame, None, None]:
        """Build rows that were never found, if they are wanted, beside nulls for the columns of `nothing`."""
        if not self.gives_unmatched:
            return
        device = self._device
        if self._device_probe is not None:
            unmatched = self._device_probe.unmatched_rows()
        else:
            unmatched = device.take(self._build.frame, np.flatnonzero(~self._matched))
        for frame in slice_frame(device, unmatched, self._portion):
            rows = device.row_count(frame)
            if rows:
                yield device.join_columns([null_columns(device, nothing, rows), frame])

    def _pair_rows(self, probed: CopiedRows[Frame], pairs: Pairs) -> Iterator[Frame]:
        """The pairs' rows side by side, and rows without a partner beside nulls, where these are wanted."""
        assert self._copies is not None
        positions, found = pairs.probe_positions, pairs.build_positions
        take: Callable[[Frame, HostPositions], Frame] = self._device.take
        if self.gives_unmatched:
            native.set_flags(found, self._matched)
        if self._kind == "single" and (np.diff(positions) == 0).any():
            raise several_rows_error()
        if self._kind in ("left", "full", "single"):
            positions, found, take = self._add_unmatched(pairs)
        for some in portions_within([(probed, positions), (self._copies, found)], self._portion):
            self._check()
            sides = [self._device.take(probed.frame, positions[some]), take(self._copies.frame, found[some])]
            yield self._device.join_columns(sides)

    def _add_unmatched(
        self, pairs: Pairs
    ) -> tuple[HostPositions, HostPositions, Callable[[Frame, HostPositions], Frame]]:
        """The pairs, -1 for the partner of a row that has none, and what takes partners."""
        positions, found = pairs.probe_positions, pairs.build_positions
        count = pairs.stop - pairs.start
        if len(positions) == count and _ascend(positions):
            return positions, found, self._device.take
        if _ascend(positions):  # no row has several partners: most joins look up keys that are unique
            every = np.full(count, -1, np.int64)
            every[positions - pairs.start] = found
            return np.arange(pairs.start, pairs.stop), every, self._device.take_or_null
        unmatched = select_positions(pairs.start, pairs.stop, positions, negate=True)
        if not len(unmatched):
            return positions, found, self._device.take
        positions = np.concatenate([positions, unmatched])
        found = np.concatenate([found, np.full(len(unmatched), -1, np.int64)])
        order = np.argsort(positions, kind="stable")
        return positions[order], found[order], self._device.take_or_null

    def _marked_rows(self, frame: Frame) -> Frame | None:
        """What the frame's rows become where it only matters which keys there are, and the table tells it."""
        table, device = self._build.table, self._device
        if not self._condition.only_keys_matter(self._kind) or not isinstance(table, MarkingTable):
            return None
        truth = table.contained(device.evaluate(self._condition.probe_keys, frame))
        if truth is None:
            return None
        self._check()
        if self._kind == "mark":
            unknown = self._null_mark_mask(frame)
            return device.join_columns([frame, truth_column(device, truth, unknown & ~truth)])
        return device.take(frame, np.flatnonzero(truth if self._kind == "semi" else ~truth))

    def _filter_rows(self, frame: Frame, pairs: Pairs) -> Frame:
        rows = select_positions(pairs.start, pairs.stop, pairs.probe_positions, negate=self._kind == "anti")
        return self._device.take(frame, rows)

    def _mark_rows(self, frame: Frame, pairs: Pairs) -> Frame:
        device = self._device
        rows = device.slice(frame, pairs.start, pairs.stop - pairs.start)
        truth = np.zeros(pairs.stop - pairs.start, np.bool_)
        truth[pairs.probe_positions - pairs.start] = True
        if pairs.undecided is not None:
            unknown = np.zeros(len(truth), np.bool_)
            unknown[pairs.undecided - pairs.start] = True
        else:
            unknown = self._null_mark_mask(rows)
        return device.join_columns([rows, truth_column(device, truth, unknown & ~truth)])

    def _null_mark_mask(self, rows: Frame) -> NDArray[np.bool_]:
        """For rows without an equal build row: whether it is for nulls that this is not known."""
        device, count = self._device, self._device.row_count(rows)
        which = self._null_marks()
        if which != "null keys":
            return np.full(count, which == "all")
        (key,) = self._condition.probe_keys
        return self._build.null_rows(device, device.evaluate([key], rows), key.type)

    def _null_marks(self) -> NullMarks:
        """The rows that `_null_mark_mask` finds."""
        if not self._build.rows or all(self._condition.nulls_equal):
            return "none"
        return "all" if self._build.has_nulls else "null keys"


def _ascend(positions: HostPositions) -> bool:
    """Whether ascending positions are all different."""
    return native.order_of_places(positions) > 0
