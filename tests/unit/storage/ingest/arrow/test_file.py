import datetime
import shutil
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.arrow import file as arrow_file
from bamquery.storage.ingest.arrow import slices as arrow_slices
from bamquery.storage.ingest.opening import open_source

ROWS = 5000


def table():
    generator = np.random.default_rng(0)
    mask = generator.random(ROWS) < 0.3
    text = np.array([str(n) * (n % 7) for n in range(ROWS)])
    return pa.table(
        {
            "bool": pa.array(generator.random(ROWS) < 0.5, mask=mask),
            "int16": pa.array(np.arange(ROWS), pa.int16(), mask=mask),
            "double": generator.random(ROWS),
            "decimal": pa.array([Decimal(n) / 100 for n in range(ROWS)], pa.decimal128(10, 2)),
            "stamp": pa.array(np.arange(ROWS), pa.timestamp("us")),
            "day": pa.array([datetime.date(2024, 1, 1)] * ROWS),
            "text": pa.array(text, pa.string(), mask=mask),
            "large": pa.array(text.tolist(), pa.large_string()),
            "blob": pa.array([b"\xff" * (n % 3) for n in range(ROWS)], pa.binary()),
            "fixed": pa.array([b"ab"] * ROWS, pa.binary(2)),
            "code": pa.array(text).dictionary_encode(),
            "nothing": pa.nulls(ROWS),
        }
    )


def write_file(path, table, **options):
    with pa.ipc.new_file(path, table.schema, **options) as writer:
        writer.write_table(table)
    return path


def write_stream(path, table, **options):
    with pa.ipc.new_stream(path, table.schema, **options) as writer:
        writer.write_table(table)
    return path


@pytest.fixture
def large_batches(monkeypatch):
    """Every record batch is read in slices of 1,024 rows."""
    monkeypatch.setattr(arrow_file, "_LARGE_BATCHES", 0)
    monkeypatch.setattr(arrow_slices, "BATCH_ROWS", 1024)


@pytest.mark.parametrize("write", [write_file, write_stream])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_both_formats(tmp_path, rows_of, write, compression):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    path = write(tmp_path / "x.arrow", table(), options=options)
    source = open_source(path)
    assert rows_of(source).to_pylist() == table().to_pylist()
    assert rows_of(source, ["text", "int16"]).to_pylist() == table().select(["text", "int16"]).to_pylist()
    assert sum(batch.num_rows for batch in source.batches([])) == ROWS
    assert source.total_bytes == path.stat().st_size


def test_feather(tmp_path, rows_of):
    pa.feather.write_feather(table(), tmp_path / "x.feather", chunksize=1000)
    assert rows_of(open_source(tmp_path / "x.feather")).num_rows == ROWS


def test_delta_dictionaries(tmp_path, rows_of):
    schema = pa.schema({"code": pa.dictionary(pa.int8(), pa.string())})
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(tmp_path / "x.arrows", schema, options=options) as writer:
        for values in (["a", "b"], ["a", "b", "c"]):
            array = pa.DictionaryArray.from_arrays(pa.array([0, len(values) - 1], pa.int8()), values)
            writer.write_batch(pa.record_batch([array], schema=schema))
    assert rows_of(open_source(tmp_path / "x.arrows")).column("code").to_pylist() == ["a", "b", "a", "c"]


@pytest.mark.parametrize("columns", [None, ["text", "bool"], ["code"], []])
def test_large_batches_in_slices(tmp_path, large_batches, columns):
    path = write_file(tmp_path / "x.arrow", table())
    batches = list(open_source(path).batches(columns))
    assert [batch.num_rows for batch in batches] == [1024, 1024, 1024, 1024, 904]
    rows = [row for batch in batches for row in batch.to_pylist()]
    expected = table().select(columns) if columns is not None else table()
    assert rows == expected.to_pylist() or columns == []


def test_a_large_batch_of_wide_rows_comes_in_slices_of_few(tmp_path):
    wide = pa.table({"n": np.arange(3000), "text": ["x" * 1000] * 3000})
    path = write_file(tmp_path / "x.arrow", wide)
    source = open_source(path)
    assert [batch.num_rows for batch in source.batches()] == [3000]
    batches = list(source.batches(batch_bytes=100_000))
    assert max(batch.nbytes for batch in batches) <= 1.1 * 100_000
    assert pa.Table.from_batches(batches).to_pylist() == wide.to_pylist()


