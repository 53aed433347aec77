"""What is measured by `bamquery bench memory`, in small."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import bamquery
from bamquery.queries.memory.cases import CASES, LONG
from bamquery.queries.memory.command import main
from bamquery.queries.memory.tables import FILES, make_table, sizes, text_batches

ROWS = sizes(1 << 20, 0.01)


def test_cases_have_names_of_their_own() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


def test_every_case_can_be_bound(tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "db") as connection:
        for name in ("texts", "numbers", "few", "many", "pairs"):
            make_table(connection, name, tmp_path, ROWS)
        for file in FILES:
            for name in ("texts", "numbers"):
                make_table(connection, f"{name}.{file}", tmp_path, ROWS)
        for case in CASES:
            if case.way in ("stream", "rows"):
                connection.sql(case.text.format(folder=tmp_path, long=LONG)).explain()


def test_batches_are_what_the_table_has() -> None:
    table = text_batches(5000).read_all()
    assert table.num_rows == 5000
    assert len(table["w"][4999].as_py()) == 4096


@pytest.mark.slow
def test_cases_are_run_in_processes_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "memory.json"
    names = ["distinct numbers", "csv texts", "fetchmany", "cluster by", "registered stream"]
    options = ["--memory-limit", "64MB", "--scale", "0.05", "--folder", str(tmp_path), "--json", str(report)]
    assert main([*options, "--jobs", "2", "--cases", *names]) in (0, 1)
    found: dict[str, Any] = json.loads(report.read_text())
    assert sorted(one["case"] for one in found["results"]) == sorted(names)
    assert all(one["outcome"] == "done" and one["growth"] > 0 for one in found["results"])
    assert "| csv texts |" in capsys.readouterr().out


def test_a_case_that_takes_too_long_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--memory-limit", "64MB", "--scale", "1", "--folder", str(tmp_path), "--seconds", "0.01"]
    main([*options, "--cases", "string agg so far"])
    assert "stopped after 0 s" in capsys.readouterr().out


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "memory.json"
    options = ["--memory-limit", "64MB", "--scale", "0.01", "--seconds", "0.3", "--folder", str(tmp_path)]
    options += ["--jobs", "2", "--json", str(report), "--cases"]
    main([*options, "series"])
    kept = json.loads(report.read_text())["results"]
    main([*options, "with twice", "series", "--resume"])
    results = json.loads(report.read_text())["results"]
    assert [one["case"] for one in results] == ["with twice", "series"]
    assert results[1:] == kept
    with pytest.raises(SystemExit, match="other sizes or settings"):
        main([*options, "series", "--resume", "--scale", "0.02"])
    capsys.readouterr()
