"""All three ways of reading give the same values, through both kinds of reader, and count what they read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader, locate
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.readers.queue_reader import QueueReader
from tests.selection.effort import effort
from tests.unit.storage.random_columns import ENCODINGS, Sample, assert_same, samples, written

READERS = [MappedReader, QueueReader]


def selections(rows: int, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    everything = np.arange(rows, dtype=np.int64)
    return [
        everything[:0],
        everything,
        everything[-1:],
        everything[random.random(rows) < 0.5],
        everything[random.random(rows) < 0.005],
    ]


@pytest.mark.long
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("reader_type", READERS)
@settings(deadline=None, max_examples=effort(15, 500))
@given(sample=samples(), seed=st.integers(0, 1000), verify=st.booleans())
def test_every_strategy_gives_the_values(
    reader_type: type, encoding: str, sample: Sample, seed: int, verify: bool
) -> None:
    with written(sample.batches, encoding=encoding) as fragment:
        assert fragment.check() == []
        blocks = reader_type(fragment.path, fragment.data_bytes)
        reader = FragmentReader(fragment, blocks, verify)
        counters = ReadCounters()
        for name, expected in zip(sample.whole.schema.names, sample.whole.columns, strict=True):
            for rows in selections(fragment.rows, seed):
                wanted = expected.take(pa.array(rows))
                assert_same(reader.fetch_vectors(name, rows, counters), wanted)
                assert_same(reader.fetch_blocks(name, rows, counters), wanted)
            for vectors in selections(fragment.vector_count, seed):
                everything = np.arange(fragment.rows)
                wanted = expected.take(pa.array(everything[np.isin(everything // VECTOR_ROWS, vectors)]))
                assert_same(reader.stream(name, vectors, counters), wanted)
        assert counters.bytes == counters.blocks * blocks.block_size
        blocks.close()


@given(st.lists(st.integers(0, 20_000), unique=True))
def test_locate(chosen: list[int]) -> None:
    rows = np.array(sorted(chosen), np.int64)
    vectors, positions = locate(rows)
    assert vectors.tolist() == sorted({row // VECTOR_ROWS for row in chosen})
    end_to_end = np.concatenate([np.arange(VECTOR_ROWS) + v * VECTOR_ROWS for v in vectors] or [rows])
    assert end_to_end[positions].tolist() == rows.tolist()


@pytest.fixture
def fragment(tmp_path: Path):
    random = np.random.default_rng(3)
    nullable = pa.array(
        random.random(5000), mask=(np.arange(5000) // VECTOR_ROWS == 2) & (random.random(5000) < 0.5)
    )
    words = pa.array([f"word {i}" for i in range(5000)], pa.large_string())
    codes = pa.array(["x", "y"] * 2500, pa.large_string()).dictionary_encode()
    batch = pa.record_batch({"f": nullable, "s": words, "i": pa.array(np.arange(5000)), "d": codes})
    with written([batch]) as opened:
        yield opened


def test_validity_is_read_only_where_it_can_matter(fragment: Fragment) -> None:
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))

    def cost(rows: list[int]) -> int:
        counters = ReadCounters()
        reader.fetch_blocks("f", np.array(rows), counters)
        return counters.blocks

    assert cost([10]) == 1
    assert cost([2 * VECTOR_ROWS + 10]) == 2
    assert cost([10, 2 * VECTOR_ROWS + 10]) == 3
    counters = ReadCounters()
    reader.stream("f", np.array([0, 1]), counters)
    assert counters.blocks == 2 * VECTOR_ROWS * 8 // 512


def test_dictionaries_are_read_once(fragment: Fragment) -> None:
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))
    first, second = ReadCounters(), ReadCounters()
    reader.fetch_blocks("d", np.array([10]), first)
    reader.fetch_blocks("d", np.array([10]), second)
    assert (first.blocks, second.blocks) == (3, 1)  # offsets, bytes and the index; then the index


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize("reader_type", READERS)
def test_damaged_vectors_are_errors_that_name_them(fragment: Fragment, reader_type: type) -> None:
    place = fragment.layout.columns[fragment.column_index("i")]
    flip(fragment.path, place.values.offset + 8 * (2 * VECTOR_ROWS + 5))
    blocks = reader_type(fragment.path, fragment.data_bytes)
    reader = FragmentReader(fragment, blocks)
    reader.stream("i", np.array([0, 1, 3, 4]), ReadCounters())
    reader.fetch_vectors("i", np.array([0, 5000 - 1]), ReadCounters())
    for read in (
        lambda: reader.stream("i", np.arange(5), ReadCounters()),
        lambda: reader.fetch_vectors("i", np.array([1, 2 * VECTOR_ROWS + 900]), ReadCounters()),
    ):
        with pytest.raises(CorruptionError, match=r'f\.arrow: column "i", vector 2: its values') as raised:
            read()
        assert raised.value.path == fragment.path
    unverified = FragmentReader(fragment, blocks, verify=False)
    assert len(unverified.stream("i", np.arange(5), ReadCounters())) == 5000
    blocks.close()


@pytest.mark.parametrize(
    ("column", "buffer", "message"),
    [
        ("f", "validity", 'column "f", vector 2: its validity bits'),
        ("s", "offsets", 'column "s", vector 2: its offsets'),
        ("s", "values", 'column "s", vector 0: its bytes'),
        ("d", "dictionary", 'column "d": its dictionary'),
    ],
)
def test_every_buffer_is_verified(fragment: Fragment, column: str, buffer: str, message: str) -> None:
    place = fragment.layout.columns[fragment.column_index(column)]
    position = {
        "validity": lambda: place.validity.offset + 2 * VECTOR_ROWS // 8,
        "offsets": lambda: place.offsets.offset + 2 * VECTOR_ROWS * 8 + 80,
        "values": lambda: place.values.offset,
        "dictionary": lambda: place.dictionary.values.offset,
    }[buffer]()
    flip(fragment.path, position)
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))
    with pytest.raises(CorruptionError, match=message):
        reader.stream(column, np.arange(5), ReadCounters())


@pytest.mark.parametrize("position", range(0, 41 * 1024, 997))
def test_unverified_damage_is_an_error_or_a_wrong_value_but_no_crash(
    fragment: Fragment, position: int
) -> None:
    for name in ("s", "d", "f"):
        place = fragment.layout.columns[fragment.column_index(name)]
        extent = place.offsets or place.values
        with fragment.path.open("r+b") as file:
            file.seek(extent.offset + position % extent.length)
            file.write(b"\xff\x7f")
        reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes), verify=False)
        for read in (
            lambda reader=reader, name=name: reader.stream(name, np.arange(5), ReadCounters()),
            lambda reader=reader, name=name: reader.fetch_blocks(name, np.arange(5000), ReadCounters()),
        ):
            try:
                read().validate(full=name != "s")
            except CorruptionError as error:
                assert f'column "{name}"' in str(error)  # noqa: PT017


def test_rows_out_of_order_or_beyond_the_file_are_refused(fragment: Fragment) -> None:
    for reader_type in READERS:
        blocks = reader_type(fragment.path, fragment.data_bytes)
        reader = FragmentReader(fragment, blocks)
        with pytest.raises(ValueError, match=r"ascend"):
            reader.fetch_blocks("i", np.array([3, 2]), ReadCounters())
        with pytest.raises(ValueError, match=r"within the file"):
            reader.fetch_blocks("i", np.array([2**40]), ReadCounters())
        blocks.close()


@pytest.mark.parametrize("reader_type", READERS)
def test_a_closed_reader_says_so(fragment: Fragment, reader_type: type) -> None:
    blocks = reader_type(fragment.path, fragment.data_bytes)
    blocks.close()
    with pytest.raises(StorageError, match=r"the reader is closed"):
        FragmentReader(fragment, blocks).stream("i", np.arange(5), ReadCounters())
