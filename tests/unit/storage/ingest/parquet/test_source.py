import datetime
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.opening import open_source

DAY = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)


def write(path, table, **options):
    pq.write_table(table, path, **options)
    return path


@pytest.fixture
def trips(tmp_path):
    """Three row groups of 1,000 rows."""
    table = pa.table(
        {
            "id": pa.array(range(3000), pa.int32()),
            "distance": pa.array(np.random.default_rng(0).random(3000)),
            "flag": pa.array(["Y", "N", None] * 1000),
        }
    )
    return write(
        tmp_path / "trips.parquet", table, row_group_size=1000, compression="none", use_dictionary=False
    )


def test_all_types(tmp_path, rows_of):
    table = pa.table(
        {
            "bool": [True, None],
            "int8": pa.array([1, None], pa.int8()),
            "uint64": pa.array([2**64 - 1, None], pa.uint64()),
            "float": pa.array([1.5, None], pa.float32()),
            "half": pa.array([np.float16(1.5), None], pa.float16()),
            "decimal": pa.array([Decimal("1.23"), None], pa.decimal128(5, 2)),
            "date": [DAY, None],
            "time": pa.array([datetime.time(1, 2, 3), None], pa.time32("ms")),
            "stamp": pa.array([TIME, None], pa.timestamp("us", "UTC")),
            "stamp_ns": pa.array([TIME, None], pa.timestamp("ns")),
            "text": ["x", None],
            "blob": pa.array([b"\xff", None], pa.binary()),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "code": pa.array(["x", None]).dictionary_encode(),
            "nothing": pa.nulls(2),
        }
    )
    rows = rows_of(open_source(write(tmp_path / "x.parquet", table)))
    assert rows.schema == pa.schema(
        {
            "bool": pa.bool_(),
            "int8": pa.int8(),
            "uint64": pa.uint64(),
            "float": pa.float32(),
            "half": pa.float32(),
            "decimal": pa.decimal128(5, 2),
            "date": pa.date32(),
            "time": pa.time64("us"),
            "stamp": pa.timestamp("us", "UTC"),
            "stamp_ns": pa.timestamp("ns"),
            "text": pa.large_string(),
            "blob": pa.large_binary(),
            "fixed": pa.large_binary(),
            "code": pa.dictionary(pa.int32(), pa.large_string()),
            "nothing": pa.int32(),
        }
    )
    assert rows.to_pylist() == table.to_pylist()


def test_strings_stay_strings_whatever_the_encoding(tmp_path, rows_of):
    table = pa.table({"a": ["x", "y"] * 1000})
    write(tmp_path / "x.parquet", table, use_dictionary=True, store_schema=False)
    assert rows_of(open_source(tmp_path / "x.parquet")).schema.types == [pa.large_string()]


def test_int96_in_microseconds(tmp_path, rows_of):
    far = datetime.datetime(3000, 1, 1)  # not a 64-bit number of nanoseconds
    table = pa.table({"a": pa.array([TIME, far], pa.timestamp("us"))})
    write(tmp_path / "x.parquet", table, use_deprecated_int96_timestamps=True)
    rows = rows_of(open_source(tmp_path / "x.parquet"))
    assert rows.schema.types == [pa.timestamp("us")]
    assert rows.column("a").to_pylist() == [TIME, far]


def test_row_groups_and_projection(trips, rows_of):
    source = open_source(trips)
    assert (source.total_rows, source.total_bytes) == (3000, trips.stat().st_size)
    assert rows_of(source, ["flag", "id"]) == pq.read_table(trips, columns=["flag", "id"]).cast(
        pa.schema({"flag": pa.large_string(), "id": pa.int32()})
    )
    assert source.bytes_read == pytest.approx(source.total_bytes, rel=0.01)
    assert sum(batch.num_rows for batch in source.batches([])) == 3000


def test_only_the_wanted_columns_are_read(trips):
    damaged = bytearray(trips.read_bytes())
    chunk = pq.read_metadata(trips).row_group(1).column(1)
    damaged[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size] = bytes(
        chunk.total_compressed_size
    )
    trips.write_bytes(damaged)
    source = open_source(trips)
    assert sum(batch.num_rows for batch in source.batches(["id", "flag"])) == 3000
    with pytest.raises(IngestError, match='row group 1, column "distance": cannot be read'):
        list(source.batches())


def test_names_with_dots(tmp_path, rows_of):
    table = pa.table({"a": [1], "a.b": [2], "c.d": ["x"]})
    source = open_source(write(tmp_path / "x.parquet", table))
    assert rows_of(source, ["a"]).to_pydict() == {"a": [1]}
    assert rows_of(source, ["c.d", "a.b"]).to_pydict() == {"c.d": ["x"], "a.b": [2]}


def test_wide_rows_make_small_batches(tmp_path):
    table = pa.table({"a": [str(i) * 1000 for i in range(5000)]})
    source = open_source(write(tmp_path / "x.parquet", table))
    assert max(batch.num_rows for batch in source.batches()) == 5000
    batches = list(source.batches(batch_bytes=1 << 20))
    assert max(batch.nbytes for batch in batches) <= 1.5 * (1 << 20)
    assert sum(batch.num_rows for batch in batches) == 5000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "is an empty file"),
        (lambda data: b"GIF89a" + data[6:], "is not a Parquet file: it starts with b'GIF8'"),
        (lambda data: b"PARE" + data[4:], "is an encrypted Parquet file"),
        (lambda data: data[: len(data) // 2], r"footer \(the file may be truncated\): cannot be read"),
        (lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:], "footer .*: cannot be read"),
        (lambda data: b"PAR1PAR1", "footer .*: cannot be read"),
    ],
)
def test_damaged_files(trips, damage, message):
    trips.write_bytes(damage(trips.read_bytes()))
    with pytest.raises(IngestError, match=message) as caught:
        open_source(trips)
    assert caught.value.path == trips
    assert "\n" not in str(caught.value)


def test_a_file_truncated_while_it_is_read(tmp_path):
    table = pa.table({"a": np.random.default_rng(0).random(2_000_000)})
    path = write(tmp_path / "x.parquet", table, row_group_size=100_000)
    batches = open_source(path).batches()
    next(batches)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(IngestError, match=r"x\.parquet: row group \d+.*cannot be read"):
        list(batches)


def test_a_footer_that_promises_more_rows(trips, monkeypatch):
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *args, **options: list(real(*args, **options))[:0]
    )
    with pytest.raises(IngestError, match="row group 0: has 0 rows where the footer says 1000"):
        list(open_source(trips).batches())


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_are_found_or_harmless(trips, seed):
    """Never a crash, and never a wrong number of rows; values are covered by page checksums, if written."""
    data = bytearray(trips.read_bytes())
    generator = np.random.default_rng(seed)
    for position in generator.integers(0, len(data), 20):
        data[position] ^= 1 << generator.integers(8)
    trips.write_bytes(data)
    with suppress(IngestError):
        assert sum(batch.num_rows for batch in open_source(trips).batches()) == 3000


def test_page_checksums_are_verified(tmp_path):
    table = pa.table({"a": range(1000)})
    path = write(
        tmp_path / "x.parquet", table, write_page_checksum=True, compression="none", use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    data[pq.read_metadata(path).row_group(0).column(0).data_page_offset + 500] ^= 1
    path.write_bytes(data)
    with pytest.raises(IngestError, match=r'row group 0, column "a": cannot be read: .*(CRC|checksum)'):
        list(open_source(path).batches())
