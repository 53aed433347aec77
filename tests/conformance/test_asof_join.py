"""ASOF joins on every device against DuckDB."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.join.asof_join import AsofJoin
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Field
from tests.conformance.harness import Forever, Rows, random_column, run
from tests.conformance.spilling import run_spilling
from tests.oracle import ask
from tests.values import plain

SIGNS = {"greater_equal": ">=", "greater": ">", "less_equal": "<=", "less": "<"}


def _table(rows: int, seed: int) -> pa.Table:
    """Keys k and g, and times t, no two of which are equal where both keys are."""
    times = random_column(pa.int64(), rows, seed, list(range(400)))
    keys = random_column(pa.int32(), rows, seed + 1, [1, 2, 3])
    flags = random_column(pa.large_string(), rows, seed + 2, ["a", "b"])
    seen = set()
    kept = []
    for i, row in enumerate(zip(keys.to_pylist(), flags.to_pylist(), times.to_pylist(), strict=True)):
        if row not in seen:
            kept.append(i)
            seen.add(row)
    table = pa.table({"k": keys, "g": flags, "t": times, "n": pa.array(range(rows), pa.int64())})
    return table.take(pa.array(kept, pa.int64()))


def _column(table: pa.Table, name: str) -> Expression:
    index = table.column_names.index(name)
    return ColumnRef(index, name, table.schema.field(index).type)


def _join(
    left: pa.Table, right: pa.Table, keys: dict[str, bool], function: str, keeps: bool
) -> AsofJoin[Any]:
    pairs = [(_column(left, name), _column(right, name), equal) for name, equal in keys.items()]
    inequality = (function, _column(left, "t"), _column(right, "t"))
    fields = tuple(Field(f.name, f.type) for table in (left, right) for f in table.schema)
    return AsofJoin(Rows(left), Rows(right), pairs, inequality, fields, keeps_left=keeps)


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    rows = zip(*(plain(column) for column in table.columns), strict=True)
    return sorted(tuple(str(value) for value in row) for row in rows)


@pytest.mark.parametrize(("function", "keeps"), list(product(SIGNS, [False, True])))
@pytest.mark.parametrize("rows", [(0, 5), (5, 0), (40, 300), (300, 40)], ids=str)
def test_nearest_rows(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], function: str, keeps: bool, rows: tuple[int, int]
) -> None:
    left, right = _table(rows[0], 1), _table(rows[1], 7)
    word = "ASOF LEFT JOIN" if keeps else "ASOF JOIN"
    for keys in ({"k": False, "g": False}, {"k": True, "g": False}, {"k": True, "g": True}):
        on = [f"l.{k} {'IS NOT DISTINCT FROM' if equal else '='} r.{k}" for k, equal in keys.items()]
        on.append(f"l.t {SIGNS[function]} r.t")
        expected = ask(oracle, f"SELECT * FROM l {word} r ON {' AND '.join(on)}", l=left, r=right)
        assert _rows(run(_join(left, right, keys, function, keeps), device)) == _rows(expected)


@pytest.mark.parametrize(("function", "keeps"), list(product(SIGNS, [False, True])))
def test_nearest_rows_by_files(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], tmp_path: Path, function: str, keeps: bool
) -> None:
    left, right = _table(300, 1), _table(280, 7)
    word = "ASOF LEFT JOIN" if keeps else "ASOF JOIN"
    on = f"l.k IS NOT DISTINCT FROM r.k AND l.g = r.g AND l.t {SIGNS[function]} r.t"
    sql = f"SELECT * FROM l {word} r ON {on}"
    join = _join(left, right, {"k": True, "g": False}, function, keeps)
    on_cpu = device.task_size == 1  # on a GPU frames weigh more
    found = run_spilling(join, device, tmp_path, "40 kB" if on_cpu else "1 MB")
    assert _rows(found) == _rows(ask(oracle, sql, l=left, r=right))
    assert join.profile.details.get("spilled") or not on_cpu


def test_without_keys(device: Device[Any]) -> None:
    left = pa.table({"t": pa.array([5, None, 1, 9], pa.int64())})
    right = pa.table({"t": pa.array([4, 2, 7], pa.int64())})
    found = run(_join(left, right, {}, "greater_equal", True), device)
    assert found.column(1).to_pylist() == [4, None, None, 7]


def test_it_holds_no_more_than_it_may(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "GATHERED_ROWS", 1)
    table = _table(300, 1)
    endless = Forever(table.combine_chunks().to_batches()[0])
    join = _join(table, table, {"k": False}, "less", False)
    join.children = (join.children[0], endless)
    with (
        ExecutionContext(device, Settings().with_value("memory_limit", "1MB")) as context,
        pytest.raises(MemoryLimitError, match="ASOF JOIN needs"),
    ):
        list(join.frames(context))
    assert endless.closed
