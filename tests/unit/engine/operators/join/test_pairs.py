"""Pairs of rows without keys, in portions, and conditions on pairs over no more columns than they read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits
from bamquery.engine.operators.join import pairs as module
from bamquery.engine.operators.join.mark_join import MarkJoinProbe
from bamquery.engine.operators.join.pairs import (
    AllPairs,
    JoinCondition,
    JoinPairFinder,
    PairCondition,
    select_positions,
)
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.plan.format import format_expression

DEVICE = CpuDevice()


def _column(place: int) -> ColumnRef:
    return ColumnRef(place, f"c{place}", pa.int64())


def _frame(*columns: list[int | None]) -> pa.RecordBatch:
    arrays = [pa.array(column, pa.int64()) for column in columns]
    return pa.record_batch(arrays, [f"c{i}" for i in range(len(arrays))])


@pytest.mark.parametrize(
    ("build", "rows", "stops"),
    [(4, 5, [2, 4, 5]), (8, 3, [1, 2, 3]), (9, 2, [1, 2]), (0, 19, [8, 16, 19]), (1, 8, [8]), (4, 0, [])],
)
def test_all_pairs(monkeypatch: pytest.MonkeyPatch, build: int, rows: int, stops: list[int]) -> None:
    """As many rows at once as have eight pairs together, or one."""
    monkeypatch.setattr(module, "_PORTION", 8)
    table = AllPairs(DEVICE, build)
    portions = list(table.matches(_frame([*range(rows)])))
    assert [stop for stop, _, _ in portions] == stops
    found = [(int(p), int(f)) for _, ps, fs in portions for p, f in zip(ps, fs, strict=True)]
    assert found == [(p, f) for p in range(rows) for f in range(build)]
    assert table.nbytes == 0


def test_conditions_read_their_columns_only() -> None:
    residual = Call("less", (_column(4), Call("add", (_column(1), _column(3)), pa.int64())), pa.bool_())
    condition = PairCondition.from_residual(residual, 3)
    assert (condition.probe_columns, condition.build_columns) == ((1,), (0, 1))
    read = {
        c.index: format_expression(c)
        for c in (condition.expression.arguments[0], *condition.expression.arguments[1].arguments)  # type: ignore
    }
    assert read == {2: "c4", 0: "c1", 1: "c3"}


@pytest.mark.parametrize(("value", "never"), [(True, False), (False, True), (None, True)])
def test_conditions_that_are_never_true(value: bool | None, never: bool) -> None:
    assert JoinCondition(residual=Literal(pa.scalar(value, pa.bool_()))).is_never_true == never
    assert not JoinCondition().is_never_true
    assert not JoinCondition(residual=LESS).is_never_true


LESS = Call("less", (_column(1), _column(3)), pa.bool_())
MINE = Call("less", (_column(1), Literal(pa.scalar(5, pa.int64()))), pa.bool_())
OTHER = Call("less", (_column(3), Literal(pa.scalar(5, pa.int64()))), pa.bool_())


@pytest.mark.parametrize("residual", [LESS, MINE, OTHER, Literal(pa.scalar(True)), None], ids=str)
@pytest.mark.parametrize("piece", [16, 100, 1 << 20])
@pytest.mark.parametrize("portion", [3, 1 << 18])
def test_pairs_of_conditions(
    monkeypatch: pytest.MonkeyPatch, residual: Expression | None, piece: int, portion: int
) -> None:
    """Every row is in one portion; those for which nulls leave the condition open are named."""
    monkeypatch.setattr(module, "_PORTION", portion)
    mine, others = [None, 4, 9, 1, 5], [3, None, 7, 2]
    probe, build = _frame([*range(5)], mine), _frame([*range(4)], others)

    def truth(one: int | None, other: int | None) -> bool | None:
        values = {LESS: (one, other), MINE: (one, 5), OTHER: (other, 5)}.get(residual, (0, 1))  # type: ignore
        return None if None in values else values[0] < values[1]  # type: ignore[operator]

    for wants in (True, False):
        with ExecutionContext(DEVICE, Settings()) as context:
            context.string_limits = StringLimits(piece=piece)
            condition = JoinCondition(residual=residual)
            finder = JoinPairFinder(context, AllPairs(DEVICE, 4), build, condition, 2, wants_undecided=wants)
            portions = list(finder.pairs(probe))
        assert [one.start for one in portions] == [0, *(one.stop for one in portions[:-1])]
        assert portions[-1].stop == 5
        found = [
            (int(p), int(f))
            for one in portions
            for p, f in zip(one.probe_positions, one.build_positions, strict=True)
        ]
        assert found == [(i, j) for i, a in enumerate(mine) for j, b in enumerate(others) if truth(a, b)]
        if wants:
            undecided = [int(row) for one in portions for row in one.undecided]  # type: ignore[union-attr]
            assert undecided == [i for i, a in enumerate(mine) if any(truth(a, b) is None for b in others)]
        else:
            assert all(one.undecided is None or not len(one.undecided) for one in portions)


def test_positions_among_some_rows() -> None:
    chosen = np.array([11, 11, 13])
    assert select_positions(10, 15, chosen).tolist() == [11, 13]
    assert select_positions(10, 15, chosen, negate=True).tolist() == [10, 12, 14]
    assert select_positions(3, 3, chosen[:0], negate=True).tolist() == []


class _Counting(CpuDevice):
    def __init__(self) -> None:
        super().__init__()
        self.tables: list[int] = []

    def join_table(self, keys: Any, nulls_equal: Any) -> Any:
        self.tables.append(keys.num_rows)
        return super().join_table(keys, nulls_equal)


def test_marks_of_rows_make_a_table_for_each_kind_of_nulls_once() -> None:
    device = _Counting()
    columns = (_column(0), _column(1))
    condition = JoinCondition(
        residual=Literal(pa.scalar(True)), compared=tuple(zip(columns, columns, strict=True))
    )
    build = _frame([1, 1, 1, None, 2, None, 2], [1, 1, 2, 2, None, 2, None])
    with ExecutionContext(device, Settings()) as context:
        probe = MarkJoinProbe(context, build, condition)
        assert device.tables == []
        for _ in range(2):
            equal, unknown = probe.probe(_frame([1, 1, 3, 1, None], [1, 3, 3, 2, 1]))
            assert equal.tolist() == [True, False, False, True, False]
            assert unknown.tolist() == [False, False, False, True, True]
        # whole rows; by the first column and by the second: of whole rows, and of those without the other
        assert sorted(device.tables) == [1, 1, 2, 2]
        assert [flags.tolist() for flags in probe.probe(_frame([None], [None]))] == [[False], [True]]
