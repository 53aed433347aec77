"""Grouping sets on every device against DuckDB, over rows that come in pieces."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.aggregate.distinct_aggregate import DistinctAggregate
from bamquery.engine.operators.aggregate.grouping_sets_collect import CollectGroupingSets
from bamquery.engine.operators.aggregate.grouping_sets_expand import SET_NUMBER, ExpandGroupingSets
from bamquery.engine.operators.aggregate.rollup import Rollup, can_rollup
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Literal
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, assert_same, random_table, reference, run
from tests.oracle import ask

TABLE = random_table([pa.large_string(), pa.int8(), pa.int64()], 4300)
SETS = ((0, 1), (1,), (), (0,), ())
COUNT = AggregateCall("count_star", (), pa.int64())
SUM = AggregateCall("sum", (reference(TABLE, "c"),), pa.decimal128(38, 0))
DISTINCT = AggregateCall("count", (reference(TABLE, "b"),), pa.int64(), distinct=True)

LEAST = AggregateCall(
    "min",
    (reference(TABLE, "c"),),
    pa.int64(),
    filter=Call("greater", (reference(TABLE, "b"), Literal(pa.scalar(0, pa.int8()))), pa.bool_()),
)


def _groups(
    table: pa.Table, device: Device[Any], calls: list[AggregateCall], *, rolled_up: bool = False
) -> pa.Table:
    rows = Rows(table)
    keys = [reference(table, "a"), reference(table, "b")]
    key_fields = tuple(Field(key.name, key.type) for key in keys)
    expanded = ExpandGroupingSets(rows, keys, key_fields, SETS)
    places = [
        ColumnRef(len(rows.fields) + i, f.name, f.type) for i, f in enumerate((*key_fields, SET_NUMBER))
    ]
    values = tuple(Field(f"c{i}", call.type) for i, call in enumerate(calls))
    kind = DistinctAggregate if any(call.distinct for call in calls) else Aggregate
    own_fields = (*key_fields, SET_NUMBER, *values)
    if rolled_up:
        grouped: Any = Rollup(rows, keys, calls, SETS, own_fields)
    else:
        grouped = kind(expanded, places, calls, own_fields)
    fields = (*key_fields, *values, SET_NUMBER)
    return run(CollectGroupingSets(grouped, rows.fields, calls, SETS, fields), device)


@pytest.mark.parametrize("rows", [4300, 1, 0])
@pytest.mark.parametrize(
    ("calls", "sql", "rolled_up"),
    [
        ([COUNT, SUM], "count(*), sum(c)", False),
        ([COUNT, SUM, LEAST], "count(*), sum(c), min(c) FILTER (b > 0)", True),
        ([COUNT, DISTINCT], "count(*), count(DISTINCT b)", False),
        ([], "", False),
        ([], "", True),
    ],
)
def test_sets(  # noqa: PLR0917
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    rows: int,
    calls: list[AggregateCall],
    sql: str,
    rolled_up: bool,
) -> None:
    table = TABLE.slice(0, rows)
    columns = f"a, b, {sql}" if sql else "a, b"
    assert can_rollup(calls, 2, SETS) == (DISTINCT not in calls)
    given = _groups(table, device, calls, rolled_up=rolled_up)
    assert given.num_columns == 3 + len(calls)
    for number, keys in enumerate(("a, b", "b", "", "a", "")):
        shown = columns if "a" in keys else columns.replace("a, b", "NULL AS a, b", 1)
        shown = shown if "b" in keys else shown.replace(", b", ", NULL AS b", 1)
        by = f"GROUP BY {keys} ORDER BY {keys}" if keys else ("" if sql else "LIMIT 1")
        expected = ask(oracle, f"SELECT {shown} FROM t {by}", t=table)
        if not keys and not sql:
            expected = pa.table({"a": pa.array([None], pa.large_string()), "b": pa.array([None], pa.int8())})
        own = given.filter(pa.compute.equal(given["grouping set"], number)).drop_columns("grouping set")
        own = own.sort_by([(name, "ascending") for name in keys.split(", ")]) if keys else own
        assert_same(own, expected)


def test_with_an_order_of_rows_or_without_keys_nothing_is_rolled_up() -> None:
    assert can_rollup([COUNT], 2, [(0,), (1,)])  # no set has both
    assert not can_rollup([AggregateCall("last", (reference(TABLE, "c"),), pa.int64())], 2, [(0, 1), ()])
    assert not can_rollup([COUNT], 0, [(), ()])
