import json
from pathlib import Path

import pytest

from bamquery.errors import BamQueryError, CatalogError, StorageError
from bamquery.queries.command_line import main
from bamquery.queries.generator.recipe import COLUMNS
from bamquery.queries.sample import FOLDER
from bamquery.storage.database.database import Database

pytest.importorskip("duckdb")


def schema_of(database: Path, table: str) -> list[str]:
    with Database.open(database) as opened, opened.table(table).snapshot() as snapshot:
        return list(snapshot.schema.names)


def test_load_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "yellow.csv"
    broken.write_text("VendorID,trip_distance,medallion\n1,2.5,x\n1\n1,far,x\n1\n1\n")
    database = tmp_path / "taxi.bq"
    rejects = tmp_path / "rejects.csv"
    files = [str(broken), str(FOLDER / "*2015*.parquet")]
    assert main(["load", str(database), *files, "--rejects", str(rejects)]) == 0
    output = capsys.readouterr().out
    assert "yellow.csv  yellow, 1 rows; no place for column medallion; 4 rows could not be read" in output
    assert "line 4: trip_distance: 'far' is not a number" in output
    assert "… are in the file of rejects" in output
    assert "2,000 rows into trips, 4 could not be read" in output
    assert len(rejects.read_text().splitlines()) == 5
    with Database.open(database) as opened:
        assert opened.table_names() == ["trips", "zones"]


def test_generate_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, measurements = str(tmp_path / "taxi.bq"), tmp_path / "run.json"
    arguments = ["--rows", "20k", "--order", "random", "--match-share", "0.01", "--no-nulls", "--seed", "7"]
    assert main(["generate", database, *arguments]) == 0
    assert "20,000 rows into generated" in capsys.readouterr().out
    run = ["run", database, "--table", "generated", "--repeat", "1", "--json", str(measurements)]
    assert main([*run, "--queries", "q1,q5", "--zone-maps", "off", "--block-size", "4096"]) == 0
    assert "Q5" in capsys.readouterr().out
    found = json.loads(measurements.read_text())
    assert found["command"].startswith(f"bamquery taxi run {database} --table generated")
    assert found["settings"]["zone_maps"] is False
    assert found["settings"]["block_size"] == 4096
    assert [query["query"] for query in found["queries"]] == ["q1", "q5"]


def test_a_wrong_answer_is_exit_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("one", "1"), ("two", "2")):
        database = str(tmp_path / name)
        generate = [
            "--rows",
            "5000",
            "--match-share",
            "0.01",
            "--no-nulls",
            "--seed",
            seed,
            "--table",
            "trips",
        ]
        assert main(["generate", database, *generate]) == 0
        assert main(["run", database, "--repeat", "1"]) == 0
    copy = str(tmp_path / "two.trips.parquet")
    assert main(["run", str(tmp_path / "one"), "--repeat", "1", "--parquet", copy]) == 1
    assert "Q1: BamQuery says" in capsys.readouterr().out


def test_all_columns_of_one_year(tmp_path: Path) -> None:
    database = tmp_path / "taxi.bq"
    assert main(["generate", str(database), "--rows", "1e3", "--columns", "all", "--years", "2020"]) == 0
    assert schema_of(database, "generated") == list(COLUMNS)
    chosen = ["--columns", "tip_amount, Trip_Distance", "--table", "two", "--threads", "1"]
    assert main(["generate", str(database), "--rows", "10", *chosen]) == 0
    assert schema_of(database, "two") == ["tip_amount", "trip_distance"]
    with pytest.raises(CatalogError, match="exists already"):
        main(["generate", str(database), "--rows", "10", *chosen])
    assert main(["generate", str(database), "--rows", "10", *chosen, "--replace"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "DB", "--rows", "many"], "'many' is not a number such as 20000000, 20e6 or 20M"),
        (["generate", "DB", "--rows", "1.5"], "'1.5' is not a whole number from 0 to"),
        (["generate", "DB", "--rows", "-1"], "'-1' is not a whole number from 0 to"),
        (["generate", "DB", "--rows", "nan"], "'nan' is not a whole number from 0 to"),
        (["generate", "DB", "--rows", "1", "--columns", "tip_amout"], 'Did you mean "tip_amount"?'),
        (["generate", "DB", "--rows", "1", "--columns", "extra,extra"], "different column names"),
        (["generate", "DB", "--rows", "1", "--years", "2030"], "not within 2009 to 2023"),
        (["generate", "DB", "--rows", "1", "--years", "x"], "not a year or a range"),
        (["generate", "DB", "--rows", "1", "--match-share", "30"], "not a share from 0 to 1"),
        (["run", "DB", "--repeat", "0"], "'0' is not at least 1"),
        (["run", "DB", "--repeat", "x"], "'x' is not a whole number"),
        ([], "required: COMMAND"),
    ],
)
def test_wrong_arguments_are_explained(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_unknown_queries_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(BamQueryError, match='there is no query "q9"'):
        main(["run", str(tmp_path / "none"), "--queries", "q1,q9"])


def test_demo_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "demo"
    assert main(["demo", str(folder), "--rows", "30k"]) == 0
    first = capsys.readouterr().out
    assert "212,197 real trips of 9 files, 2009 to 2025" in first
    assert "30,000 generated trips in" in first
    assert "All answers are those of DuckDB" in first
    assert str(folder / "q1-q5.png") in first.replace("\n", "")
    before = (folder / "q1-q5.png").stat().st_mtime_ns
    assert main(["demo", str(folder), "--rows", "30k"]) == 0
    second = capsys.readouterr().out
    assert "212,197 real trips are there already" in second
    assert "30,000 generated trips are there already" in second
    assert (folder / "q1-q5.png").stat().st_mtime_ns > before
    assert {path.name for path in folder.iterdir()} == {
        "taxi.bq",
        "taxi.bq.generated.parquet",
        "taxi.bq.trips.parquet",
        "q1-q5.png",
    }


def test_a_demo_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file: cannot make the folder"):
        main(["demo", str(tmp_path / "file")])


def test_an_empty_table_has_no_answers_but_right_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "taxi.bq")
    assert main(["generate", database, "--rows", "0", "--table", "trips"]) == 0
    assert main(["run", database, "--against", "duckdb,pyarrow,polars", "--repeat", "1"]) == 0
    assert capsys.readouterr().out.count("none") == 5


def test_the_sample_that_ships(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "taxi.bq"
    assert main(["load", str(database), "--sample"]) == 0
    with Database.open(database) as opened, opened.table("trips").snapshot() as snapshot:
        rows = snapshot.rows
    assert f"{rows:,} rows into trips, 0 could not be read" in capsys.readouterr().out
    assert rows == 212_197


def test_no_files_to_load(tmp_path: Path) -> None:
    with pytest.raises(BamQueryError, match="or pass --sample"):
        main(["load", str(tmp_path / "taxi.bq")])
    assert not (tmp_path / "taxi.bq").exists()
