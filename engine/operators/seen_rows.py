"""Rows told from those that came before."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Generic

import numpy as np

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Frame, JoinTable
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression
from bamquery.plan.nodes import Field


class SeenRows(Generic[Frame]):
    """All rows so far, each once; a context manager that gives back what it holds.

    They lie in tables of which each has at least twice as many rows as the next one, so that a row is put
    into a new table a logarithm of all rows' number of times.

    Args:
        context: of the query; the rows count for its `memory_limit`.
        keys: what makes rows equal, nulls too.
        fields: of the rows.
    """

    def __init__(
        self, context: ExecutionContext[Frame], keys: Sequence[Expression], fields: Sequence[Field]
    ) -> None:
        self._device = context.device
        self._keys = tuple(keys)
        self._fields = fields
        self._tables: list[tuple[Frame, JoinTable[Frame]]] = []
        self._memory = context.memory.reservation("WITH RECURSIVE ... UNION")

    def new(self, frame: Frame) -> Frame:
        """The frame's rows that have not been seen, the first of several equal ones; seen from now on."""
        device = self._device
        frame = self._first_of_each(frame)
        keys = device.evaluate(self._keys, frame)
        for _, table in self._tables:
            known = np.zeros(device.row_count(frame), np.bool_)
            for _, positions, _ in table.matches(keys):
                known[positions] = True
            if known.any():
                rest = np.flatnonzero(~known)
                frame, keys = device.take(frame, rest), device.take(keys, rest)
        if device.row_count(frame):
            self._keep(keys)
        return frame

    def _first_of_each(self, frame: Frame) -> Frame:
        device = self._device
        columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(self._fields)]
        firsts = [AggregateCall("first", (column,), column.type) for column in columns]
        grouping = device.aggregation(self._keys, firsts)
        groups = grouping.final(grouping.partial(frame))
        return device.select(groups, range(len(self._keys), len(self._keys) + len(columns)))

    def _keep(self, keys: Frame) -> None:
        device = self._device
        while self._tables and device.row_count(self._tables[-1][0]) < 2 * device.row_count(keys):
            older, _ = self._tables.pop()
            keys = device.concatenate([older, keys])
        table = device.join_table(keys, [True] * len(self._keys))
        self._tables.append((keys, table))
        self._memory.resize(sum(device.nbytes(kept) + table.nbytes for kept, table in self._tables))

    def __enter__(self) -> SeenRows[Frame]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tables = []
        self._memory.resize(0)
