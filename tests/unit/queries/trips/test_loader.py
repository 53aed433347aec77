import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import CatalogError, IngestError, StorageError
from bamquery.queries.sample import FOLDER, trip_files
from bamquery.queries.trips.loader import FileReport, Rejected, load, open_trips
from bamquery.queries.trips.schema import COLUMNS, TRIPS, Kind, map_names
from bamquery.storage.database.database import Database
from bamquery.storage.tables.open_fragment import open_fragment

HEADER = "VendorID,tpep_pickup_datetime,trip_distance,total_amount,medallion"
GOOD = "2,2015-01-15 19:05:39,1.5,17.05,x"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database.open(tmp_path / "taxi.bq")


def rows_of(database: Database, table: str = "trips") -> pa.Table:
    """All rows, read from the fragments' files."""
    with database.table(table).snapshot() as snapshot:
        parts = [open_fragment(fragment.path).read_all() for fragment in snapshot.fragments]
        return pa.concat_tables(parts) if parts else snapshot.schema.empty_table()


def documented_rows(readme: Path) -> dict[str, int]:
    found = re.findall(r"^\| ([\w.-]+\.parquet) \| ([\d,]+) \|", readme.read_text(), re.MULTILINE)
    return {name: int(rows.replace(",", "")) for name, rows in found}


def same_as_source(path: Path) -> int:
    """Load a file and compare every amount, distance, time and null with a plain pyarrow read."""
    rejected: list[Rejected] = []
    source = open_trips(path, rejected.append)
    trips = pa.Table.from_batches(list(source.batches()), TRIPS).combine_chunks()
    trips.validate(full=True)
    plain = pq.read_table(path).combine_chunks()
    assert rejected == []
    assert source.names.unknown == ()
    assert trips.num_rows == plain.num_rows
    for column in COLUMNS:
        places = source.names.positions.get(column.name)
        if column.kind is Kind.SERVICE:
            continue
        if places is None:
            assert trips[column.name].null_count == trips.num_rows
            continue
        before, after = plain.column(places[0]), trips[column.name]
        assert after.null_count == before.null_count, column.name
        if column.kind in (Kind.AMOUNT, Kind.TIME) and not pa.types.is_null(before.type):
            kind = "u8"
            bits_before = before.fill_null(0).cast(column.type).to_numpy().view(kind)
            bits_after = after.fill_null(0).to_numpy().view(kind)
            assert np.array_equal(bits_before, bits_after), column.name
        elif column.kind is Kind.CODE and not pa.types.is_string(before.type):
            numbers = before.cast(pa.float64())
            assert numbers.equals(after.cast(pa.float64())), column.name
    return trips.num_rows


@pytest.mark.parametrize("path", trip_files(), ids=lambda path: path.stem)
def test_sample_files_keep_every_value(path: Path) -> None:
    assert same_as_source(path) == documented_rows(FOLDER / "README.md")[path.name]


def test_every_shared_file_keeps_every_value(shared_taxi: Path) -> None:
    documented = documented_rows(shared_taxi / "README.md")
    files = [path for path in sorted(shared_taxi.glob("*.parquet")) if not path.name.startswith("heads")]
    assert len(files) == 31
    for path in files:
        assert same_as_source(path) == documented[path.name], path.name


def test_the_whole_sample_in_one_table(database: Database) -> None:
    report = load(database, trip_files())
    table = rows_of(database)
    assert report.rows == table.num_rows == 212_197
    assert report.rejected == 0
    assert {file.service for file in report.files} == {"yellow", "green"}
    miles = table["trip_distance"].to_numpy()
    assert int(np.sum(miles >= 30)) > 1000


def test_many_files_one_commit_and_appends(database: Database, tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"yellow_{number}.csv").write_text(
            f"{HEADER}\n" + f"{number},2015-01-15,1,2,x\n" * number
        )
    report = load(database, [tmp_path / "yellow_*.csv"])
    assert [file.rows for file in report.files] == [1, 2, 10]
    assert rows_of(database)["vendor_id"].to_pylist() == [1] + [2] * 2 + [10] * 10
    load(database, [tmp_path / "yellow_2.csv"])
    assert rows_of(database).num_rows == 15
    load(database, [tmp_path / "yellow_2.csv"], replace=True)
    assert rows_of(database).num_rows == 2


