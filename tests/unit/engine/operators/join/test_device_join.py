"""Joins that a device does by itself: what it is asked for, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.keys.join_table import CpuJoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.join.build_side import BuildSide
from bamquery.engine.operators.join.device_join import DeviceJoin, as_device_join_table
from bamquery.engine.operators.join.pairs import AllPairs, JoinCondition, PairCondition
from bamquery.engine.operators.join.probe import JoinProbe
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import Call, ColumnRef
from bamquery.plan.nodes import JoinKind

DEVICE = CpuDevice()
K, N = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "n", pa.int64())
BY_K = JoinCondition((K,), (K,), (False,))
LESS = Call("less", (N, ColumnRef(3, "n", pa.int64())), pa.bool_())
ROWS = pa.record_batch([pa.array([1, 2, 3], pa.int64()), pa.array([4, 5, 6], pa.int64())], ["0", "1"])


class _Table(CpuJoinTable):
    """Gives the frame and its keys back, as two portions, and the last build row as one without a partner."""

    work: DeviceJoin[Any]

    def start_join(self, work: DeviceJoin[Any]) -> _Table:
        self.work = work
        return self

    def probe(self, frame: Any, keys: Any) -> Iterator[Any]:
        yield frame
        yield keys

    def unmatched_rows(self) -> Any:
        return self.work.build.slice(2)


def _table() -> _Table:
    return _Table(ROWS.select([0]), [False])


def test_the_device_is_asked_where_it_is_able_to() -> None:
    """With keys, but for marks of several columns."""
    table, pairs = _table(), AllPairs(DEVICE, 3)
    compared = JoinCondition((K,), (K,), (True,), compared=((N, N),))
    assert as_device_join_table(table, BY_K) is table
    assert as_device_join_table(table, compared) is None
    assert as_device_join_table(table, JoinCondition()) is None
    assert as_device_join_table(pairs, BY_K) is None


@pytest.mark.parametrize("residual", [None, LESS])
@pytest.mark.parametrize("kind", ["inner", "right", "mark"])
def test_answers_are_the_devices(kind: JoinKind, residual: Call | None) -> None:
    table = _table()
    condition = JoinCondition((K,), (K,), (False,), residual)
    with ExecutionContext(DEVICE, Settings()) as context:
        probe = JoinProbe(context, BuildSide(ROWS, table, 3, has_nulls=True), kind, condition, 2)
        assert list(probe.probe(ROWS)) == [ROWS, ROWS.select([0])]
        unmatched = list(probe.unmatched_rows(ROWS.slice(0, 0)))
        assert (table.work.kind, table.work.build, table.work.null_marks) == (kind, ROWS, "all")
        wanted = None if residual is None else PairCondition.from_residual(residual, 2)
        assert table.work.condition == wanted
        assert [[*row.values()] for frame in unmatched for row in _pylist(frame)] == (
            [[None, None, 3, 6]] if kind == "right" else []
        )
        context.cancelled.set()
        with pytest.raises(CancelledError):
            next(probe.probe(ROWS))


def _pylist(frame: pa.RecordBatch) -> list[dict[str, Any]]:
    return frame.rename_columns([f"c{i}" for i in range(frame.num_columns)]).to_pylist()
