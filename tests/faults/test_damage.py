"""Files that change behind our back: `check` names them, and reading them is an error, never an answer."""

import random

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.tables import writer as table_writer
from tests.selection.effort import effort
from tests.unit.storage.sample_tables import OtherProcess

ROWS = 5000
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "id": pa.array(np.arange(ROWS)),
        "real": pa.array(RNG.normal(size=ROWS), mask=RNG.random(ROWS) < 0.1),
        "text": pa.array([None if i % 13 == 0 else f"text {i}" for i in range(ROWS)], pa.large_string()),
        "flag": pa.array(RNG.random(ROWS) < 0.5),
        "code": pa.array([f"c{i % 50}" for i in range(ROWS)], pa.large_string()).dictionary_encode(),
        "price": pa.array(np.arange(ROWS)).cast(pa.decimal128(21, 2)),
    }
)


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 200_000)
    with Database.open(tmp_path / "db") as database:
        with database.create_table("t", TABLE.schema) as writer:
            for batch in TABLE.to_batches():
                writer.write(batch)
            writer.commit()
        yield database


def read(path):
    """Every value of the table, as a query reads them: opened afresh, whole vectors, verified."""
    with Database.open(path) as database, database.table("t").snapshot() as snapshot:
        columns = {name: [] for name in snapshot.schema.names}
        for fragment in snapshot.fragments:
            reader = MappedReader(fragment.path, fragment.data_bytes)
            vectors = np.arange(fragment.vector_count)
            for name, chunks in columns.items():
                chunks.append(FragmentReader(fragment, reader).stream(name, vectors, ReadCounters()))
            reader.close()
        return pa.table({name: pa.chunked_array(chunks) for name, chunks in columns.items()})


def plain(table):
    """Dictionaries decoded, so that equal rows are equal tables."""
    return table.set_column(4, "code", table["code"].cast(pa.large_string())).combine_chunks()


def assert_found(database, path, change):
    """The damage is named by `check`; reading gives the right rows or an error, never others."""
    original = path.read_bytes()
    path.write_bytes(change(bytearray(original)))
    try:
        report = database.check()
        assert path in {error.path for error in report.errors}, f"check did not find {path.name}"
        assert {error.path for error in report.errors} == {path}
        try:
            found = read(database.path)
        except StorageError as error:
            return error
        assert plain(found).equals(plain(TABLE)), f"{path.name}: other rows than were written"
        return None
    finally:
        path.write_bytes(original)


def arrow_files(database):
    return sorted(database.path.rglob("*.arrow"))


def flip(bit):
    def change(data):
        data[bit // 8] ^= 1 << bit % 8
        return data

    return change


def flips(database, count, seed):
    luck = random.Random(seed)
    noticed_by_reading = 0
    for path in [*arrow_files(database), *sorted(database.path.rglob("0*.json"))]:
        size = path.stat().st_size
        for _ in range(count):
            error = assert_found(database, path, flip(luck.randrange(8 * size)))
            noticed_by_reading += isinstance(error, CorruptionError)
    return noticed_by_reading


def test_the_rows_are_read_back(database):
    assert plain(read(database.path)).equals(plain(TABLE))


@pytest.mark.long
def test_flipped_bits_are_found_and_never_answered(database):
    assert flips(database, effort(8, 2000), seed=0) > effort(8, 2000)


@pytest.mark.long
def test_truncated_files_are_found_and_never_answered(database):
    luck = random.Random(2)
    for path in arrow_files(database):
        size = path.stat().st_size
        for kept in {0, 1, 8, 4096, size - 1, *(luck.randrange(size) for _ in range(effort(1, 100)))}:
            error = assert_found(database, path, lambda data, kept=kept: data[:kept])
            assert isinstance(error, CorruptionError)
            assert error.path == path


@pytest.mark.long
def test_pages_that_were_zeroed_or_swapped_are_found(database):
    for path in arrow_files(database):
        pages = path.stat().st_size // 4096
        for page in range(0, pages, effort(5, 1)):
            here = slice(4096 * page, 4096 * page + 4096)
            data = bytearray(path.read_bytes())

            def zero(data, here=here):
                data[here] = bytes(4096)
                return data

            if data[here].strip(b"\0"):
                assert_found(database, path, zero)
            there = slice(4096 * ((page + 1) % pages), 4096 * ((page + 1) % pages) + 4096)

            def swap(data, here=here, there=there):
                data[here], data[there] = data[there], data[here]
                return data

            if data[here] != data[there]:
                assert_found(database, path, swap)


def test_files_of_two_fragments_swapped_are_found(database):
    files = [path for path in arrow_files(database) if not path.name.endswith(".vectors.arrow")]
    first, second = (path.read_bytes() for path in files[:2])
    files[0].write_bytes(second)
    files[1].write_bytes(first)
    errors = database.check().errors
    assert {error.path for error in errors} == set(files[:2])
    with pytest.raises(CorruptionError):
        read(database.path)


def test_a_file_truncated_while_it_is_read_is_an_error_not_a_crash(database):
    with OtherProcess(database) as other:
        other.run("from tests.faults.test_damage import np, FragmentReader, MappedReader, ReadCounters")
        other.run("snapshot = database.table('t').snapshot()")
        other.run("fragment = snapshot.fragments[0]")
        other.run("reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))")
        path = arrow_files(database)[0]
        with path.open("r+b") as file:
            file.truncate(4096)
        other.begin("reader.stream('text', np.arange(fragment.vector_count), ReadCounters())")
        with pytest.raises(Exception, match=r"StorageError|CorruptionError"):
            other.answer()
        assert other.run("1 + 1") == 2
