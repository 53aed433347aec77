import threading
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import CancelledError, IngestError
from bamquery.storage.database.database import Database
from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source

TABLE = pa.table({"id": pa.array([1, 2, None], pa.int32()), "name": ["a", None, "c"], "fee": [0.5, 1.5, 2.5]})


class Recorder:
    """A Progress that writes down what it is told."""

    def __init__(self):
        self.shown = []
        self.reports = []

    @contextmanager
    def show(self, *args):
        self.shown.append(args)
        yield lambda rows, size: self.reports.append((rows, size))


def test_all_rows_arrive(heap_writer):
    source = open_source(TABLE)
    writer = heap_writer(source.schema)
    assert ingest(writer, source) == 3
    assert writer.table.to_pydict() == TABLE.to_pydict()


def test_columns_are_found_by_name_and_fitted(heap_writer):
    schema = pa.schema(
        {"NAME": pa.large_string(), "Id": pa.int64(), "extra": pa.date32(), "fee": pa.decimal128(5, 1)}
    )
    writer = heap_writer(schema)
    ingest(writer, open_source(TABLE))
    assert writer.table.schema == schema
    rows = writer.table.to_pydict()
    assert rows["Id"] == [1, 2, None]
    assert rows["NAME"] == ["a", None, "c"]
    assert rows["extra"] == [None] * 3
    assert [float(fee) for fee in rows["fee"]] == [0.5, 1.5, 2.5]


def test_a_table_that_cannot_take_it(heap_writer):
    writer = heap_writer(pa.schema({"id": pa.int64(), "nme": pa.large_string(), "fee": pa.float64()}))
    with pytest.raises(IngestError, match=r'the table has no column "name"\. Did you mean "nme"\?.*exclude='):
        ingest(writer, open_source(TABLE))
    writer = heap_writer(pa.schema({"id": pa.int64(), "name": pa.large_string(), "fee": pa.int8()}))
    with pytest.raises(IngestError, match=r'pyarrow\.Table: row 1, column "fee": 0\.5 does not fit TINYINT'):
        ingest(writer, open_source(TABLE))


def test_progress_hears_of_rows_and_bytes(heap_writer, tmp_path):
    pq.write_table(pa.table({"a": np.arange(5000)}), tmp_path / "x.parquet", row_group_size=1000)
    source = open_source(tmp_path / "x.parquet")
    progress = Recorder()
    ingest(heap_writer(source.schema), source, progress)
    assert progress.shown == [(f"Loading {tmp_path}/x.parquet", 5000, source.total_bytes)]
    rows, sizes = zip(*progress.reports, strict=True)
    assert rows == (1000, 2000, 3000, 4000, 5000)
    assert sizes[-1] == pytest.approx(source.total_bytes, rel=0.01)


def test_cancelling_stops_between_batches(heap_writer):
    source = open_source(pa.table({"a": np.arange(1_000_000)}))
    writer = heap_writer(source.schema)
    with pytest.raises(CancelledError):
        ingest(writer, source, cancelled=lambda: len(writer.batches) == 2)
    assert len(writer.batches) == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "bamquery-read-ahead"]


def test_errors_of_the_source_reach_the_caller(heap_writer, tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    source = open_source(tmp_path / "x.csv")
    (tmp_path / "x.csv").unlink()
    with pytest.raises(IngestError, match="cannot be read: No such file"):
        ingest(heap_writer(source.schema), source)


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        yield database


def read(table):
    """The rows of a table's latest version, as pyarrow reads its files."""
    with table.snapshot() as snapshot:
        readers = [pa.ipc.open_file(fragment.path).read_all() for fragment in snapshot.fragments]
        return pa.concat_tables(readers) if readers else snapshot.schema.empty_table()


def test_into_a_database_and_append(database, tmp_path):
    pq.write_table(TABLE, tmp_path / "1.parquet")
    pq.write_table(TABLE.rename_columns(["ID", "name", "fee"]), tmp_path / "2.parquet")
    source = open_source(tmp_path / "1.parquet")
    with database.create_table("t", source.schema) as writer:
        ingest(writer, source)
        writer.commit()
    with database.table("t").append() as writer:
        ingest(writer, open_source(tmp_path / "2.parquet", exclude=["fee"]))
        writer.commit()
    rows = read(database.table("t"))
    assert rows.schema == source.schema
    assert rows.to_pydict() == {
        "id": [1, 2, None] * 2,
        "name": ["a", None, "c"] * 2,
        "fee": [0.5, 1.5, 2.5, None, None, None],
    }
    assert not database.check().errors


def test_a_source_that_fails_leaves_the_last_commit(database, tmp_path):
    with database.create_table("t", pa.schema({"a": pa.int64()})) as writer:
        ingest(writer, open_source(pa.table({"a": [1, 2]})))
        writer.commit()

    def batches():
        yield pa.record_batch({"a": np.arange(100_000)})
        raise OSError("gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with (
        database.table("t").append() as writer,
        pytest.raises(IngestError, match="failed after 100000 rows: gone"),
    ):
        ingest(writer, open_source(reader))
    assert read(database.table("t")).to_pydict() == {"a": [1, 2]}
    assert len(list((tmp_path / "db").rglob("*.arrow"))) == 2


def test_real_files_into_a_database(database, shared_taxi):
    source = open_source(f"{shared_taxi}/green*.parquet")
    with database.create_table("green", source.schema) as writer:
        assert ingest(writer, source) == source.total_rows
        writer.commit()
    rows = read(database.table("green"))
    expected = pa.Table.from_batches(source.batches())
    assert rows == expected


def test_every_type_into_a_database(database, tmp_path):
    table = pa.table(
        {
            "bool": [True, None],
            "u64": pa.array([2**64 - 1, None], pa.uint64()),
            "half": pa.array([np.float16(1.5), None], pa.float16()),
            "time": pa.array([1, None], pa.time32("s")),
            "stamp": pa.array([1, None], pa.timestamp("ns", "UTC")),
            "text": pa.array(["x" * 20, None], pa.string_view()),
            "blob": pa.array([b"\xff", None]),
            "code": pa.array(["x", None]).dictionary_encode(),
            "nothing": pa.nulls(2),
        }
    )
    source = open_source(table)
    with database.create_table("t", source.schema) as writer:
        ingest(writer, source)
        writer.commit()
    assert read(database.table("t")).to_pylist() == table.to_pylist()


class AskedSource:
    """A source that writes down how large its batches should be."""

    def __init__(self, source):
        self._source = source
        self.batch_bytes = []

    def __getattr__(self, name):
        return getattr(self._source, name)

    def batches(self, columns=None, files=None, batch_bytes=None):
        self.batch_bytes.append(batch_bytes)
        return self._source.batches(columns, files)


def test_batches_are_a_small_part_of_the_memory_limit(heap_writer):
    source = AskedSource(open_source(TABLE))
    for limit in (None, 64 << 30, 256 << 20):
        ingest(heap_writer(source.schema), source, memory_limit=limit)
    assert source.batch_bytes == [32 << 20, 32 << 20, 8 << 20]


def test_freed_memory_is_looked_at_after_each_batch(heap_writer):
    table = pa.concat_tables([TABLE] * 3)
    source, relieved = open_source(table), []
    writer = heap_writer(source.schema)
    ingest(writer, source, relieve=lambda: relieved.append(len(writer.batches)))
    assert relieved == [*range(1, len(writer.batches) + 1)]
