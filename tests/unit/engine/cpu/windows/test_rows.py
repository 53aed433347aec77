"""Rows and vectors of the CPU: no copy or grouping where none is needed, and asks before each pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.cpu.windows import rows as rows_module
from bamquery.engine.cpu.windows.rows import CpuWindowRows
from bamquery.plan.expressions import ColumnRef
from bamquery.statement_context.cancellation import use_cancellation_check

NUMBERS = Vector(np.array([3, 3, 1, 4, 4, 3]))


def _asked(work: Callable[[], object]) -> int:
    count = 0

    def check() -> None:
        nonlocal count
        count += 1

    with use_cancellation_check(check):
        work()
    return count


def test_numbers_that_change() -> None:
    assert NUMBERS.changes().values.tolist() == [True, False, True, True, False, True]
    assert NUMBERS.slice(0, 1).changes().values.tolist() == [True]


def test_each_pass_asks_whether_to_go_on() -> None:
    for work in (NUMBERS.changes, NUMBERS.totals, lambda: NUMBERS.take(Vector(np.array([1])))):
        assert _asked(work) == 1
    rows = CpuWindowRows(pa.record_batch([[1, 2], [3, 4]], ["a", "b"]))
    keys = [ColumnRef(i, "", pa.int64()) for i in range(2)]
    assert _asked(lambda: rows.changes(keys)) >= _asked(lambda: rows.changes(keys[:1])) + 1
    evaluated = _asked(lambda: rows.evaluate(keys))
    assert _asked(lambda: rows.changes(keys)) - evaluated == 2


def test_numbers_without_nulls_are_not_copied() -> None:
    column = pa.array([5, 6, 7])
    rows = CpuWindowRows(pa.record_batch([column], ["a"]))
    assert np.shares_memory(rows.numbers(column, 0).values, column.to_numpy())
    missing = pa.array([5, None, 7])
    assert rows.numbers(missing, -9).values.tolist() == [5, -9, 7]


@pytest.mark.parametrize(
    ("column", "grouped"),
    [
        (pa.array([1, 1, 2, None, None, 2]), False),
        (pa.array([1, 1, 2, None, None, 2], pa.timestamp("us")), False),
        (pa.array([1, 1, 2, None, None, 2], pa.date32()), False),
        (pa.array([float("nan"), float("nan"), 2.0, None, None, 2.0]), False),
        (pa.array(["a", "a", "b", None, None, "b"], pa.large_string()), False),
        (pa.array([b"a", b"a", b"b", None, None, b"b"], pa.large_binary()), False),
        (pa.array([True, True, False, None, None, False]), True),
        (pa.array([1, 1, 2, None, None, 2], pa.decimal128(20, 0)), True),
    ],
)
def test_neighbours_are_compared_without_grouping_all_rows(
    column: pa.Array, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[bool] = []
    group = rows_module.group_rows

    def group_rows(columns: list[pa.Array], count: int) -> object:
        used.append(True)
        return group(columns, count)

    monkeypatch.setattr(rows_module, "group_rows", group_rows)
    found = CpuWindowRows(pa.record_batch([column], ["a"])).changes([ColumnRef(0, "a", column.type)])
    assert found.values.tolist() == [True, False, True, True, False, True]
    assert bool(used) == grouped
