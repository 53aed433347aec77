"""Marks of rows compared by several columns: `(a, b) IN (query)`, whose answer nulls may leave open."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Frame, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.plan.expressions import Call, ColumnRef, Expression

Flags = NDArray[np.bool_]


class MarkJoinProbe(Generic[Frame]):
    """Whether rows are among build rows, found by keys; thread-safe.

    A pair is equal if all columns are, and different if two values that are not null are. What else there
    is, nulls leave open. So the rows of both sides are told apart by which of their columns are null, and
    for each two kinds of rows the pairs that are not different are those that are equal in the other
    columns: a join by these. There are few kinds of rows, and pairs need not be looked at.
    """

    def __init__(self, context: ExecutionContext[Frame], build: Frame, condition: JoinCondition) -> None:
        """`build`: the build rows."""
        self._context = context
        self._nulls_equal: Final = len(condition.probe_keys)
        self._mine = (*condition.probe_keys, *(mine for mine, _ in condition.compared))
        theirs = (*condition.build_keys, *(other for _, other in condition.compared))
        distinct = self._distinct(build, theirs)
        kinds = self._kinds(distinct)
        self._build = {
            kind: context.device.take(distinct, np.flatnonzero(kinds == kind))
            for kind in np.unique(kinds).tolist()
        }
        self._tables: dict[tuple[int, tuple[int, ...]], JoinTable[Frame]] = {}
        self._lock = Lock()

    def probe(self, frame: Frame) -> tuple[Flags, Flags]:
        """For each row whether a build row is equal, and whether nulls leave that open for one.

        Raises:
            ExecutionError: a column cannot be computed.
        """
        device = self._context.device
        keys = device.evaluate(self._mine, frame)
        kinds = self._kinds(keys)
        equal, open_ = (np.zeros(len(kinds), np.bool_) for _ in range(2))
        for kind in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == kind)
            own = keys if len(rows) == len(kinds) else device.take(keys, rows)
            for build_kind in self._build:
                nulls = kind | build_kind
                answer = open_ if nulls else equal
                known = tuple(i for i in range(len(self._mine)) if not nulls >> i & 1)
                if not known:
                    answer[rows] = True
                    continue
                for _, positions, _ in self._table(build_kind, known).matches(device.select(own, known)):
                    self._context.check_cancelled()
                    answer[rows[positions]] = True
        return equal, open_

    def _table(self, kind: int, known: tuple[int, ...]) -> JoinTable[Frame]:
        """The build rows of a kind, to be found by some of their columns."""
        with self._lock:
            if (kind, known) not in self._tables:
                device = self._context.device
                columns = [ColumnRef(i, "", self._mine[i].type) for i in known]
                keys = self._distinct(self._build[kind], columns)
                nulls_equal = [i < self._nulls_equal for i in known]
                self._tables[kind, known] = device.join_table(keys, nulls_equal)
            return self._tables[kind, known]

    def _distinct(self, frame: Frame, columns: Sequence[Expression]) -> Frame:
        aggregation = self._context.device.aggregation(columns, ())
        return aggregation.final(aggregation.partial(frame))

    def _kinds(self, keys: Frame) -> NDArray[np.int64]:
        """For each row a bit for each column that is null where null equals nothing."""
        device = self._context.device
        kinds = np.zeros(device.row_count(keys), np.int64)
        for i, key in enumerate(self._mine):
            if i >= self._nulls_equal:
                missing = Call("is_null", (ColumnRef(i, "", key.type),), pa.bool_())
                kinds[device.read_positions(device.matching_positions(missing, keys))] |= 1 << i
        return kinds
