"""The runner over a small database, every baseline, and answers that are wrong on purpose."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from bamquery.errors import BamQueryError, CatalogError, StorageError
from bamquery.queries import report, runner
from bamquery.queries.baselines import BASELINES
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import Q5_COLUMNS, Recipe
from bamquery.queries.questions import AMOUNTS
from bamquery.queries.runner import Plan, agree, run
from bamquery.queries.sample import trip_files
from bamquery.queries.systems import System, baseline
from bamquery.queries.trips.export import export, export_path
from bamquery.queries.trips.loader import load
from bamquery.storage.database.database import Database

pytest.importorskip("duckdb")

ROWS = 50_000
CPU = tuple(name for name, found in BASELINES.items() if not found.gpu)


@pytest.fixture(scope="module")
def taxi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the sample as `trips`, and `generated` rows without nulls."""
    path = tmp_path_factory.mktemp("runner") / "taxi.bq"
    with Database.open(path) as database:
        load(database, trip_files())
        recipe = Recipe(ROWS, order="random", match_share=0.002, nulls=False)
        generate(database, "generated", recipe, threads=2)
    return path


@pytest.mark.parametrize("table", ["trips", "generated"])
@pytest.mark.parametrize("zone_maps", [True, False])
def test_all_systems_agree(taxi: Path, table: str, zone_maps: bool, device_name: str) -> None:
    settings = {"zone_maps": zone_maps, "device": device_name}
    result = run(Plan(taxi, table, against=CPU, repeat=1, settings=settings))
    assert result.device == device_name
    assert result.right
    assert result.reference == "DuckDB"
    assert [asked.question.name for asked in result.questions] == ["q1", "q2", "q3", "q4", "q5"]
    for asked in result.questions:
        assert [timing.system for timing in asked.timings] == [
            "BamQuery",
            *(BASELINES[name].label for name in CPU),
        ]
        assert asked.expected is not None
        assert asked.io is not None
        assert asked.io.needed > 0
        assert asked.io.read > 0
        assert asked.io.amplification == asked.io.read / asked.io.needed
    values = [asked.expected for asked in result.questions]
    assert values == sorted(values, reverse=True)
    assert (
        result.questions[0].matching_rows == {"trips": 1124, "generated": 99}[table] or table == "generated"
    )


def test_bytes_needed_of_columns_without_nulls(taxi: Path) -> None:
    """The filter's column for every row and each amount for each long trip: DESIGN's definition."""
    result = run(Plan(taxi, "generated", repeat=1))
    for number, asked in enumerate(result.questions, 1):
        assert asked.io is not None
        assert asked.io.needed == 8 * ROWS + 8 * number * asked.matching_rows


def test_amplification_of_unclustered_data(tmp_path: Path) -> None:
    """0.03 % long trips in random order, no nulls, blocks of 512 bytes: at most 1.12 without zone maps.

    A block a hit and amount more than is needed, and nothing else; zone maps then save three quarters of the
    filter's column. A GPU reads whole columns of so few rows.
    """
    with Database.open(tmp_path / "taxi.bq") as database:
        recipe = Recipe(1 << 20, order="random", match_share=0.0003, nulls=False)
        generate(database, "trips", recipe, threads=2)
    settings = {"reader": "mapped", "device": "cpu"}
    plain = run(Plan(tmp_path / "taxi.bq", repeat=1, settings=settings | {"zone_maps": False}))
    pruned = run(Plan(tmp_path / "taxi.bq", repeat=1, settings=settings | {"zone_maps": True}))
    assert plain.right
    assert pruned.right
    for without, with_maps in zip(plain.questions, pruned.questions, strict=True):
        assert without.io is not None
        assert with_maps.io is not None
        assert without.io.amplification is not None
        assert 1.0 <= without.io.amplification <= 1.12
        assert with_maps.io.read < without.io.read / 2


def test_cold_answers_are_the_same_and_say_how_caches_were_dropped(taxi: Path) -> None:
    result = run(Plan(taxi, "generated", ("q2",), CPU, repeat=2, cold=True))
    assert result.right
    assert result.dropped.startswith("posix_fadvise(DONTNEED) on the files")
    assert all(len(timing.seconds) == 2 for timing in result.questions[0].timings)


