"""Small runs on all systems that need no GPU: answers are compared, times, floors and pictures are there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bamquery.errors import BamQueryError
from bamquery.queries.generator.recipe import Q5_COLUMNS
from bamquery.queries.speed import command, data
from bamquery.queries.speed.data import Wanted, tpch_data, trips_data
from bamquery.queries.speed.suites import TPCH_TABLES
from bamquery.queries.speed.systems.pdsh import Pdsh
from tests.unit.queries.speed.small_tpch import write_table

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run the command over few rows, and read what it measured."""
    pytest.importorskip("duckdb")
    monkeypatch.setattr(data, "generate_table", write_table)
    monkeypatch.setattr(Pdsh, "find", classmethod(lambda cls: None))
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")

    def run(*options: str, status: int = 0) -> dict[str, Any]:
        path = tmp_path / "speed.json"
        common = ["--folder", str(tmp_path), "--repeat", "1", "--threads", "2", "--device", "cpu"]
        assert command.main([*common, *options, "--json", str(path)]) == status
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return run


def test_trips(ask: Ask) -> None:
    measured = ask("--rows", "20k", "--suites", "taxi,analyst", "--queries", "q5,01_trips,13_passengers")
    assert [query["query"] for query in measured["queries"]] == ["q5", "01_trips_by_hour", "13_passengers"]
    assert [measured[how] for how in ("device", "threads", "repeat", "encoding")] == ["cpu", 2, 1, "auto"]
    for query in measured["queries"]:
        assert [one["system"] for one in query["systems"]] == ["BamQuery", "DuckDB"]
        assert all(one["fastest"] > 0 and not one["problem"] for one in query["systems"])
        assert query["systems"][0]["floor"]["read"] > 0
        assert query["systems"][1]["floor"] is None


def test_tpch_with_constants_that_change(ask: Ask, tmp_path: Path) -> None:
    measured = ask("--suites", "tpch", "--constants", "change", "--repeat", "3", "--seed", "4")
    assert measured["complaints"] == []
    assert [len(query["texts"]) for query in measured["queries"]] == [3] * 22
    assert all(len(one["seconds"]) == 3 for query in measured["queries"] for one in query["systems"])
    assert not list(tmp_path.glob("*.parquet"))


