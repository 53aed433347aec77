"""Joins of all kinds on every device against DuckDB, and what they hold."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, ExecutionError, MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Forever, Rows, random_column, run
from tests.oracle import ask
from tests.strategies import ALL_TYPES
from tests.values import plain

KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")
FEW = [0, 1, 2, 3, 5, 8]


def _table(kind: pa.DataType, rows: int, seed: int, values: list[Any] | None = None) -> pa.Table:
    key = random_column(kind, rows, seed, values)
    return pa.table({"k": key, "n": pa.array(range(rows), pa.int64())})


def _fields(left: pa.Table, right: pa.Table, kind: JoinKind) -> tuple[Field, ...]:
    own = [Field(field.name, field.type) for field in left.schema]
    theirs = [] if kind in ("semi", "anti") else [Field(f.name, f.type) for f in right.schema]
    return (*own, *theirs, *([Field("mark", pa.bool_())] if kind == "mark" else []))


def _key(table: pa.Table) -> ColumnRef:
    return ColumnRef(0, "k", table.schema.field("k").type)


def _joined(
    left: pa.Table, right: pa.Table, kind: JoinKind, condition: JoinCondition, sizes: list[int]
) -> Join[Any]:
    fields = _fields(left, right, "mark" if kind == "mark" else kind)
    if kind == "mark":
        fields = (*_fields(left, right, "semi"), Field("mark", pa.bool_()))
    return Join(Rows(left, sizes), Rows(right, sizes), kind, condition, fields)


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = zip(*(plain(column) for column in table.columns), strict=True)
    return sorted(tuple(str(value) for value in row) for row in rows)


def _sql(kind: JoinKind, on: str) -> str:
    word = {"inner": "JOIN"}.get(kind, f"{kind.upper()} JOIN")
    return f"SELECT * FROM l {word} r ON {on}"


def _residual(left: pa.Table) -> Expression:
    """l.n < r.n"""
    width = left.num_columns
    return Call("less", (ColumnRef(1, "n", pa.int64()), ColumnRef(width + 1, "n", pa.int64())), pa.bool_())


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_columns_of_every_type_are_padded(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType
) -> None:
    left, right = (_table(pa.int64(), rows, rows, FEW) for rows in (50, 30))
    left = left.append_column("x", random_column(kind, 50, 3))
    right = right.append_column("x", random_column(kind, 30, 4))
    condition = JoinCondition((_key(left),), (_key(right),), (False,))
    ours = run(_joined(left, right, "full", condition, [13]), device)
    assert _rows(ours) == _rows(ask(oracle, _sql("full", "l.k = r.k"), l=left, r=right))


@pytest.mark.parametrize("held", [[], [1, 2], [1, None], [None]], ids=str)
def test_marks(oracle: duckdb.DuckDBPyConnection, device: Device[Any], held: list[int | None]) -> None:
    left = pa.table({"k": pa.array([1, 3, None], pa.int64()), "n": pa.array([0, 1, 2], pa.int64())})
    right = pa.table({"k": pa.array(held, pa.int64())})
    equal = Call("equal", (_key(left), ColumnRef(2, "k", pa.int64())), pa.bool_())
    expected = ask(oracle, "SELECT *, k IN (SELECT k FROM r) FROM l", l=left, r=right)
    for condition in (
        JoinCondition((_key(left),), (_key(right),), (False,)),
        JoinCondition(residual=equal),
    ):
        ours = run(_joined(left, right, "mark", condition, [2]), device)
        assert _rows(ours) == _rows(expected)


@pytest.mark.parametrize("rows", [(60, 40), (60, 0), (0, 40)], ids=str)
@pytest.mark.parametrize(("nulls_left", "nulls_right"), [(True, True), (True, False), (False, True)])
def test_marks_by_several_columns(
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    rows: tuple[int, int],
    nulls_left: bool,
    nulls_right: bool,
) -> None:
    def table(count: int, seed: int, with_nulls: bool) -> pa.Table:
        chosen = random.Random(seed)
        values: list[int | None] = [0, 1, 2, 3, 4]
        values += [None] if with_nulls else []
        one, other, third = ([chosen.choice(values) for _ in range(count)] for _ in range(3))
        texts = [None if value is None else f"t{value}" for value in other]
        return pa.table(
            {
                "a": pa.array(one, pa.int64()),
                "b": pa.array(texts, pa.large_string()),
                "c": pa.array(third, pa.int8()),
            }
        )

    left, right = table(rows[0], 1, nulls_left), table(rows[1], 2, nulls_right)
    places = [ColumnRef(i, field.name, field.type) for i, field in enumerate(left.schema)]
    others = [ColumnRef(3 + i, field.name, field.type) for i, field in enumerate(left.schema)]
    kinds = {"pairs": places[:2], "rows": places}
    for columns in kinds.values():
        names = ", ".join(column.name for column in columns)
        expected = ask(oracle, f"SELECT *, ({names}) IN (SELECT {names} FROM r) FROM l", l=left, r=right)
        parts = tuple(
            Call("equal", (mine, other), pa.bool_()) for mine, other in zip(columns, others, strict=False)
        )
        compared = tuple((column, column) for column in columns)
        condition = JoinCondition(residual=Call("and", parts, pa.bool_()), compared=compared)
        ours = run(_joined(left, right, "mark", condition, [7]), device)
        assert _rows(ours) == _rows(expected)
    # DuckDB has no such queries that take columns from outside.
    same = "SELECT 1 FROM r WHERE r.c IS NOT DISTINCT FROM l.c AND"
    maybe = " AND ".join(f"(r.{x} = l.{x} OR r.{x} IS NULL OR l.{x} IS NULL)" for x in "ab")
    equal = "r.a = l.a AND r.b = l.b"
    answer = f"CASE WHEN EXISTS ({same} {equal}) THEN TRUE WHEN NOT EXISTS ({same} {maybe}) THEN FALSE END"
    expected = ask(oracle, f"SELECT *, {answer} FROM l", l=left, r=right)
    parts = tuple(Call("equal", pair, pa.bool_()) for pair in zip(places[:2], others[:2], strict=True))
    condition = JoinCondition(
        (places[2],), (places[2],), (True,), Call("and", parts, pa.bool_()), compared=compared[:2]
    )
    ours = run(_joined(left, right, "mark", condition, [7]), device)
    assert _rows(ours) == _rows(expected)


def test_single_rows(device: Device[Any]) -> None:
    left = pa.table({"k": pa.array([1, 2, 3], pa.int64())})
    right = pa.table({"k": pa.array([1, 2, 2], pa.int64())})
    condition = JoinCondition((_key(left),), (_key(right),), (False,))
    found = run(_joined(left, right.slice(0, 2), "single", condition, [10]), device)
    assert found.column(1).to_pylist() == [1, 2, None]
    for several in (condition, JoinCondition()):
        with pytest.raises(ExecutionError, match="gave several rows"):
            run(_joined(left, right, "single", several, [10]), device)


def test_many_pairs_come_in_portions(device: Device[Any]) -> None:
    """A thousand rows with a thousand each: a million pairs, never in memory together."""
    left = pa.table({"k": pa.array([7] * 1000, pa.int64()), "n": pa.array(range(1000), pa.int64())})
    condition = JoinCondition((_key(left),), (_key(left),), (False,))
    with ExecutionContext(device, Settings().with_value("threads", 2)) as context:
        sizes = [device.row_count(f) for f in _joined(left, left, "inner", condition, [1000]).frames(context)]
    assert sum(sizes) == 1_000_000
    assert len(sizes) > 1 or device.name != "cpu"


def test_a_join_holds_no_more_than_it_may(device: Device[Any]) -> None:
    table = _table(pa.int64(), 100_000, 1)
    endless = Forever(table.combine_chunks().to_batches()[0])
    condition = JoinCondition((_key(table),), (_key(table),), (False,))
    with (
        ExecutionContext(device, Settings().with_value("memory_limit", "50MB")) as context,
        pytest.raises(MemoryLimitError, match=r"JOIN needs .* and memory_limit is 47\.7 MiB"),
    ):
        list(Join(Rows(table), endless, "inner", condition, _fields(table, table, "inner")).frames(context))
    assert endless.closed
    assert context.memory.used == 0


@pytest.mark.parametrize("kind", ["inner", "semi"])
def test_nothing_is_probed_where_nothing_is_held(device: Device[Any], kind: JoinKind) -> None:
    table = _table(pa.int64(), 100, 1)
    probe = Rows(table)
    condition = JoinCondition((_key(table),), (_key(table),), (False,))
    join = Join(probe, Rows(table.slice(0, 0)), kind, condition, _fields(table, table, kind))
    assert run(join, device).num_rows == 0
    assert probe.frames_given == 0


def test_a_join_can_be_cancelled(device: Device[Any]) -> None:
    table = _table(pa.int64(), 2000, 1)
    with ExecutionContext(device, Settings().with_value("threads", 2)) as context:
        probe = Forever(table.combine_chunks().to_batches()[0])
        fields = _fields(table, table, "inner")
        frames = Join(probe, Rows(table), "inner", JoinCondition(), fields).frames(context)
        next(frames)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            list(frames)
    assert probe.closed