def test_a_warm_system_is_opened_once(taxi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening may mean to read whole columns."""
    from bamquery.queries.baselines import pyarrow

    opened = []
    monkeypatch.setattr(pyarrow.System, "open", _noting(pyarrow.System.open, opened))
    run(Plan(taxi, "generated", against=("pyarrow",), repeat=1))
    assert opened == ["pyarrow.dataset"]


def _noting(method: Callable[[System], None], seen: list[str]) -> Callable[[System], None]:
    def open_and_note(system: System) -> None:
        seen.append(system.name)
        method(system)

    return open_and_note


def test_a_device_that_is_not_there_is_an_error(taxi: Path) -> None:
    with pytest.raises(BamQueryError, match="cuda:99"):
        run(Plan(taxi, "generated", ("q1",), repeat=1, settings={"device": "cuda:99"}))


def test_a_wrong_answer_is_found(taxi: Path, tmp_path: Path) -> None:
    """The copy given as the same rows is of others: every answer and the count differ."""
    other = tmp_path / "other.parquet"
    amounts = {name: [10.0 * place, 1.0] for place, name in enumerate(AMOUNTS, 1)}
    pq.write_table(pa.table({"trip_distance": [40.0, 50.0], **amounts}), other)
    result = run(Plan(taxi, "generated", ("q1", "q5"), parquet=other, repeat=1))
    assert not result.right
    assert all(asked.wrong == ("BamQuery",) for asked in result.questions)
    assert result.wrong_count is not None
    lines = report.complaints(result)
    assert len(lines) == 3
    assert lines[0].startswith("Q1: BamQuery says 3.")
    assert lines[2].endswith("trips of at least 30 miles, DuckDB 2")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.table_of(result))
    assert "✗" in console.export_text()


def test_one_wrong_baseline_is_named(taxi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.queries.baselines import polars
    from bamquery.queries.systems import Answer

    monkeypatch.setattr(polars.System, "ask", lambda self, question: Answer(3.0))
    result = run(Plan(taxi, "generated", ("q3",), ("duckdb", "polars"), repeat=1))
    assert result.questions[0].wrong == ("Polars",)
    assert not result.right


def test_without_duckdb_pyarrow_is_the_reference(taxi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None)
    result = run(Plan(taxi, "trips", repeat=1))
    assert result.reference == "pyarrow.dataset"
    assert result.right


def test_no_long_trips_no_answer(tmp_path: Path) -> None:
    with Database.open(tmp_path / "taxi.bq") as database:
        generate(database, "trips", Recipe(1000, match_share=0.0, nulls=False), threads=1)
    result = run(Plan(tmp_path / "taxi.bq", against=CPU, repeat=1))
    assert result.right
    assert [asked.expected for asked in result.questions] == [None] * 5


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        (None, None, True),
        (None, 0.0, False),
        (1.0, None, False),
        (3.0, 3.0 + 1e-12, True),
        (3.0, 3.0 + 1e-6, False),
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (1.0, math.nan, False),
    ],
)
def test_agreement(value: float | None, expected: float | None, same: bool) -> None:
    assert agree(value, expected) is same


# --- mistakes ---


def test_mistakes_are_explained(taxi: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no database"):
        run(Plan(tmp_path / "none.bq"))
    with pytest.raises(CatalogError, match=r'table "generate" does not exist.*Did you mean "generated"'):
        run(Plan(taxi, "generate"))
    with pytest.raises(BamQueryError, match='nothing called "sparc" to compare with, only duckdb'):
        run(Plan(taxi, "generated", against=("sparc",)))
    with pytest.raises(StorageError, match=r"none\.parquet: cannot be read as Parquet"):
        run(Plan(taxi, "generated", parquet=tmp_path / "none.parquet"))
    pq.write_table(pa.table({"trip_distance": [1.0]}), tmp_path / "less.parquet")
    with pytest.raises(StorageError, match=r"less\.parquet: is not a copy.*no column total_amount"):
        run(Plan(taxi, "generated", parquet=tmp_path / "less.parquet"))
    with Database.open(tmp_path / "other.bq") as database:
        generate(database, "trips", Recipe(10, ("trip_distance", "extra")), threads=1)
    with pytest.raises(BamQueryError, match="it has no column total_amount, improvement_surcharge"):
        run(Plan(tmp_path / "other.bq"))


def test_a_library_that_is_missing_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.queries import systems

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(systems.importlib, "import_module", missing)
    with pytest.raises(BamQueryError, match=r'Polars needs polars.*pip install "bamquery\[bench\]"'):
        baseline("polars", Path("x.parquet"))


# --- the Parquet copy ---


def test_the_copy_holds_the_rows_and_is_made_once(taxi: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.parquet"
    with Database.open(taxi) as database, database.table("generated").snapshot() as snapshot:
        assert export(snapshot, Q5_COLUMNS, path)
        assert not export(snapshot, Q5_COLUMNS, path)
        assert export(snapshot, Q5_COLUMNS[:2], path)
        assert export(snapshot, Q5_COLUMNS, path)
        stored = pa.concat_tables(
            pa.ipc.open_file(str(fragment.path)).read_all() for fragment in snapshot.fragments
        )
    copy = pq.read_table(path)
    assert copy.num_rows == ROWS
    for name in Q5_COLUMNS:
        assert copy[name].combine_chunks().equals(stored[name].combine_chunks()), name
    assert list(tmp_path.iterdir()) == [path]


def test_a_copy_of_an_earlier_version_is_not_used(tmp_path: Path) -> None:
    database = tmp_path / "taxi.bq"
    for seed in (1, 2):
        with Database.open(database) as opened:
            recipe = Recipe(2000, match_share=0.01, nulls=False, seed=seed)
            generate(opened, "trips", recipe, threads=1, replace=True)
        assert run(Plan(database, names=("q1",), repeat=1)).right
    assert export_path(database, "trips") == tmp_path / "taxi.bq.trips.parquet"


def test_a_copy_that_cannot_be_written_is_an_error(taxi: Path, tmp_path: Path) -> None:
    with (
        Database.open(taxi) as database,
        database.table("generated").snapshot() as snapshot,
        pytest.raises(StorageError, match="cannot write the Parquet copy"),
    ):
        export(snapshot, Q5_COLUMNS, tmp_path / "no" / "copy.parquet")


# --- reports ---


def test_tables_and_json(taxi: Path) -> None:
    against = ("duckdb", "pyarrow")
    result = run(Plan(taxi, "generated", against=against, repeat=3, settings={"device": "cpu"}))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(report.table_of(result))
    text = console.export_text()
    assert f"generated: {ROWS:,} rows" in text
    assert "warm caches" in text
    assert "BamQuery on cpu" in text
    assert text.count("✓") == 5
    assert "pyarrow.dataset" in text
    found = json.loads(json.dumps(report.json_of(result, "bamquery taxi run x")))
    assert found["command"] == "bamquery taxi run x"
    assert found["right"] is True
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["libraries"]["pyarrow"] == pa.__version__
    assert found["device"] == {"ran_on": "cpu", "notes": []}
    assert set(found["opening_seconds"]) == {"BamQuery", "DuckDB", "pyarrow.dataset"}
    assert found["memory"]["anonymous_bytes"] > 0
    (first, *_) = found["queries"]
    ours, duckdb, arrow = first["systems"]
    assert ours["bytes_moved"] == first["bytes_read"]
    assert duckdb["amplification"] is None
    assert arrow["amplification"] == arrow["bytes_moved"] / first["bytes_needed"]
    assert all(system["first"] > 0 for system in first["systems"])
    assert first["profile"]["io"]["bytes_read"] == first["bytes_read"]
    assert [len(system["seconds"]) for system in first["systems"]] == [3, 3, 3]
    assert first["amplification"] == first["bytes_read"] / first["bytes_needed"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-6, "2 µs"), (0.00123, "1.23 ms"), (0.0456, "45.6 ms"), (1.5, "1.5 s"), (4321.0, "4321 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert report.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (80_119_880, "80.1 MB"), (2e12, "2 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert report.size(int(count)) == text