def test_polars_by_our_sql(ask: Ask, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    picture = tmp_path / "speed.svg"
    options = ["--against", "duckdb,polars", "--queries", "tpch/06,tpch/16", "--picture", str(picture)]
    measured = ask("--suites", "tpch", *options)
    names = ["BamQuery", "DuckDB", "polars, parquet", "polars, frames"]
    assert [one["system"] for one in measured["systems"]] == names
    assert [one["queries"] for one in measured["systems"]] == ["our SQL"] * 4
    assert len(measured["summary"]) == 3
    assert picture.read_text().startswith("<?xml")
    assert {file.stem for file in (tmp_path / "tpch-1.parquet").iterdir()} == set(TPCH_TABLES)


def test_a_picture_that_cannot_be_drawn_is_known_first(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BamQueryError, match="drawing needs matplotlib"):
        ask("--suites", "tpch", "--picture", "speed.svg")


def test_polars_alone_is_whom_answers_are_compared_with(ask: Ask) -> None:
    pytest.importorskip("polars")
    options = ["--against", "polars", "--polars-data", "frames", "--queries", "tpch/04,tpch/12"]
    measured = ask("--suites", "tpch", *options)
    assert [one["system"] for one in measured["systems"]] == ["BamQuery", "polars, frames"]
    assert measured["complaints"] == []


def test_trips_on_files_of_all_peers(ask: Ask, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("chdb")
    options = ["--against", "duckdb,chdb,polars", "--polars-data", "parquet,ipc,frames"]
    measured = ask("--rows", "3k", "--suites", "taxi", *options)
    names = ["DuckDB", "ClickHouse", "polars, parquet", "polars, ipc", "polars, frames"]
    assert [one["system"] for one in measured["systems"]] == ["BamQuery", *names]
    assert all(one["version"] for one in measured["systems"])
    assert measured["complaints"] == measured["complaints_of_peers"] == []
    for query in measured["queries"]:
        assert all(one["fastest"] > 0 for one in query["systems"])
    made = {path.name for path in tmp_path.iterdir() if "trips" in path.name}
    assert made == {
        "trips-3000-q5-auto.bq",
        "trips-3000-q5-auto.duckdb",
        "trips-3000-q5.clickhouse",
        "trips-3000-q5.parquet",
        "trips-3000-q5.ipc",
    }
    columns = polars.scan_ipc(tmp_path / "trips-3000-q5.ipc" / "trips.arrow").collect_schema().names()
    assert set(columns) == set(Q5_COLUMNS)


def test_a_wrong_answer_of_a_peer_is_told_of(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    chdb_session = pytest.importorskip("chdb.session")
    query = chdb_session.Session.query

    def other(self: Any, text: str, *rest: Any) -> Any:
        if "avg(" in text:
            text = text.replace(">= 30", ">= 20").replace("tolls_amount", "nothing")
        return query(self, text, *rest)

    monkeypatch.setattr(chdb_session.Session, "query", other)
    options = ["--against", "duckdb,chdb", "--queries", "q1,q5"]
    measured = ask("--rows", "30k", "--suites", "taxi", *options)
    wrong, failed = measured["complaints_of_peers"]
    assert wrong.startswith("taxi/q1: ClickHouse: row 1, dollars_per_mile: ")
    assert failed.startswith("taxi/q5: ClickHouse: ClickHouse: Code: ")


def test_tables_are_made_once_and_only_such_as_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(file: Path, table: str, scale: float) -> None:
        made.append(table)
        write_table(file, table, scale)

    monkeypatch.setattr(data, "generate_table", make)
    told: list[str] = []
    found = tpch_data(tmp_path, 0.5, "plain", Wanted(duckdb=False), told.append)
    assert (made, found.ours.exists(), found.theirs.exists()) == (list(TPCH_TABLES), True, False)
    assert not found.parquet.exists()
    made.clear()
    tpch_data(tmp_path, 0.5, "plain", Wanted(duckdb=False), told.append)
    assert made == []
    tpch_data(tmp_path, 0.5, "plain", Wanted(duckdb=False, parquet=True), told.append)
    assert made == list(TPCH_TABLES)
    pytest.importorskip("duckdb")
    made.clear()
    tpch_data(tmp_path, 0.5, "plain", Wanted(), told.append)
    assert (made, found.theirs.exists()) == ([], True)
    assert len(list(found.parquet.iterdir())) == len(TPCH_TABLES)  # they were there before


def test_what_was_stopped_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(file: Path, table: str, scale: float) -> None:
        if table == "part":
            raise KeyboardInterrupt
        write_table(file, table, scale)

    monkeypatch.setattr(data, "generate_table", stop)
    with pytest.raises(KeyboardInterrupt):
        tpch_data(tmp_path, 1, "auto", Wanted(duckdb=False), lambda _: None)
    assert not (tmp_path / "tpch-1-auto.bq").exists()
    monkeypatch.setattr(data, "generate_table", write_table)
    assert tpch_data(tmp_path, 1, "auto", Wanted(duckdb=False), lambda _: None).ours.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["tpch-1-auto.bq"]


def test_trips_are_made_once(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    told: list[str] = []
    found = trips_data(tmp_path, 2000, "auto", Wanted(), told.append)
    assert told
    told.clear()
    trips_data(tmp_path, 2000, "auto", Wanted(), told.append)
    assert told == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [found.ours.name, found.theirs.name]


def test_the_generator_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_GENERATOR", "no-such-generator")
    with pytest.raises(BamQueryError, match=r'no-such-generator, which is not installed: pip install "bamq'):
        tpch_data(tmp_path, 1, "auto", Wanted(duckdb=False), lambda _: None)
