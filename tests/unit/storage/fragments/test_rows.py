import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.database.database import Database
from bamquery.storage.fragments import rows as fragment_rows
from bamquery.storage.fragments.plain_size import column_bytes
from bamquery.storage.fragments.rows import ConcatenatedRows, FragmentRows, PermutedRows
from bamquery.storage.fragments.writer import BatchRows
from tests.unit.storage.sample_tables import append, batch, create

SIZES = [1, 31, 1023, 1024, 1025, 5000]
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("s", pa.large_string()),
        ("b", pa.bool_()),
        ("d", pa.dictionary(pa.int32(), pa.int64())),
    ]
)


def rows(count, seed):
    rng = np.random.default_rng(seed)
    numbers = pa.array(rng.integers(0, 9, count), mask=rng.random(count) < 0.2)
    texts = pa.array([None if rng.random() < 0.1 else "x" * int(rng.integers(0, 9)) for _ in range(count)])
    columns = [numbers, texts.cast(pa.large_string()), pa.array(rng.random(count) < 0.5)]
    return pa.record_batch([*columns, numbers.dictionary_encode()], schema=SCHEMA)


@pytest.fixture
def fragments(tmp_path):
    """One fragment of each size."""
    with Database.open(tmp_path / "db") as database:
        database.create_table("t", SCHEMA).commit()
        for seed, count in enumerate(SIZES):
            with database.table("t").append() as writer:
                writer.write(rows(count, seed))
                writer.commit()
        with database.table("t").snapshot() as snapshot:
            yield snapshot.fragments


def column(source, index):
    chunks = list(source.column(index))
    assert sum(map(len, chunks)) == source.rows
    return [value for chunk in chunks for value in chunk.to_pylist()]


@pytest.mark.parametrize("piece", [1, 10_000, 1 << 24])
def test_the_rows_of_fragments_in_their_order(fragments, monkeypatch, piece):
    monkeypatch.setattr(fragment_rows, "PIECE_BYTES", piece)
    for seed, fragment in enumerate(fragments):
        expected = rows(SIZES[seed], seed)
        source = FragmentRows(fragment)
        assert source.rows == SIZES[seed]
        for index in range(len(SCHEMA)):
            assert column(source, index) == expected.column(index).to_pylist()


@pytest.mark.parametrize("piece", [1, 10_000, 1 << 24])
@pytest.mark.parametrize("share", [1.0, 0.3, 0.001])
def test_any_order_of_any_of_the_rows(fragments, monkeypatch, piece, share):
    monkeypatch.setattr(fragment_rows, "PIECE_BYTES", piece)
    total = sum(SIZES)
    order = np.random.default_rng(7).permutation(total)[: max(1, int(share * total))]
    if piece == 1:
        order = order[:50]
    source = PermutedRows(fragments, order, lambda: False)
    assert source.rows == len(order)
    for index in range(len(SCHEMA)):
        everything = [
            v for seed, count in enumerate(SIZES) for v in rows(count, seed).column(index).to_pylist()
        ]
        assert column(source, index) == [everything[row] for row in order]


@pytest.mark.parametrize("unlike_others", [False, True])
def test_a_column_that_takes_too_much_is_gathered_in_parts(fragments, monkeypatch, unlike_others):
    """Also where the rows are longer than the fragments say of all: so much is found out on the way."""
    most, sizes = 6_000, []
    real = pa.concat_arrays

    def concat(pieces, **arguments):
        sizes.append(sum(piece.nbytes for piece in pieces))
        return real(pieces, **arguments)

    monkeypatch.setattr(pa, "concat_arrays", concat)
    if unlike_others:
        monkeypatch.setattr(fragment_rows, "column_bytes", lambda fragment, index: fragment.rows)
    order = np.random.default_rng(3).permutation(sum(SIZES))[:4000]
    source = PermutedRows(fragments, order.astype(np.uint32), lambda: False, most)
    for index in range(2):
        everything = [
            v for seed, count in enumerate(SIZES) for v in rows(count, seed).column(index).to_pylist()
        ]
        sizes.clear()
        assert column(source, index) == [everything[row] for row in order]
        assert len(sizes) > 4
        assert max(sizes) <= most
    one = PermutedRows(fragments, np.array([7], np.uint32), lambda: False, 0)
    assert column(one, 0) == [rows(31, 1).column(0)[6].as_py()]  # one row is gathered, whatever it takes


def test_sources_one_after_the_other(fragments):
    source = ConcatenatedRows(
        [FragmentRows(fragments[1]), BatchRows([rows(3, 9)]), FragmentRows(fragments[0])]
    )
    assert source.rows == 31 + 3 + 1
    parts = [rows(31, 1), rows(3, 9), rows(1, 0)]
    for index in range(len(SCHEMA)):
        assert column(source, index) == [v for part in parts for v in part.column(index).to_pylist()]


def test_the_bytes_of_a_column(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", range(3000))
        append(database, "t", [None] * 3000)
        with database.table("t").snapshot() as snapshot:
            assert column_bytes(snapshot.fragments[0], 0) == 24_000
            assert column_bytes(snapshot.fragments[1], 0) == 24_000 + 375
    assert batch([1]).num_rows == 1
