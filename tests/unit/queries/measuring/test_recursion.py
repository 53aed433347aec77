"""`bamquery bench recursion`: queries that run in both systems, and a table of what their steps take."""

import json
from pathlib import Path

import pytest

from bamquery.queries.measuring import recursion
from bamquery.queries.measuring.recursion import WALKS, Measured, main, measure, table


def test_every_query_runs() -> None:
    found = measure(WALKS, 3, 1)
    assert [one.name for one in found] == [walk.name for walk in WALKS]
    assert all(one.duckdb is not None for one in found)


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
