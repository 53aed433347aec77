"""DISTINCT ON: what is left of each chunk, and the answer, held against sorting everything."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.lowering import lower
from bamquery.engine.operators.aggregate.distinct_on import DistinctOnPrefilter
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.sort.sort import Sort
from bamquery.engine.settings import Settings
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, SortKey
from tests.conformance.harness import Rows, assert_same, reference, run

ROWS = 5000
CHUNKS = (70_000, 1)


def _table(groups: int) -> pa.Table:
    random = np.random.default_rng(groups)
    x = random.integers(-6, 6, ROWS) / 2
    return pa.table(
        {
            "g": pa.array(random.integers(0, groups, ROWS), mask=random.random(ROWS) < 0.1),
            "x": pa.array(
                np.where(x == 1.5, np.nan, np.where(x == 0, -0.0, x)), mask=random.random(ROWS) < 0.3
            ),
            "s": pa.array([f"t{i % 11}" for i in range(ROWS)], pa.large_string()),
            "n": pa.array(random.permutation(ROWS)),
        }
    )


ORDERS = {
    "x, n": ("x", False, False),
    "x DESC, n": ("x", True, False),
    "x NULLS FIRST, n": ("x", False, True),
    "x DESC NULLS FIRST, n": ("x", True, True),
    "s DESC, n": ("s", True, False),
    "n": ("n", False, False),
    "n DESC": ("n", True, False),
}


def _order(table: pa.Table, sql: str) -> list[SortKey]:
    name, descending, nulls_first = ORDERS[sql]
    first = SortKey(reference(table, name), descending, nulls_first)
    return [first] if name == "n" else [first, SortKey(reference(table, "n"))]


@pytest.mark.parametrize("sql", ORDERS)
def test_the_first_row_of_each_group(
    device: Device[Any], oracle: duckdb.DuckDBPyConnection, sql: str
) -> None:
    table = _table(40)
    order = _order(table, sql)
    for keys in (order[:1], order):
        left = run(DistinctOnPrefilter(Rows(table, CHUNKS), [reference(table, "g")], keys), device)
        assert left.num_rows == 41  # one chunk of rows, and groups
    oracle.register("rows_left", left)
    oracle.register("rows_given", table)
    query = f"SELECT DISTINCT ON (g) * FROM {{}} ORDER BY g, {sql}"
    assert_same(
        oracle.sql(query.format("rows_left")).to_arrow_table(),
        oracle.sql(query.format("rows_given")).to_arrow_table(),
    )


@pytest.mark.parametrize(
    ("descending", "nulls_first"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_of_rows_that_are_alike_the_first(
    device: Device[Any], *, descending: bool, nulls_first: bool
) -> None:
    table = _table(40)
    key = SortKey(reference(table, "x"), descending, nulls_first)
    ours = run(DistinctOnPrefilter(Rows(table, CHUNKS), [reference(table, "g")], [key]), device)
    ordered = run(Sort(Rows(table, CHUNKS), [key]), device).to_pylist()
    firsts = list({row["g"]: row["n"] for row in reversed(ordered)}.values())
    assert sorted(ours.column("n").to_pylist()) == sorted(firsts)


def test_where_most_rows_are_first_ones_all_are_left(device: Device[Any]) -> None:
    table = _table(1_000_000)
    left = run(
        DistinctOnPrefilter(Rows(table, CHUNKS), [reference(table, "g")], [SortKey(reference(table, "n"))]),
        device,
    )
    assert_same(left, table)


@pytest.mark.parametrize(("chunks", "expected"), [([2], 1), ([1, 2], 2), ([1, 4], 2), ([2, 3], 2)])
def test_a_row_alone_says_nothing_of_other_chunks(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch, chunks: list[int], expected: int
) -> None:
    monkeypatch.setattr(framing, "GATHERED_ROWS", 1 / device.task_size)  # nothing is joined
    rows = sum(chunks)
    table = pa.table({"g": pa.array([4] * rows), "n": pa.array(range(rows))})
    order = [SortKey(reference(table, "n"))]
    left = run(DistinctOnPrefilter(Rows(table, chunks), [reference(table, "g")], order), device, threads=1)
    assert left.num_rows == expected
    assert left.column("n")[0].as_py() == 0


def _operators(operator: Operator[Any]) -> list[str]:
    return [operator.profile.name, *(name for child in operator.children for name in _operators(child))]


def test_only_for_groups_of_which_the_first_rows_are_wanted(device: Device[Any]) -> None:
    table = _table(5)
    rows = nodes.Values(table.combine_chunks().to_batches()[0])
    g, x, n = (reference(table, name) for name in "gxn")

    def found(function: str, *keys: SortKey, limit: int | None = None) -> list[str]:
        call = AggregateCall(function, (n,), n.type)
        plan = nodes.Aggregate(nodes.Sort(rows, keys, limit), (g,), (call,), ("g", "n"))
        return _operators(lower(plan, device, Settings()))

    assert found("first", SortKey(g), SortKey(x)) == ["Aggregate", "Sort", "First rows", "Values"]
    assert found("first", SortKey(g)) == ["Aggregate", "Values"]
    assert found("last", SortKey(g), SortKey(x)) == ["Aggregate", "Sort", "Values"]
    assert found("first", SortKey(x), limit=3) == ["Aggregate", "Top rows", "Values"]