def test_rows_that_cannot_be_read_are_counted_told_and_kept_aside(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "yellow.csv"
    bad = [
        "2,2015-01-15 19:05:39",
        "2,never,1.5,17.05,x",
        '2,2015-01-15,"1.5,17.05,x',
        "2,2015-01-15,far,no,x",
    ]
    path.write_text("\n".join([HEADER, GOOD, *bad, GOOD]) + "\n")
    rejects = tmp_path / "rejects.csv"
    report = load(database, [path], rejects=rejects)
    (file,) = report.files
    assert (file.rows, file.rejected, file.left_out) == (2, 4, ("medallion",))
    assert [(found.line, found.reason) for found in file.examples] == [
        (3, "only 2 of the 5 fields that the header names"),
        (4, "pickup_datetime: 'never' is not a time"),
        (5, "a quote that does not close"),
    ]
    with rejects.open(newline="") as written:
        lines = list(csv.reader(written))
    assert lines[0] == ["file", "line", "reason", "text"]
    assert [line[1] for line in lines[1:]] == ["3", "4", "5", "6"]
    assert [line[3] for line in lines[1:]] == bad
    assert lines[-1][2] == "trip_distance: 'far' is not a number; total_amount: 'no' is not a number"


def test_rows_of_parquet_files_are_told_by_number(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "yellow.parquet"
    rows = 200_000
    vendors = ["CMT"] * rows
    vendors[150_000] = "Uncle Bob"
    pq.write_table(pa.table({"vendor_name": vendors, "Trip_Distance": np.arange(rows) / 4}), path)
    report = load(database, [path])
    assert report.rows == rows - 1
    (example,) = report.files[0].examples
    assert example == Rejected(
        path,
        150_001,
        "vendor_id: 'Uncle Bob' is not a whole number or a known word",
        '{"vendor_name": "Uncle Bob", "Trip_Distance": 37500.0}',
    )


def test_a_file_that_fails_leaves_nothing(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{HEADER}\n{GOOD}\n")
    (tmp_path / "b.csv").write_text("id,name\n1,x\n")
    with pytest.raises(IngestError, match=r"b\.csv: not a TLC trip file"):
        load(database, [tmp_path / "*.csv"])
    assert not database.has_table("trips")


def test_a_table_of_other_columns_is_left_alone(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{HEADER}\n{GOOD}\n")
    with database.create_table("trips", pa.schema([("a", pa.int32())])) as writer:
        writer.commit()
    with pytest.raises(CatalogError, match="exists with other columns than trips have"):
        load(database, [tmp_path / "a.csv"])
    assert load(database, [tmp_path / "a.csv"], table="taxi").rows == 1


def test_compressed_and_columnar_forms_give_the_same_rows(database: Database, tmp_path: Path) -> None:
    source = next(path for path in trip_files() if "2015" in path.name)
    table = pq.read_table(source)
    pa.csv.write_csv(table, tmp_path / "yellow.csv")
    with pa.output_stream(tmp_path / "yellow.csv.gz", compression="gzip") as stream:
        pa.csv.write_csv(table, stream)
    with pa.ipc.new_file(str(tmp_path / "yellow.arrow"), table.schema) as writer:
        writer.write_table(table)
    shutil.copy(source, tmp_path / "yellow.parquet")
    for name in ("yellow.csv", "yellow.csv.gz", "yellow.arrow", "yellow.parquet"):
        load(database, [tmp_path / name], table=name.replace(".", "_"))
    first = rows_of(database, "yellow_parquet")
    assert first.num_rows == table.num_rows
    for other in ("yellow_csv", "yellow_csv_gz", "yellow_arrow"):
        assert rows_of(database, other).equals(first), other


def test_rejects_that_cannot_be_written_are_an_error(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{HEADER}\n{GOOD}\n")
    with pytest.raises(StorageError, match="cannot write rejected rows"):
        load(database, [tmp_path / "a.csv"], rejects=tmp_path / "no" / "rejects.csv")
    assert not database.has_table("trips")


def test_names_of_all_sample_files_are_known() -> None:
    for path in trip_files():
        assert map_names(pq.read_schema(path).names, path).unknown == ()
    assert FileReport(Path("x")).rows == 0
