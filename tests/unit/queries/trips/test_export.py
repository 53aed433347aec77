"""The Parquet copy: a file for each fragment, complete or not there, and nothing of others' removed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import StorageError
from bamquery.queries.trips.export import export, require_copy
from bamquery.queries.trips.parquet_files import column_bytes, parquet_files
from bamquery.storage.database.database import Database
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import store

ROWS = 300_000


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Three fragments; `a` ascends, `b` has nulls."""
    table = pa.table(
        {
            "a": pa.array(range(ROWS), pa.float64()),
            "b": pa.array([None if row % 7 == 0 else row * 0.5 for row in range(ROWS)], pa.float64()),
        }
    )
    with Database.open(tmp_path_factory.mktemp("export") / "db") as database:
        store(database, "t", table, (130_000, 250_001))
        with database.table("t").snapshot() as found:
            yield found


@pytest.mark.parametrize("threads", [1, 4])
def test_a_file_for_each_fragment_in_order(snapshot: Snapshot, tmp_path: Path, threads: int) -> None:
    path = tmp_path / "copy"
    assert export(snapshot, ("a", "b"), path, threads=threads)
    assert [file.name for file in parquet_files(path)] == [f"part-0000{n}.parquet" for n in range(3)]
    copy = pq.read_table(path)
    assert copy["a"].to_pylist() == list(range(ROWS))
    assert copy["b"].null_count == -(-ROWS // 7)
    require_copy(path, ("a", "b"))
    assert not export(snapshot, ("a", "b"), path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_missing_or_old_is_made_again(snapshot: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    export(snapshot, ("a",), path)
    (path / "part-00001.parquet").unlink()
    assert export(snapshot, ("a",), path)
    assert pq.read_table(path).num_rows == ROWS
    single = tmp_path / "single"
    single.write_bytes(b"the one file that earlier versions wrote")
    assert export(snapshot, ("a",), single)
    assert single.is_dir()


def test_others_files_stay(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"copy: is in the way of the Parquet copy: it holds other files"):
        export(snapshot, ("a",), tmp_path / "copy")
    assert (tmp_path / "copy" / "notes.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "copy"]


def test_a_folder_without_parquet_is_no_copy(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"has no file \*\.parquet"):
        require_copy(tmp_path, ("a",))


def test_bytes_of_columns_and_of_row_groups_that_may_match(snapshot: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    export(snapshot, ("a", "b"), path)
    files = parquet_files(path)
    groups = [
        pq.read_metadata(file).row_group(number)
        for file in files
        for number in range(pq.read_metadata(file).num_row_groups)
    ]
    both = sum(group.column(place).total_compressed_size for group in groups for place in (0, 1))
    assert column_bytes(files, ("a", "b")) == both
    assert column_bytes(files, ("b",)) < both
    last = sum(groups[-1].column(place).total_compressed_size for place in (0, 1))
    assert column_bytes(files, ("a", "b"), ("a", ROWS - 1.0)) == last
    assert column_bytes(files, ("a", "b"), ("a", float(ROWS))) == 0
    assert column_bytes(files, ("a", "b"), ("a", 0.0)) == both


def test_encoded_columns_are_decoded(tmp_path: Path) -> None:
    """Pyarrow alone sees their bytes, not their values."""
    table = pa.table(
        {
            "a": pa.array([row % 7 for row in range(5000)], pa.int64()),
            "b": pa.array([None if row % 5 == 0 else row * 0.25 for row in range(5000)], pa.float64()),
            "c": pa.array([f"v{row % 3}" for row in range(5000)], pa.large_string()),
        }
    )
    with Database.open(tmp_path / "db") as database:
        store(database, "t", table, (1700,), encoding="auto")
        with database.table("t").snapshot() as found:
            assert all(fragment.layout.is_encoded for fragment in found.fragments)
            export(found, ("c", "b", "a"), tmp_path / "copy", threads=2)
    copy = pq.read_table(tmp_path / "copy")
    assert copy.column_names == ["c", "b", "a"]
    assert copy.select(["a", "b", "c"]).cast(table.schema).equals(table)
