import datetime
import decimal
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CancelledError, CatalogError, ConflictError, CorruptionError, MemoryLimitError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments import rows as fragment_rows
from bamquery.storage.tables import clustering, optimize
from bamquery.storage.tables import writer as table_writer
from tests.unit.storage.sample_tables import (
    SCHEMA,
    OtherProcess,
    append,
    batch,
    create,
    fill,
    rows_of,
    values_of,
)


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        yield database


@pytest.fixture(autouse=True)
def appends_stay_apart(monkeypatch):
    """Let OPTIMIZE do what appends would do by themselves."""
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 10**9)


def fragment_rows_of(database, name="t"):
    with database.table(name).snapshot() as snapshot:
        return [entry.rows for entry in snapshot.entries]


def fill_in_parts(database, table, parts):
    """One fragment for each part of the table."""
    database.create_table("t", table.schema).commit()
    for start, stop in zip(np.cumsum([0, *parts[:-1]]), np.cumsum(parts), strict=True):
        with database.table("t").append() as writer:
            for piece in table.slice(start, stop - start).combine_chunks().to_batches():
                writer.write(piece)
            writer.commit()


def test_small_fragments_become_one(database):
    create(database, "t", [0])
    for number in range(1, 20):
        append(database, "t", [number] * number)
    before = values_of(database, "t")
    report = database.table("t").optimize()
    assert (report.version, report.fragments_before, report.fragments_after) == (21, 20, 1)
    assert report.rows_written == len(before)
    assert report.bytes_written > 0
    assert values_of(database, "t") == before
    assert [version.operation for version in database.table("t").versions()][-1] == "optimize"
    database.vacuum()
    check = database.check()
    assert check.clean
    assert check.litter == []
    assert check.fragments == 1


def test_large_fragments_stay_and_neighbours_are_merged_up_to_the_aim(database, monkeypatch):
    monkeypatch.setattr(optimize, "COMPACT_ROWS", 100)
    parts = [30, 30, 30, 30, 150, 10, 100, 5, 5, 99, 1, 1]
    create(database, "t", [])
    start = 0
    for count in parts:
        append(database, "t", range(start, start + count))
        start += count
    with database.table("t").snapshot() as snapshot:
        kept = {entry.rows: entry for entry in snapshot.entries}
    database.table("t").optimize()
    assert fragment_rows_of(database) == [120, 150, 10, 100, 109, 2]
    assert values_of(database, "t") == list(range(start))
    with database.table("t").snapshot() as snapshot:
        for position in (1, 2, 3):
            entry = snapshot.entries[position]
            assert kept[entry.rows] == entry


def test_a_table_in_good_order_is_left_alone(database):
    create(database, "t", [1, 2])
    report = database.table("t").optimize()
    assert (report.version, report.fragments_before, report.fragments_after, report.rows_written) == (
        1,
        1,
        1,
        0,
    )
    assert database.table("t").optimize(["a"]).version == 1
    create(database, "e", [])
    assert database.table("e").optimize().version == 1
    assert database.table("e").optimize(["a"]).version == 1


