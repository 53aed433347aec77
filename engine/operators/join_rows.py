"""What becomes of probed rows and their partners, by the kind of join."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.framing import sliced
from bamquery.engine.operators.join_build import Build
from bamquery.engine.operators.join_device import JoiningTable, joining_table
from bamquery.engine.operators.join_pairs import (
    JoinCondition,
    PairFinder,
    Pairs,
    columns_of_nulls,
    kept_rows,
    truth_column,
)
from bamquery.engine.operators.row_marks import RowMarks
from bamquery.errors import ExecutionError
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
        self._matched = np.zeros(held.rows, np.bool_) if kind in ("right", "full") else None
        self._marks = RowMarks(context, held.frame, condition) if condition.compared else None
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
        table = joining_table(self._held.table, self._kind, self._condition)
        if table is not None:
            yield from self._joined(table, frame)
            return
        for pairs in self._finder.pairs(frame):
            if self._kind in ("semi", "anti"):
                yield self._chosen(frame, pairs)
            elif self._kind == "mark":
                yield self._marked(frame, pairs)
            else:
                yield self._paired(frame, pairs)

    def _joined(self, table: JoiningTable, frame: Frame) -> Iterator[Frame]:
        """By the device itself."""
        keys = self._device.evaluate(self._condition.probe_keys, frame)
        for rows in table.joined(self._kind, frame, keys, self._held.frame):
            self._check()
            residual = self._condition.residual
            yield rows if residual is None else self._device.filter(rows, residual)

    def lone(self, nothing: Frame) -> Generator[Frame, None, None]:
        """Held rows that were never found, if they are wanted, beside nulls for the columns of `nothing`."""
        if self._matched is None:
            return
        device = self._device
        lone = device.take(self._held.frame, np.flatnonzero(~self._matched))
        for frame in sliced(device, lone):
            rows = device.row_count(frame)
            if rows:
                yield device.join_columns([columns_of_nulls(device, nothing, rows), frame])

    def _paired(self, frame: Frame, pairs: Pairs) -> Frame:
        device, held = self._device, self._held.frame
        positions, found = pairs.positions, pairs.found
        if self._matched is not None:
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
                return device.join_columns([device.take(frame, positions), device.take_or_null(held, found)])
        return device.join_columns([device.take(frame, positions), device.take(held, found)])

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
        device, held = self._device, self._held
        count = device.row_count(rows)
        if not held.rows or all(self._condition.nulls_equal):
            return np.zeros(count, np.bool_)
        if held.has_nulls:
            return np.ones(count, np.bool_)
        (key,) = self._condition.probe_keys
        return held.null_rows(device, device.evaluate([key], rows), key.type)


def several_rows() -> ExecutionError:
    """The failure of a subquery that must have one row at most."""
    return ExecutionError(
        "a subquery that stands for one value gave several rows: add LIMIT 1 or an aggregate to it"
    )
