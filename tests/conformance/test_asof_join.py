"""ASOF joins on every device against DuckDB."""

from __future__ import annotations

import operator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.join import asof_join
from bamquery.engine.operators.join.asof_join import AsofJoin
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Field
from tests.conformance.harness import Forever, Rows, random_column, run
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
@pytest.mark.parametrize("rows", [(0, 5), (5, 0), (300, 40)], ids=str)
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


def _once(table: pa.Table, names: list[str]) -> pa.Table:
    """The first row of each of the columns' values: of several that are equally near any may come."""
    first: dict[Any, int] = {}
    for place, row in enumerate(zip(*(table[name].to_pylist() for name in names), strict=True)):
        first.setdefault(row, place)
    return table.take(pa.array([*first.values()], pa.int64()))


def _nearest(left: pa.Table, right: pa.Table, keys: dict[str, bool], function: str, keeps: bool) -> list[Any]:
    """By each pair."""
    answer, others = [], right.to_pylist()
    compare, best = (operator.ge if "equal" in function else operator.gt), max
    if function.startswith("less"):
        compare, best = (operator.le if "equal" in function else operator.lt), min
    for mine in left.to_pylist():
        found = [
            other
            for other in others
            if all(mine[k] == other[k] and (equal or mine[k] is not None) for k, equal in keys.items())
            and None not in (mine["t"], other["t"])
            and compare(mine["t"], other["t"])
        ]
        if found or keeps:
            other = best(found, key=lambda row: row["t"]) if found else dict.fromkeys(right.column_names)
            answer.append((*mine.values(), *other.values()))
    return answer


@pytest.mark.parametrize("way", ["small frames", "small portions", "files"])
@pytest.mark.parametrize(("function", "keeps"), list(product(SIGNS, [False, True])))
def test_in_steps(
    device: Device[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    function: str,
    keeps: bool,
    way: str,
) -> None:
    """In memory in the left side's order, by files in that of the values."""
    left, right = (_table(300, 1), _table(280, 7)) if way == "files" else (_table(90, 1), _table(70, 7))
    if way == "files":  # many left rows stand before, or behind, all of the right side
        later = pc.add(right["t"], -200 if function.startswith("less") else 200)
        right = right.set_column(2, "t", later)
    limit = {"files": "40 kB" if device.task_size == 1 else "50 kB"}.get(way, "1 GB")
    monkeypatch.setattr(framing, "GATHERED_ROWS", 25 // device.task_size)
    if way == "small frames":
        monkeypatch.setattr(asof_join, "FRAME_ROWS", 7)
    for keys in ({"k": True},) if way == "files" else ({"k": True, "g": False}, {"k": False}, {}):
        right = _once(right, [*keys, "t"])
        join = _join(left, right, keys, function, keeps)
        fields = [Field(str(place), field.type) for place, field in enumerate(join.fields)]
        settings = Settings().with_values({"threads": 2, "memory_limit": limit})
        with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
            context.memory.announce(join.all_reservations(), 2)
            if way == "small portions":
                context.string_limits = StringLimits(piece=200)
            frames = []
            for frame in join.frames(context):
                frames.append(device.to_arrow(frame, fields))
                if way != "files":
                    held = sum(3 * child._batch.nbytes for child in join.children)
                    assert context.memory.used >= held or device.task_size > 1
            assert context.memory.peak <= context.memory.limit
            assert context.memory.used == 0
        assert list(tmp_path.iterdir()) == []
        found = [tuple(row.values()) for frame in frames for row in frame.to_pylist()]
        expected = _nearest(left, right, keys, function, keeps)
        assert sorted(map(str, found)) == sorted(map(str, expected))
        assert bool(join.profile.details.get("spilled")) == (way == "files")
        if way != "files":
            assert join.profile.details["peak_memory"] > 0
            assert found == expected
            assert len(frames) > 5
        else:
            values = [(*(row[place] for place in range(len(keys))), row[2]) for row in found]
            usable = [value for value in values if None not in value]
            turned = [(*key, -last) if function.startswith("less") else (*key, last) for *key, last in usable]
            assert turned == sorted(turned)


def test_without_keys(device: Device[Any]) -> None:
    left = pa.table({"t": pa.array([5, None, 1, 9], pa.int64())})
    right = pa.table({"t": pa.array([4, 2, 7], pa.int64())})
    times, others = ColumnRef(0, "t", pa.int64()), ColumnRef(0, "u", pa.int64())
    shown = AsofJoin(Rows(left), Rows(right), [], ("greater", times, others), (), keeps_left=True)
    assert shown.profile.details == {"kind": "left", "values": ["t"]}
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


@pytest.mark.parametrize("limit", ["1 GB", "40 kB"])
def test_a_cancelled_join_stops(
    device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Between two frames of its own, too, of which a consumer may take long to ask for the next."""
    monkeypatch.setattr(asof_join, "FRAME_ROWS", 50)
    monkeypatch.setattr(framing, "GATHERED_ROWS", 25 // device.task_size)
    left, right = _table(300, 1), _table(280, 7)
    join = _join(left, right, {"k": True}, "less", True)
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
        context.string_limits = StringLimits(piece=200)
        frames = join.produce(context)
        next(frames)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            next(frames)
        assert context.memory.used == 0
    assert list(tmp_path.iterdir()) == []
