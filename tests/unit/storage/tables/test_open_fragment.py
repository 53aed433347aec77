"""Fragments by their paths: decoded, verified, in few batches at a time, and refused with the way out."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import bamquery
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.files.mapped_files import MAPPED_FILES
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.tables import open_fragment as module
from tests.stored import numbers, store
from tests.unit.storage.random_columns import ENCODINGS, Sample, assert_same, samples, written

ROWS = 9000


@pytest.fixture
def database(tmp_path: Path):
    """Table t of two fragments, most of its columns packed."""
    with Database.open(tmp_path / "db") as opened:
        table = numbers(ROWS).append_column("few", pa.array([f"v{i % 5}" for i in range(ROWS)]))
        store(opened, "t", table, (5000,), encoding="auto")
        yield opened


def fragments(database: Database) -> list[Fragment]:
    with database.table("t").snapshot() as snapshot:
        return list(snapshot.fragments)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=30)
@given(sample=samples())
def test_values_of_every_type_come_back(encoding: str, sample: Sample) -> None:
    if not sample.whole.num_rows:
        return
    with written(sample.batches, encoding=encoding) as fragment:
        reader = bamquery.open_fragment(fragment.path)
        assert reader.schema == sample.whole.schema
        found = pa.Table.from_batches(list(reader), reader.schema).unify_dictionaries().combine_chunks()
        for name, expected in zip(sample.whole.schema.names, sample.whole.columns, strict=True):
            (chunk,) = found.column(name).chunks
            assert_same(chunk, expected)


def test_all_of_a_table(database: Database) -> None:
    with database.table("t").snapshot() as snapshot:
        assert any(c.encoding is not None for f in snapshot.fragments for c in f.layout.columns)
        assert any(c.encoding is None for f in snapshot.fragments for c in f.layout.columns)
        found = pa.concat_tables(bamquery.open_fragment(f.path).read_all() for f in snapshot.fragments)
        expected = numbers(ROWS)
        for name in expected.column_names:
            column = found[name]
            plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            assert plain.to_pylist() == expected[name].to_pylist(), name
        assert found["few"].to_pylist() == [f"v{i % 5}" for i in range(ROWS)]


def test_columns_in_the_order_asked_for(database: Database) -> None:
    path = fragments(database)[0].path
    assert bamquery.open_fragment(str(path), ["rare", "position"]).read_all().column_names == [
        "rare",
        "position",
    ]
    with pytest.raises(StorageError, match=r'has no column "rar"\. Did you mean "rare"\?'):
        bamquery.open_fragment(path, ["rar"])
    with pytest.raises(StorageError, match="name at least one"):
        bamquery.open_fragment(path, [])


def test_a_copy_of_both_files_is_a_fragment(database: Database, tmp_path: Path) -> None:
    fragment = fragments(database)[0]
    for name in (fragment.entry.data_name, fragment.entry.vectors_name):
        shutil.copy(fragment.path.with_name(name), tmp_path / name)
    copy = bamquery.open_fragment(tmp_path / fragment.entry.data_name).read_all()
    assert copy.equals(bamquery.open_fragment(fragment.path).read_all())


def test_columns_are_those_of_its_time(database: Database) -> None:
    path = fragments(database)[0].path
    database.table("t").rename_column("noise", "din")
    database.table("t").drop_column("rare")
    assert {"noise", "rare"} <= set(bamquery.open_fragment(path).schema.names)


def test_batches_are_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fragments(database)[0].path
    assert len(list(bamquery.open_fragment(path))) == 1
    monkeypatch.setattr(module, "_BATCH_BYTES", 1)
    assert [batch.num_rows for batch in bamquery.open_fragment(path)] == [1024] * 4 + [904]


def test_memory_is_that_of_a_batch(tmp_path: Path) -> None:
    rows = 4 << 20
    batch = pa.record_batch({"i": pa.array(np.arange(rows) % 1000), "f": pa.array(np.arange(rows) / 8)})
    with written([batch], encoding="auto") as fragment:
        before, most, rows_seen = pa.total_allocated_bytes(), 0, 0
        tracemalloc.start()
        for piece in bamquery.open_fragment(fragment.path):
            most = max(most, pa.total_allocated_bytes() - before)
            rows_seen += piece.num_rows
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert rows_seen == rows
    assert most <= 2 * module._BATCH_BYTES
    assert traced <= 2 * module._BATCH_BYTES


def test_a_stream_for_others(database: Database) -> None:
    """Whatever takes a C stream of Arrow reads it; rows nobody reads close the file all the same."""
    path = fragments(database)[0].path
    with bamquery.connect() as connection:
        connection.register("f", bamquery.open_fragment(path))
        assert connection.sql("SELECT count(*), max(position) FROM f").fetchall() == [(5000, 4999)]
    bamquery.open_fragment(path)
    half_read = bamquery.open_fragment(path)
    half_read.read_next_batch()
    del half_read
    with MAPPED_FILES._lock:
        assert path not in {key[0] for key in MAPPED_FILES._maps}


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_damage_is_found_in_the_column_that_has_it(database: Database) -> None:
    fragment = fragments(database)[0]
    index = fragment.column_index("rare")
    damage(fragment.path, fragment.layout.columns[index].values.offset + 1)
    with pytest.raises(CorruptionError, match=r'\.arrow: column "rare", vector 0: its values do not match'):
        bamquery.open_fragment(fragment.path).read_all()
    assert bamquery.open_fragment(fragment.path, ["noise"]).read_all().num_rows == 5000


def test_a_vectors_file_that_is_another_is_found(database: Database) -> None:
    first, second = fragments(database)
    vectors = first.path.with_name(first.entry.vectors_name)
    vectors.write_bytes(second.path.with_name(second.entry.vectors_name).read_bytes())
    with pytest.raises(CorruptionError, match=r"\.vectors\.arrow: "):
        bamquery.open_fragment(first.path).read_all()


@pytest.mark.parametrize("at", [-8, -20])
def test_a_copy_with_damaged_metadata_is_no_crash(database: Database, tmp_path: Path, at: int) -> None:
    fragment = fragments(database)[0]
    data = bytearray(fragment.path.with_name(fragment.entry.vectors_name).read_bytes())
    data[at] ^= 0x55
    (tmp_path / fragment.entry.vectors_name).write_bytes(data)
    shutil.copy(fragment.path, tmp_path)
    with pytest.raises(CorruptionError, match=r"\.vectors\.arrow: it cannot be read"):
        bamquery.open_fragment(tmp_path / fragment.entry.data_name)


def test_what_is_no_fragment_is_refused_with_the_way_out(database: Database, tmp_path: Path) -> None:
    fragment = fragments(database)[0]
    vectors = fragment.path.with_name(fragment.entry.vectors_name)
    with pytest.raises(StorageError, match=f"whose columns are in .*{fragment.entry.data_name}"):
        bamquery.open_fragment(vectors)
    with pytest.raises(StorageError, match="there is no such file: a table's fragments are in"):
        bamquery.open_fragment(tmp_path / "nothing.arrow")
    with pytest.raises(StorageError, match=r"is a folder: .* bamquery\.connect opens"):
        bamquery.open_fragment(tmp_path / "db")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, pa.schema([])):
        pass
    with pytest.raises(StorageError, match=r"copied without a\.vectors\.arrow"):
        bamquery.open_fragment(tmp_path / "a.arrow")
    (tmp_path / "a.vectors.arrow").write_bytes((tmp_path / "a.arrow").read_bytes())
    with pytest.raises(CorruptionError, match="it is not a vectors file"):
        bamquery.open_fragment(tmp_path / "a.arrow")
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.raises(StorageError, match=r"whose names end in \.arrow: con\.load takes other files"):
        bamquery.open_fragment(tmp_path / "a.csv")
