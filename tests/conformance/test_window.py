"""Calls over windows on every device that has them: partitions that come in pieces, memory, Ctrl-C."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.window import window as window_module
from bamquery.engine.operators.window.row_bytes import needed_row_bytes
from bamquery.engine.operators.window.window import Window
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal, SortKey
from bamquery.plan.windows import Bound, WindowCall, WindowFrame
from tests.conformance.harness import Forever, Rows, assert_same, run
from tests.oracle import ask

ROWS = 4300
HUGEINT = pa.decimal128(38, 0)


def _table(rows: int = ROWS) -> pa.Table:
    """Partitions of 0 to some hundred rows in order; keys with nulls and NaN."""
    choose = random.Random(1)
    keys: list[float | None] = [choose.choice([None, float("nan"), *range(30)]) for _ in range(rows)]
    table = pa.table(
        {
            "k": pa.array(keys, pa.float64()),
            "g": pa.array([choose.choice("ab") for _ in keys], pa.large_string()),
            "i": pa.array([choose.choice([1, 2, 5, None]) for _ in keys], pa.int64()),
            "row": pa.array(range(rows), pa.int64()),
        }
    )
    return ask(duckdb.connect(), "SELECT * FROM t ORDER BY k, g, row", t=table)


TABLE = _table()
K, G, VALUE, ROW = (ColumnRef(i, field.name, field.type) for i, field in enumerate(TABLE.schema))
ONE = Literal(pa.scalar(1, pa.int64()))
NOTHING = Literal(pa.scalar(None, pa.int64()))
NEAR = WindowFrame("rows", Bound("preceding", ONE), Bound("following", ONE), "current row")
CALLS = [
    (WindowCall(AggregateCall("row_number", (), pa.int64())), "row_number() OVER w"),
    (
        WindowCall(AggregateCall("lag", (VALUE, ONE, NOTHING), pa.int64()), ignore_nulls=True),
        "lag(i IGNORE NULLS) OVER w",
    ),
    (WindowCall(AggregateCall("sum", (VALUE,), HUGEINT)), "sum(i) OVER w"),
    (WindowCall(AggregateCall("max", (VALUE,), pa.int64()), NEAR), "max(i) OVER near"),
    (WindowCall(AggregateCall("last_value", (VALUE,), pa.int64()), NEAR), "last_value(i) OVER near"),
    (WindowCall(AggregateCall("count", (VALUE,), pa.int64(), distinct=True)), "count(DISTINCT i) OVER w"),
]


def _operator(partition: tuple[ColumnRef, ...], child: Any) -> Window[Any]:
    calls = tuple(call for call, _ in CALLS)
    names = tuple(f"c{i}" for i in range(len(calls)))
    plan = nodes.Values(TABLE.combine_chunks().to_batches()[0])
    return Window(child, nodes.Window(plan, partition, (SortKey(ROW),), calls, names))


def _refused(device: Device[Any]) -> bool:
    return any(device.capabilities.window_refusals(call) for call, _ in CALLS)


@pytest.mark.parametrize("least", [1, 40, 1000, 100_000])
@pytest.mark.parametrize("keys", [(K, G), (K,), ()], ids=lambda keys: "-".join(k.name for k in keys))
def test_pieces(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch, keys: tuple[ColumnRef, ...], least: int
) -> None:
    if _refused(device):
        pytest.skip("the device has no windows")
    monkeypatch.setattr(window_module, "GATHERED_ROWS", least)
    by = f"PARTITION BY {', '.join(key.name for key in keys)} " if keys else ""
    near = "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW"
    columns = ", ".join(sql for _, sql in CALLS)
    order = "" if keys != (K,) else "k, "
    table = TABLE if keys == (K, G) else TABLE.sort_by([("row", "ascending")])
    if keys == (K,):
        table = ask(duckdb.connect(), "SELECT * FROM t ORDER BY k, row", t=table)
    windows = f"w AS ({by}ORDER BY row), near AS ({by}ORDER BY row {near})"
    expected = ask(
        duckdb.connect(), f"SELECT *, {columns} FROM t WINDOW {windows} ORDER BY {order}row", t=table
    )
    operator = _operator(keys, Rows(table))
    given = run(operator, device)
    assert_same(given.sort_by("row"), expected.sort_by("row"))
    assert operator.profile.details["peak_memory"] > 0


def test_no_rows(device: Device[Any]) -> None:
    if _refused(device):
        pytest.skip("the device has no windows")
    assert run(_operator((K,), Rows(TABLE.slice(0, 0))), device).num_rows == 0


def test_a_partition_that_is_too_large_without_files(device: Device[Any]) -> None:
    if _refused(device):
        pytest.skip("the device has no windows")
    operator = _operator((), Rows(TABLE))
    with pytest.raises(MemoryLimitError, match=r"^sum\(\), count\(\) over a window needs"):
        run(operator, device, memory_limit="100 KiB")


def test_pieces_that_are_given_out_are_not_held(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if _refused(device):
        pytest.skip("the device has no windows")
    monkeypatch.setattr(window_module, "GATHERED_ROWS", 1)
    sizes = (1500, 1500, 3000)
    keys = [float(key) for key, size in enumerate(sizes) for _ in range(size)]
    rows = len(keys)
    table = pa.table(
        {
            "k": pa.array(keys, pa.float64()),
            "g": pa.array(["a"] * rows, pa.large_string()),
            "i": pa.array([1] * rows, pa.int64()),
            "row": pa.array(range(rows), pa.int64()),
        }
    )
    half = max(sizes)
    largest = 3 * table.nbytes // 2 + half * needed_row_bytes([call for call, _ in CALLS])
    operator = _operator((K,), Rows(table))
    assert run(operator, device, threads=1, memory_limit=f"{largest * 4 // 3} B").num_rows == rows


def test_small_partitions_are_computed_by_a_thread_s_share(device: Device[Any]) -> None:
    """Half of the memory is for what threads work on, and two pieces more."""
    if _refused(device):
        pytest.skip("the device has no windows")
    rows = 20_000
    table = pa.table(
        {
            "k": pa.array([float(row // 2) for row in range(rows)]),
            "g": pa.array(["a"] * rows, pa.large_string()),
            "i": pa.array([1] * rows, pa.int64()),
            "row": pa.array(range(rows), pa.int64()),
        }
    )
    operator = _operator((K,), Rows(table, [100]))
    settings = Settings().with_values({"threads": 2, "memory_limit": "8 MB"})
    with ExecutionContext(device, settings) as context:
        threads = context.threads
        sizes = [device.row_count(frame) for frame in operator.frames(context)]
    row_bytes = 3 * table.nbytes // rows + needed_row_bytes(operator._window.calls)
    share = 8_000_000 // (2 * (threads + 2)) // row_bytes
    assert sum(sizes) == rows
    assert share <= max(sizes) + 1 <= share + 101


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cancelled_window_stops(device: Device[Any], threads: int) -> None:
    if _refused(device):
        pytest.skip("the device has no windows")
    (batch,) = TABLE.combine_chunks().to_batches()
    with ExecutionContext(device, Settings(threads=threads)) as context:

        def cancel(given: int) -> None:
            if given == 20:
                context.cancelled.set()

        rows = Forever(batch, cancel)
        with pytest.raises(CancelledError):
            for _ in _operator((), rows).frames(context):
                pass
    assert rows.closed
