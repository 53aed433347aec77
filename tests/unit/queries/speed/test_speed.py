"""The benchmark of queries against DuckDB: its suites, its comparison, and a small run of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import CatalogError
from bamquery.queries.speed import command
from bamquery.queries.speed.measure import Timing, difference, geometric_mean
from bamquery.queries.speed.report import complaints, summary
from bamquery.queries.speed.suites import SUITES, SpeedQuery, chosen_queries, suite_queries


def test_suites() -> None:
    assert {suite: len(suite_queries(suite)) for suite in SUITES} == {"tpch": 22, "taxi": 5, "analyst": 20}
    assert [query.name[:2] for query in suite_queries("tpch")] == [f"{n:02}" for n in range(1, 23)]
    assert all(query.sql.startswith("-- ") for query in suite_queries("tpch"))


def test_chosen_queries() -> None:
    assert [q.name for q in chosen_queries(SUITES, ("tpch/06", "q1"))] == ["06_revenue_change", "q1"]
    with pytest.raises(CatalogError, match='no query "tpch/23"'):
        chosen_queries(SUITES, ("tpch/23",))
    with pytest.raises(CatalogError, match="tpch"):
        chosen_queries(("tpcs",), ())


def test_difference() -> None:
    table = pa.table({"a": [1, None], "b": [0.1 + 0.2, float("nan")], "c": [Decimal("1.50"), Decimal(2)]})
    other = pa.table({"A": [1, None], "b": [0.3, float("nan")], "c": [Decimal("1.5"), Decimal("2.0")]})
    assert difference(table, other) == ""
    assert difference(table.slice(1), other) == "1 rows, not 2"
    assert difference(table.select(["a"]), other.select(["b"])) == "columns ['a'], not ['b']"
    assert difference(pa.table({"a": [1, 2]}), other.select(["A"])) == "row 2, A: 2, not None"


def test_summary() -> None:
    one, two, refused = (SpeedQuery("tpch", name, "") for name in ("01", "02", "03"))
    timings = [
        Timing(one, (2.0, 1.0), (1.0, 1.0), 1),
        Timing(two, (4.0,), (1.0,), 1),
        Timing(refused, (), (), 1, "no such thing", refused=True),
    ]
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert summary(timings) == ["tpch: geometric mean 2.00, worst 4.00 (tpch/02)"]
    assert complaints(timings) == ["tpch/03: no such thing"]


def test_a_run(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    options = ["--folder", str(tmp_path), "--rows", "20k", "--repeat", "1", "--threads", "2"]
    options += ["--device", "cpu"]
    queries = ["--suites", "taxi,analyst", "--queries", "q5,01_trips,13_passengers"]
    assert command.main([*options, *queries, "--json", str(path)]) == 0
    measured = json.loads(path.read_text())
    assert [query["query"] for query in measured["queries"]] == ["q5", "01_trips_by_hour", "13_passengers"]
    assert [measured[how] for how in ("device", "threads", "repeat", "encoding")] == ["cpu", 2, 1, "auto"]
    assert all(query["factor"] > 0 and not query["problem"] for query in measured["queries"])
