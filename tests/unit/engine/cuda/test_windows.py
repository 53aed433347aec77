"""Calls over windows, over a stand-in for libcudf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.operators.window.window import Window
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal, SortKey
from bamquery.plan.windows import Bound, WindowCall, WindowFrame
from tests.conformance.harness import Rows, assert_same, run
from tests.conformance.spilling import run_spilling
from tests.devices import vectors as device_vectors
from tests.devices import windows as device_windows
from tests.selection.effort import effort, spread
from tests.strategies import ALL_TYPES

INT = pa.int64()


def test_vectors(device: Device[Any]) -> None:
    device_vectors.check_vectors(device, (1, 2, 33))


def test_functions(device: Device[Any]) -> None:
    device_windows.check_functions(device, (1, 2, 23))


@pytest.mark.long
def test_frames(device: Device[Any]) -> None:
    device_windows.check_frames(device, 24, effort(3, 1))


@pytest.mark.long
def test_types(device: Device[Any]) -> None:
    device_windows.check_types(device, 12, spread(ALL_TYPES, 7))


def test_texts_in_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    device_windows.check_texts_in_portions(device, monkeypatch, 14)


def test_errors(device: Device[Any]) -> None:
    device_windows.check_errors(device)


def test_parts_of_a_partition(device: Device[Any]) -> None:
    device_windows.check_parts_of_a_partition(device, 30, (0, 9))


def test_a_partition_in_portions(device: Device[Any], tmp_path: Path) -> None:
    rows = 60
    key = [i // 3 if i < 40 else 20 for i in range(rows)]
    values = [None if i % 7 == 3 else (i * 37) % 50 - 20 for i in range(rows)]
    table = pa.table({"k": pa.array(key, INT), "i": pa.array(values, INT), "row": pa.array(range(rows), INT)})
    k, i, row = (ColumnRef(n, field.name, field.type) for n, field in enumerate(table.schema))
    start, end, here = Bound("unbounded preceding"), Bound("unbounded following"), Bound("current row")
    near = WindowFrame("groups", Bound("preceding", Literal(pa.scalar(2, INT))), here)
    for order, frames in (
        (row, [WindowFrame(), WindowFrame("rows", here, end), WindowFrame("rows", start, end), near]),
        (k, [WindowFrame(), WindowFrame("range", here, end)]),
    ):
        calls = [WindowCall(AggregateCall(name, (), INT)) for name in ("row_number", "rank", "dense_rank")]
        calls += [WindowCall(AggregateCall("cume_dist", (), pa.float64()))]
        calls += [WindowCall(AggregateCall("sum", (i,), HUGEINT), frame) for frame in frames]
        calls += [WindowCall(AggregateCall("last_value", (row,), INT), frame) for frame in frames]
        one, nothing = (Literal(pa.scalar(value, INT)) for value in (1, None))
        calls += [
            WindowCall(AggregateCall("lag", (i, one, nothing), INT), ignore_nulls=nulls)
            for nulls in (False, True)
        ]
        names = tuple(f"c{n}" for n in range(len(calls)))
        child = nodes.Values(table.to_batches()[0])
        plan = nodes.Window(child, (), (SortKey(order),), tuple(calls), names)
        operator: Window[Any] = Window(Rows(table, (7,)), plan)
        given = run_spilling(operator, device, tmp_path, "24 KiB")
        assert operator.profile.details["portions"] > 5
        whole: Window[Any] = Window(Rows(table), plan)
        assert_same(given, run(whole, CpuDevice()))


def test_many_rows_go_in_steps(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.windows import framed_aggregates

    monkeypatch.setattr(framed_aggregates, "_FRAMES", 5)
    monkeypatch.setattr(framed_aggregates, "_ROWS", 7)
    device_windows.check_functions(device, (23,))
