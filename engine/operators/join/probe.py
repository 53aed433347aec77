"""What becomes of probed rows and their partners, by the kind of join."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.bounded_copies import CopiedRows, fitting
from bamquery.engine.operators.base.frame_sizing import sliced
from bamquery.engine.operators.join.build_side import Build
from bamquery.engine.operators.join.device_join import (
    DeviceJoin,
    JoiningRows,
    OpenMarks,
    joining_table,
    several_rows,
)
from bamquery.engine.operators.join.mark_join import RowMarks
from bamquery.engine.operators.join.pairs import (
    JoinCondition,
    PairCondition,
    PairFinder,
    Pairs,
    columns_of_nulls,
    kept_rows,
    truth_column,
)
from bamquery.plan.nodes import JoinKind


class JoinedRows(Generic[Frame]):
    """Looks rows up among held ones and gives what a join of a kind makes of them; thread-safe."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        held: Build[Frame],
        kind: JoinKind,
        condition: JoinCondition,
        probe_columns: int,
    ) -> None:
        self._device: Device[Frame] = context.device
        self._check = context.check_cancelled
        self._held = held
        self._kind = kind
        self._condition = condition
        self._marks = RowMarks(context, held.frame, condition) if condition.compared else None
        self._joins = self._on_device(probe_columns)
        self._gives_lone = kind in ("right", "full")
        gives_pairs = self._joins is None and kind not in ("semi", "anti", "mark")
        self._copies = CopiedRows(context.device, held.frame) if gives_pairs else None
        self._portion = context.texts.piece
        self._matched = np.zeros(held.rows if self._gives_lone and self._joins is None else 0, np.bool_)
        self._finder = PairFinder(
            context,
            held.table,
            held.frame,
            condition,
            probe_columns,
            wants_undecided=kind == "mark" and not condition.only_keys_matter(kind),
        )

    def of(self, frame: Frame) -> Iterator[Frame]:
        """What the frame's rows become, in portions.

        Raises:
            ExecutionError: a key or condition cannot be computed, or a single row has several partners.
        """
        if self._marks is not None:
            equal, unknown = self._marks.of(frame)
            mark = truth_column(self._device, equal, unknown & ~equal)
            yield self._device.join_columns([frame, mark])
            return
        if self._joins is not None:
            keys = self._device.evaluate(self._condition.probe_keys, frame)
            for rows in self._joins.of(frame, keys):
                self._check()
                yield rows
            return
        probed = None if self._copies is None else CopiedRows(self._device, frame)
        for pairs in self._finder.pairs(frame):
            if probed is not None:
                yield from self._paired(probed, pairs)
            elif self._kind == "mark":
                yield self._marked(frame, pairs)
            else:
                yield self._chosen(frame, pairs)

    def _on_device(self, probe_columns: int) -> JoiningRows | None:
        """The join as the device does it by itself, if it can."""
        table = joining_table(self._held.table, self._condition)
        if table is None:
            return None
        residual = self._condition.residual
        condition = None if residual is None else PairCondition.of(residual, probe_columns)
        return table.joining(DeviceJoin(self._kind, self._held.frame, condition, self._open_marks()))

    def lone(self, nothing: Frame) -> Generator[Frame, None, None]:
        """Held rows that were never found, if they are wanted, beside nulls for the columns of `nothing`."""
        if not self._gives_lone:
            return
        device = self._device
        if self._joins is not None:
            lone = self._joins.lone()
        else:
            lone = device.take(self._held.frame, np.flatnonzero(~self._matched))
        for frame in sliced(device, lone, self._portion):
            rows = device.row_count(frame)
            if rows:
                yield device.join_columns([columns_of_nulls(device, nothing, rows), frame])

    def _paired(self, probed: CopiedRows[Frame], pairs: Pairs) -> Iterator[Frame]:
        """The pairs' rows side by side, and rows without a partner beside nulls, where these are wanted."""
        assert self._copies is not None
        positions, found = pairs.positions, pairs.found
        take = self._device.take
        if self._gives_lone:
            self._matched[found] = True
        if self._kind == "single" and (np.diff(positions) == 0).any():
            raise several_rows()
        if self._kind in ("left", "full", "single"):
            lone = kept_rows(pairs.start, pairs.stop, positions, negate=True)
            if len(lone):
                positions = np.concatenate([positions, lone])
                found = np.concatenate([found, np.full(len(lone), -1, np.int64)])
                order = np.argsort(positions, kind="stable")
                positions, found = positions[order], found[order]
                take = self._device.take_or_null
        for some in fitting([(probed, positions), (self._copies, found)], self._portion):
            self._check()
            sides = [self._device.take(probed.frame, positions[some]), take(self._copies.frame, found[some])]
            yield self._device.join_columns(sides)

    def _chosen(self, frame: Frame, pairs: Pairs) -> Frame:
        rows = kept_rows(pairs.start, pairs.stop, pairs.positions, negate=self._kind == "anti")
        return self._device.take(frame, rows)

    def _marked(self, frame: Frame, pairs: Pairs) -> Frame:
        device = self._device
        rows = device.slice(frame, pairs.start, pairs.stop - pairs.start)
        truth = np.zeros(pairs.stop - pairs.start, np.bool_)
        truth[pairs.positions - pairs.start] = True
        if pairs.undecided is not None:
            unknown = np.zeros(len(truth), np.bool_)
            unknown[pairs.undecided - pairs.start] = True
        else:
            unknown = self._without_answer(rows)
        return device.join_columns([rows, truth_column(device, truth, unknown & ~truth)])

    def _without_answer(self, rows: Frame) -> NDArray[np.bool_]:
        """For rows that have no equal among the held ones: whether it is for nulls that this is not known."""
        device, count = self._device, self._device.row_count(rows)
        which = self._open_marks()
        if which != "null keys":
            return np.full(count, which == "all")
        (key,) = self._condition.probe_keys
        return self._held.null_rows(device, device.evaluate([key], rows), key.type)

    def _open_marks(self) -> OpenMarks:
        """The rows that `_without_answer` finds."""
        if not self._held.rows or all(self._condition.nulls_equal):
            return "none"
        return "all" if self._held.has_nulls else "null keys"