def test_large_batches_beside_columns_that_are_left_out(tmp_path, large_batches, rows_of):
    nested = pa.table(
        {
            "list": pa.array([[n] for n in range(3000)]),
            "struct": [{"x": n, "y": str(n)} for n in range(3000)],
            "vector": pa.array([[1, 2]] * 3000, pa.list_(pa.int32(), 2)),
            "n": np.arange(3000),
        }
    )
    path = write_file(tmp_path / "x.arrow", nested)
    source = open_source(path, exclude=["list", "struct", "vector"])
    assert rows_of(source).column("n").to_pylist() == list(range(3000))
    views = pa.table({"view": pa.array(["x" * 20] * 10, pa.string_view()), "n": np.arange(10)})
    assert rows_of(open_source(write_file(tmp_path / "y.arrow", views))).num_rows == 10


def test_slices_read_no_more_than_their_columns(tmp_path, large_batches, monkeypatch):
    path = write_file(tmp_path / "x.arrow", pa.table({"a": np.arange(100_000), "b": np.arange(100_000)}))
    lengths = []
    read = arrow_slices._read_at
    monkeypatch.setattr(arrow_slices, "_read_at", lambda *args: lengths.append(args[2]) or read(*args))
    list(open_source(path).batches(["b"]))
    assert 800_000 <= sum(lengths) < 810_000
    assert max(lengths) <= 8192


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "is an empty file"),
        (lambda data: b"FEA1" + data[4:], "is of Feather's first version"),
        (lambda data: b"hello, world" * 10, "is not an Arrow IPC stream, or a damaged or truncated one"),
        (lambda data: data[: len(data) // 2], "is not an Arrow IPC file, or a damaged or truncated one"),
        (lambda data: data[:-10] + b"\xff\xff\xff\x7f" + data[-6:], "is not an Arrow IPC file, or a damaged"),
    ],
)
def test_damaged_files(tmp_path, damage, message):
    path = write_file(tmp_path / "x.arrow", table())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(IngestError, match=message) as caught:
        list(open_source(path).batches())
    assert caught.value.path == path


def test_a_truncated_stream(tmp_path):
    path = write_stream(tmp_path / "x.arrows", table())
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(IngestError, match=r"x\.arrows: record batch 0: cannot be read"):
        list(open_source(path).batches())


def test_wrong_indexes_and_offsets_are_named(tmp_path):
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), ["a"], safe=False)
    path = write_file(tmp_path / "x.arrow", pa.table({"ok": [1, 2], "code": bad}))
    with pytest.raises(
        IngestError, match='record batch 0, column "code": cannot be read: Dictionary indices invalid'
    ):
        list(open_source(path).batches())
    assert sum(batch.num_rows for batch in open_source(path).batches(["ok"])) == 2


def test_a_file_truncated_while_it_is_read(tmp_path):
    schema = pa.schema({"a": pa.int64()})
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, schema) as writer:
        for _ in range(50):
            writer.write_batch(pa.record_batch([np.arange(10_000)], schema=schema))
    batches = open_source(path).batches()
    next(batches)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(IngestError, match="record batch"):
        list(batches)


@pytest.mark.parametrize("write", [write_file, write_stream])
@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_never_crash(tmp_path, write, seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(arrow_file, "_LARGE_BATCHES", 0)
    path = write(tmp_path / "x.arrow", table().slice(0, 300))
    data = bytearray(path.read_bytes())
    generator = np.random.default_rng(seed)
    # The metadata is where it hurts: at the front, and in files also at the end.
    near_ends = np.concatenate([np.arange(3000), np.arange(len(data) - 4000, len(data))])
    for position in generator.choice(near_ends, 5):
        data[position] ^= 1 << generator.integers(8)
    path.write_bytes(data)
    with suppress(IngestError):
        for batch in open_source(path).batches():
            batch.to_pylist()


def test_our_own_fragments_are_arrow_files(tmp_path, rows_of, large_batches):
    from bamquery.storage.database.database import Database

    rows = pa.table(
        {"n": np.arange(3000), "text": pa.array([str(n) for n in range(3000)], pa.large_string())}
    )
    with Database.open(tmp_path / "db") as database:
        with database.create_table("t", rows.schema) as writer:
            for batch in rows.to_batches():
                writer.write(batch)
            writer.commit()
        (fragment,) = [p for p in (tmp_path / "db").rglob("*.arrow") if ".vectors." not in p.name]
        shutil.copy(fragment, tmp_path / "copy.arrow")
    source = open_source(tmp_path / "copy.arrow")
    assert pa.Table.from_batches(source.batches()) == rows