def types_table(rows=5000, seed=0):
    """One column of each kind, with nulls, NaN, infinities and signed zeros."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 40, rows)

    def nullable(values, type_):
        return pa.array([None if rng.random() < 0.1 else v for v in values], type_)

    floats = rng.choice([0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf], rows)
    texts = [f"text {k}" * int(k % 4) for k in keys]
    moments = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(k)) for k in keys]
    columns = {
        "id": pa.array(np.arange(rows)),
        "small": nullable([int(k) for k in keys], pa.int8()),
        "flag": nullable([bool(k % 2) for k in keys], pa.bool_()),
        "real": nullable(floats.tolist(), pa.float64()),
        "text": nullable(texts, pa.large_string()),
        "bytes": nullable([t.encode() for t in texts], pa.large_binary()),
        "moment": nullable(moments, pa.timestamp("us", "UTC")),
        "day": nullable([m.date() for m in moments], pa.date32()),
        "time": nullable([m.time() for m in moments], pa.time64("us")),
        "price": nullable([decimal.Decimal(int(k)) / 4 for k in keys], pa.decimal128(10, 2)),
        "code": pa.array([f"c{k}" for k in keys], pa.large_string()).dictionary_encode(),
        "unsigned": nullable([int(k) + 2**63 for k in keys], pa.uint64()),
    }
    return pa.table(columns)


def python_key(values):
    """How rows compare: nulls last, before them NaN."""
    return tuple(
        (2, 0) if v is None else (1, 0) if isinstance(v, float) and math.isnan(v) else (0, v) for v in values
    )


@pytest.mark.parametrize(
    "keys",
    [[name] for name in types_table(1).column_names]
    + [["text", "small"], ["flag", "real", "id"], ["code", "day"], ["CODE"]],
    ids=str,
)
def test_rows_are_put_in_order_of_any_column_and_stay_so_among_equals(database, keys):
    table = types_table(2000)
    fill_in_parts(database, table, [700, 5, 1024, 271])
    expected = table.to_pylist()
    expected.sort(key=lambda row: python_key([row[key if key in row else key.lower()] for key in keys]))
    database.table("t").optimize(keys)
    with database.table("t").snapshot() as snapshot:
        found = rows_of(snapshot)
    assert found["id"].to_pylist() == [row["id"] for row in expected]
    assert repr(found.to_pylist()) == repr(expected)  # repr: NaN equals NaN, and -0.0 is not 0.0
    assert database.check().clean


def test_dictionaries_of_many_fragments_become_one(database):
    schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.large_string()))])
    database.create_table("t", schema).commit()
    texts = [["b", "a", None], ["c", "a"], [None], ["a", "d", "b"]]
    for part in texts:
        with database.table("t").append() as writer:
            array = pa.array(part, pa.large_string()).dictionary_encode()
            writer.write(pa.record_batch([array.cast(schema[0].type)], schema=schema))
            writer.commit()
    database.table("t").optimize()
    with database.table("t").snapshot() as snapshot:
        assert rows_of(snapshot)["d"].to_pylist() == [text for part in texts for text in part]
    database.table("t").optimize(["d"])
    with database.table("t").snapshot() as snapshot:
        assert rows_of(snapshot)["d"].to_pylist() == ["a", "a", "a", "b", "b", "c", "d", None, None]


def test_clustering_in_several_fragments_and_pieces(database, monkeypatch):
    monkeypatch.setattr(fragment_rows, "PIECE_BYTES", 5000)
    monkeypatch.setattr(clustering, "MAX_FRAGMENT_ROWS", 1500)
    table = types_table(5000)
    fill_in_parts(database, table, [3000, 1, 1999])
    database.table("t").optimize(["small", "id"])
    assert fragment_rows_of(database) == [1500, 1500, 1500, 500]
    with database.table("t").snapshot() as snapshot:
        found = rows_of(snapshot)
    assert repr(found.to_pylist()) == repr(
        sorted(table.to_pylist(), key=lambda row: python_key([row["small"], row["id"]]))
    )


def test_a_table_in_order_already_is_only_compacted(database, monkeypatch):
    create(database, "t", [1, 2, 2])
    append(database, "t", [2, 3, None])
    monkeypatch.setattr(optimize, "PermutedRows", None)
    report = database.table("t").optimize(["a"])
    assert report.fragments_after == 1
    assert values_of(database, "t") == [1, 2, 2, 2, 3, None]


def test_columns_that_do_not_exist(database):
    create(database, "t", [1])
    with pytest.raises(CatalogError, match=r'no column "aa"\. Did you mean "a"'):
        database.table("t").optimize(["aa"])
    assert database.vacuum().in_use == []


def test_the_memory_limit_is_kept_or_named(database, monkeypatch):
    monkeypatch.setattr(clustering, "_FEWEST_ROWS", 1024)
    create(database, "t", np.random.default_rng(0).permutation(100_000))
    with pytest.raises(
        MemoryLimitError, match=r"100,000 rows takes 2,400,000 bytes.*memory_limit is 2,399,999"
    ):
        database.table("t").optimize(["a"], memory_limit=2_399_999)
    database.table("t").optimize(["a"], memory_limit=2_400_000)
    # (2.4 M - 4 x 100,000) / (8 + 16) rows a fragment
    assert fragment_rows_of(database) == [83_333, 16_667]
    assert values_of(database, "t") == list(range(100_000))


@pytest.mark.parametrize("keys", [[], ["a"]], ids=["merge", "cluster"])
def test_memory_is_looked_at_before_each_piece(database, monkeypatch, keys):
    """What allocators keep of the last ones comes on top of the limit otherwise."""
    monkeypatch.setattr(fragment_rows, "PIECE_BYTES", 8 << 10)
    rows = 20 << 10
    create(database, "t", np.random.default_rng(0).permutation(rows))
    append(database, "t", [0])
    looks = []
    database.table("t").optimize(keys, relieve=lambda: looks.append(0))
    assert len(looks) >= (20 if not keys else 60)  # to sort, to gather, and to put in order


def test_a_concurrent_append_wins_and_loses_nothing(database, monkeypatch):
    create(database, "t", [3])
    append(database, "t", [1])
    real = optimize.BackgroundTransaction.publish

    def publish(self, *arguments):
        monkeypatch.undo()
        append(database, "t", [2])
        return real(self, *arguments)

    for keys in ([], ["a"]):
        monkeypatch.setattr(optimize.BackgroundTransaction, "publish", publish)
        before = values_of(database, "t")
        with pytest.raises(ConflictError):
            database.table("t").optimize(keys)
        assert values_of(database, "t") == [*before, 2]
        assert database.check().litter == []


def test_an_append_that_loses_to_optimize_in_another_process(database):
    create(database, "t", [3])
    append(database, "t", [1])
    writer = database.table("t").append()
    with OtherProcess(database) as other:
        other.run("database.table('t').optimize(['a'])")
    with pytest.raises(ConflictError):
        fill(writer, [2])
    assert values_of(database, "t") == [1, 3]


@pytest.mark.parametrize("keys", [[], ["b"]], ids=["merge", "cluster"])
def test_a_damaged_fragment_is_not_copied(database, keys):
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    database.create_table("t", schema).commit()
    for number in range(3):
        with database.table("t").append() as writer:
            writer.write(pa.record_batch([pa.array([number]), pa.array([-number])], schema=schema))
            writer.commit()
    with database.table("t").snapshot() as snapshot:
        fragment = snapshot.fragments[1]
        at = fragment.layout.columns[0].values.offset
    data = bytearray(fragment.path.read_bytes())
    data[at] ^= 1
    fragment.path.write_bytes(data)
    before = sorted(database.path.rglob("*"))
    with pytest.raises(CorruptionError) as caught:
        database.table("t").optimize(keys)
    assert caught.value.path == fragment.path
    assert sorted(database.path.rglob("*")) == before


@pytest.mark.parametrize("source", ["merged", "clustered"])
def test_rewriting_can_be_cancelled(database, source):
    create(database, "t", [2, 1])
    with database.table("t").snapshot() as snapshot:
        if source == "merged":
            rows = fragment_rows.FragmentRows(snapshot.fragments[0], lambda: True)
        else:
            order = np.array([1, 0])
            rows = fragment_rows.PermutedRows(snapshot.fragments, order, lambda: True)
        with pytest.raises(CancelledError):
            list(rows.column(0))


def test_snapshots_of_before_stay_readable(database):
    create(database, "t", [3])
    append(database, "t", [1])
    with database.table("t").snapshot() as before:
        database.table("t").optimize(["a"])
        database.vacuum()
        assert rows_of(before)["a"].to_pylist() == [3, 1]
    assert values_of(database, "t") == [1, 3]
    assert batch([1]).schema == SCHEMA


MEASURED = """
import sys, threading
from bamquery.storage.database.database import Database

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

peak, stop = 0, threading.Event()
def watch():
    global peak
    while not stop.wait(0.002):
        peak = max(peak, anonymous())

with Database.open(sys.argv[1]) as database:
    before = anonymous()
    threading.Thread(target=watch).start()
    database.table("t").optimize(sys.argv[3:], memory_limit=int(sys.argv[2]))
    stop.set()
    print(peak - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "limit"), [([], 0), (["a"], 500_000_000)], ids=["merge", "cluster"])
def test_memory_is_what_is_documented(database, monkeypatch, keys, limit):
    rows, columns = 16_000_000, "abcd"  # 512 MB
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 50_000_000)
    rng = np.random.default_rng(0)
    with database.create_table("t", pa.schema([(name, pa.int64()) for name in columns])) as writer:
        for _ in range(0, rows, 100_000):
            values = [pa.array(rng.integers(0, 1 << 60, 100_000)) for _ in columns]
            writer.write(pa.record_batch(values, schema=writer.schema))
        writer.commit()
    command = [sys.executable, "-c", MEASURED, str(database.path), str(limit), *keys]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < limit + 150_000_000
    with database.table("t").snapshot() as snapshot:
        assert snapshot.rows == rows
        assert len(snapshot.entries) < 5
    assert database.check().clean
