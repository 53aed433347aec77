"""Probe rows that are read before build rows: which are kept and counted, and what scans learn of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join import probe_first as module
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.probe_first import build_side_filters, probe_first
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import JoinKind
from tests.conformance.harness import Rows

A, B = ColumnRef(0, "a", pa.int64()), ColumnRef(1, "b", pa.int64())
TABLE = pa.table({"a": pa.array(range(9), pa.int64()), "b": pa.array([*range(5, 13), None], pa.int64())})


@pytest.mark.parametrize(
    ("rows", "most", "limit", "read", "complete"),
    [
        (9, 9, 10_000, 5, True),
        (9, 8, 10_000, 5, False),
        (9, 7, 10_000, 4, False),
        (9, 9, 100, 4, False),
        (0, 9, 10_000, 0, True),
        (3, 0, 10_000, 1, False),
    ],
)
def test_rows_come_back(
    monkeypatch: pytest.MonkeyPatch, rows: int, most: int, limit: int, *, read: int, complete: bool
) -> None:
    """All of them, whether all were kept or not; conditions are known only if they were."""
    monkeypatch.setattr(module, "MOST_ROWS", most)
    probe, known = Rows(TABLE.slice(0, rows), [2]), DynamicFilter("a test")
    condition = JoinCondition((B,), (A,), (False,))  # the probe side's is its second column
    with ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", f"{limit}B")) as context:
        with probe_first(context, probe, condition, {0: known}) as again:
            if not rows:
                assert again is None
                return
            assert again is not None
            assert probe.frames_given == read
            assert bool(known.conditions) == complete
            if complete:
                assert context.memory.used >= TABLE.nbytes
                assert {n.value.as_py() for n in known.conditions[0].literals} == {*range(5, 13)}
            assert pa.Table.from_batches(again()).to_pylist() == TABLE.slice(0, rows).to_pylist()
        assert context.memory.used == 0
    assert probe.closed


class _Scan(Rows):
    def __init__(self, takes: bool) -> None:
        super().__init__(TABLE)
        self.offered: list[Expression] = []
        self._takes = takes

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        self.offered.append(value)
        return self._takes


@pytest.mark.parametrize(
    ("kind", "nulls_equal", "asks"),
    [
        ("semi", (False, True), True),
        ("anti", (False, False), True),
        ("single", (False, False), True),
        ("mark", (True, True), True),
        ("mark", (True, False), False),
        ("inner", (True, True), False),
        ("left", (True, True), False),
        ("right", (False, False), False),
        ("full", (False, False), False),
    ],
)
def test_kinds_that_ask_for_keys_only(kind: JoinKind, nulls_equal: tuple[bool, bool], asks: bool) -> None:
    words = ColumnRef(2, "flag", pa.bool_())
    condition = JoinCondition((A, words), (B, words), nulls_equal)
    for takes in (True, False):
        scan = _Scan(takes)
        filters = build_side_filters(scan, kind, condition)
        assert scan.offered == [B] * asks  # flags have no bounds
        assert {number: one.source for number, one in filters.items()} == (
            {0: "keys of a join, a"} if asks and takes else {}
        )
