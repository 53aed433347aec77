"""Selectivity: shares that are met, answers that are checked, strategies that ran, pictures."""

import json
from pathlib import Path

import pytest

from bamquery.errors import BamQueryError
from bamquery.queries.command_line import main
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import ORDERS, Recipe
from bamquery.queries.questions import AMOUNTS, COLUMNS
from bamquery.queries.selectivity import measure as measuring
from bamquery.queries.selectivity import plot, report
from bamquery.queries.selectivity.measure import Plan, measure
from bamquery.queries.selectivity.reference import DuckDb, PyArrow
from bamquery.queries.selectivity.thresholds import EVERY_TRIP, thresholds
from bamquery.queries.trips.export import export
from bamquery.storage.database.database import Database

pytest.importorskip("duckdb")

ROWS = 60_000


@pytest.fixture(scope="module")
def taxi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in three orders."""
    path = tmp_path_factory.mktemp("selectivity") / "taxi.bq"
    with Database.open(path) as database:
        for order in ORDERS:
            generate(database, order, Recipe(ROWS, order=order, match_share=0.002, nulls=False), threads=2)
    return path


@pytest.mark.parametrize("order", ORDERS)
def test_shares_are_met(taxi: Path, order: str) -> None:
    shares = [1e-3, 0.01, 0.1, 0.5, 1.0]
    with Database.open(taxi) as database, database.table(order).snapshot() as snapshot:
        found = thresholds(snapshot, shares)
    assert found == sorted(found, reverse=True)
    assert found[-1] == EVERY_TRIP
    result = measure(Plan(taxi, (order,), shares, ("auto",), repeat=1))
    matching = [point.matching for point in result.curves[0].points]
    assert matching == pytest.approx([share * ROWS for share in shares], rel=0.05)


def test_every_strategy_runs_and_is_checked(taxi: Path) -> None:
    plan = Plan(taxi, ("random", "clustered"), (0.001, 1.0), repeat=2, settings={"device": "cpu"})
    result = measure(plan)
    assert result.right
    assert result.device == "cpu"
    for curve in result.curves:
        for point in curve.points:
            assert [timing.strategy for timing in point.timings] == list(measuring.STRATEGIES)
            for timing in point.timings[:3]:
                # Where every row matches there is nothing to pick.
                assert timing.ran == (timing.strategy if point.wanted < 1 else "stream")
                assert len(timing.seconds) == 2
            assert point.chosen_strategy in measuring.STRATEGIES[:3]
    streamed, _, blocks, _ = result.curves[0].points[0].timings
    assert blocks.bytes_read < streamed.bytes_read
    assert blocks.bytes_needed == streamed.bytes_needed


def test_the_same_trips_are_found_in_several_ways(taxi: Path) -> None:
    conditions = measuring.CONDITIONS
    plan = Plan(taxi, ("time",), (0.01,), ("blocks", "auto"), conditions, repeat=1)
    result = measure(plan)
    assert result.right
    assert [curve.condition for curve in result.curves] == list(conditions)
    assert len({curve.points[0].matching for curve in result.curves}) == 1
    for curve in result.curves:
        auto, regret = curve.points[0].timings[1], curve.points[0].regret
        assert regret == auto.median / curve.points[0].timings[0].median


def test_a_wrong_answer_is_named(taxi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDb, "mean", lambda *_: (3.0, 60))
    result = measure(Plan(taxi, ("time",), (0.001,), ("stream",), repeat=1))
    assert not result.right
    (line,) = report.complaints(result)
    assert line.startswith("time by column, at least ")
    assert line.endswith("miles: stream and DuckDB differ")


def test_both_references_agree(taxi: Path) -> None:
    with Database.open(taxi) as database, database.table("time").snapshot() as snapshot:
        export(snapshot, COLUMNS, taxi.with_name("copy.parquet"))
    found = [of(taxi.with_name("copy.parquet")) for of in (DuckDb, PyArrow)]
    for miles in (30.0, 5.0, EVERY_TRIP, 1e9):
        (mean, rows), (other, as_many) = (reference.mean(AMOUNTS, miles) for reference in found)
        assert rows == as_many
        assert other == (None if mean is None else pytest.approx(mean, rel=1e-12))


def test_the_command_writes_measurements_and_a_picture(
    taxi: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    written, picture = tmp_path / "run.json", tmp_path / "run.svg"
    command = ["selectivity", str(taxi), "--tables", "random,time", "--shares", "0.001,0.1", "--repeat", "1"]
    assert main([*command, "--device", "cpu", "--json", str(written), "--plot", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "BamQuery on cpu" in output
    assert "random: 60,000 rows" in output
    found = json.loads(written.read_text())
    assert [curve["table"] for curve in found["curves"]] == ["random", "time"]
    assert found["curves"][0]["points"][0]["strategies"][3]["strategy"] == "auto"
    assert found["right"] is True
    assert found["curves"][0]["points"][0]["auto_over_best"] > 0
    assert picture.stat().st_size > 5000
    plot.draw(found, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == picture.read_bytes()


def test_mistakes_are_explained(taxi: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BamQueryError, match=r'table "tim" does not exist.*Did you mean "time"'):
        measure(Plan(taxi, ("tim",)))
    for shares in ("2", "a", ","):
        with pytest.raises(SystemExit):
            main(["selectivity", str(taxi), "--shares", shares])
    assert "shares from 0 to 1" in capsys.readouterr().err
