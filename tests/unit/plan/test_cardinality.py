"""Guesses of how many rows a plan gives: the order of magnitude, and which side of a join is the larger."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
import pytest

from bamquery.plan.cardinality import UNKNOWN_ROWS, estimated_rows, joined_rows
from bamquery.plan.nodes import Join, Plan, Scan
from tests.plans import plan_of


@dataclass(frozen=True)
class Counted:
    """A source that knows its rows."""

    name: str
    rows: int | None
    schema: pa.Schema


def _scan(rows: int | None) -> Plan:
    return Scan(Counted("t", rows, pa.schema([("a", pa.int64())])), (0,))


def test_sources() -> None:
    assert estimated_rows(_scan(5)) == 5
    assert estimated_rows(_scan(None)) == UNKNOWN_ROWS
    assert estimated_rows(plan_of("SELECT id FROM trips")) == UNKNOWN_ROWS


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("SELECT 1", 1, 1),
        ("VALUES (1), (2)", 2, 2),
        ("SELECT id FROM trips LIMIT 7", 7, 7),
        ("SELECT id FROM trips UNION ALL VALUES (1)", UNKNOWN_ROWS + 1, UNKNOWN_ROWS + 1),
        ("SELECT count(*) FROM trips", 1, 1),
        ("SELECT zone FROM trips GROUP BY zone", 2, UNKNOWN_ROWS / 2),
        ("SELECT id FROM trips WHERE paid AND id = 3", 1, UNKNOWN_ROWS / 10),
        ("SELECT 1 FROM trips, trips t", UNKNOWN_ROWS**2, UNKNOWN_ROWS**2),
        ("SELECT 1 FROM trips JOIN trips t USING (id)", UNKNOWN_ROWS, UNKNOWN_ROWS),
        ("SELECT id FROM trips WHERE id IN (SELECT c_i64 FROM types)", 1, UNKNOWN_ROWS),
        ("SELECT id FROM trips EXCEPT ALL SELECT c_i64 FROM types", 1, UNKNOWN_ROWS),
    ],
)
def test_nodes(sql: str, low: float, high: float) -> None:
    assert low <= estimated_rows(plan_of(sql)) <= high


def test_semi_joins_give_no_more_than_the_left_side() -> None:
    join = Join(_scan(10), _scan(1000), "semi")
    assert 1 <= estimated_rows(join) <= 10


def test_more_rows_than_can_be_counted_are_compared() -> None:
    """Infinitely many of infinitely many are not a number, and no order of joins is the best of those."""
    plan = _scan(10)
    for _ in range(12):
        plan = Join(plan, plan, "inner")
    assert estimated_rows(plan) < math.inf
    assert joined_rows(estimated_rows(plan), estimated_rows(plan), []) == estimated_rows(plan)
