"""`bamquery bench recursion`: queries that run in both systems, and a table of what their steps take."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bamquery
from bamquery.queries.measuring import recursion
from bamquery.queries.measuring.recursion import WALKS, Measured, main, measure, table


def test_every_query_runs() -> None:
    found = measure(WALKS, 3, 1)
    assert [one.name for one in found] == [walk.name for walk in WALKS]
    assert all(one.duckdb is not None for one in found)


def test_walks_have_the_steps_that_their_times_are_divided_by() -> None:
    walk = WALKS[0]
    assert walk.steps(100) == 100
    assert replace(walk, part=30).steps(100) == 3
    assert replace(walk, part=300).steps(100) == 1
    graph = next(walk for walk in WALKS if walk.name == "1 M edges, all nodes")
    with bamquery.connect(device="cpu") as con:
        con.sql(graph.setup)
        rows = con.sql(graph.statement(1))
        assert rows.fetchall() == [(100_000,)]
        (part,) = [part for part in rows.profile.root.walk() if part.name == "Recursion"]
        assert part.details["steps"] == part.details["by_column"] == graph.steps(100)


def test_the_table_has_microseconds() -> None:
    lines = table([Measured("dates", 3e-6, 2e-6), Measured("dates", 3e-6, None)]).splitlines()
    assert lines[2:] == ["| dates | 3.0 | 2.0 | 1.5 |", "| dates | 3.0 |  |  |"]


def test_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recursion, "WALKS", WALKS[:1])
    assert main(["--steps", "5", "--repeat", "1", "--json", str(tmp_path / "x.json")]) == 0
    record = json.loads((tmp_path / "x.json").read_text())
    assert [result["query"] for result in record["results"]] == ["numbers"]
    assert "numbers" in capsys.readouterr().out
