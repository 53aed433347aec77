"""What is written is what other Arrow readers and we read back, whatever the types, nulls and chunks."""

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from bamquery.errors import CancelledError, StorageError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.format.layout import ALIGNMENT
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.writer import BatchRows, PassingRows, write_fragment
from tests.selection.effort import effort
from tests.unit.storage.random_columns import (
    ALL_TYPES,
    PLAIN_TYPES,
    Sample,
    assert_same,
    column,
    samples,
    written,
)

# Polars has no counterpart for these; that is its limit, not the files'.
POLARS_TYPES = [
    *PLAIN_TYPES,
    pa.dictionary(pa.int32(), pa.large_string()),
]


@pytest.mark.long
@settings(deadline=None, max_examples=effort(40, 1000))
@given(samples())
def test_pyarrow_reads_what_was_written(sample: Sample) -> None:
    with written(sample.batches) as fragment:
        for source in (str(fragment.path), pa.memory_map(str(fragment.path))):
            with pa.ipc.open_file(source) as reader:
                assert reader.schema.equals(sample.whole.schema)
                batch = reader.get_batch(0)
                assert reader.num_record_batches == 1
                batch.validate(full=True)
                for found, expected in zip(batch.columns, sample.whole.columns, strict=True):
                    assert_same(found, expected)


@pytest.mark.long
@settings(deadline=None, max_examples=effort(20, 500))
@given(samples(types=POLARS_TYPES))
def test_polars_reads_what_was_written(sample: Sample) -> None:
    with written(sample.batches) as fragment:
        for frame in (pl.read_ipc(fragment.path), pl.scan_ipc(fragment.path).collect()):
            expected = pl.from_arrow(pa.Table.from_batches([sample.whole]))
            assert frame.shape == expected.shape
            # Categories of equal strings are equal, but not of one type across frames.
            plain = pl.col(pl.Categorical).cast(pl.String)
            found = frame.with_columns(plain)
            for left, right in zip(found, expected.with_columns(plain), strict=True):
                assert left.equals(right, check_dtypes=True, null_equal=True)


@pytest.mark.long
@settings(deadline=None, max_examples=effort(20, 500))
@given(samples())
def test_every_buffer_is_aligned_and_alone(sample: Sample) -> None:
    with written(sample.batches) as fragment:
        extents = [extent for extent, _ in fragment.layout.metadata]
        for place in fragment.layout.columns:
            assert all(extent.offset % ALIGNMENT == 0 for extent in place.extents)
            extents += place.extents
        extents.sort(key=lambda extent: (extent.offset, extent.end))
        for before, after in itertools.pairwise(extents):
            assert before.end <= after.offset
        assert fragment.data_bytes % ALIGNMENT == 0
        assert fragment.check() == []
        assert extents[-1].end == fragment.data_bytes == fragment.path.stat().st_size
        # What Arrow readers see agrees with the layout.
        with pa.memory_map(str(fragment.path)) as file:
            start = file.read_buffer(1).address
            batch = pa.ipc.open_file(file).get_batch(0)
            for array, place in zip(batch.columns, fragment.layout.columns, strict=True):
                if array.null_count:
                    assert array.buffers()[0].address - start == place.validity.offset
                if place.values.length and not pa.types.is_dictionary(array.type):
                    assert array.buffers()[-1].address - start == place.values.offset


@pytest.mark.long
@settings(deadline=None, max_examples=effort(15, 500))
@given(samples())
def test_equal_columns_make_equal_files(sample: Sample) -> None:
    """However they are cut, and whatever lies under their nulls."""
    rows = sample.whole.num_rows
    clean = [
        pa.array(array.to_pylist(), array.type) if not pa.types.is_floating(array.type) else array
        for array in sample.whole.columns
        if not pa.types.is_dictionary(array.type) and not _beyond_python(array.type)
    ]
    if not clean:
        return
    kept = [
        i
        for i, array in enumerate(sample.whole.columns)
        if not pa.types.is_dictionary(array.type) and not _beyond_python(array.type)
    ]
    ours = [batch.select(kept) for batch in sample.batches]
    theirs = pa.RecordBatch.from_arrays(clean, schema=ours[0].schema)
    with written(ours) as one, written([theirs.slice(0, rows // 2), theirs.slice(rows // 2)]) as other:
        assert one.path.read_bytes() == other.path.read_bytes()
        assert one.entry == other.entry


def _beyond_python(type_: pa.DataType) -> bool:
    """Types with values that Python's cannot hold."""
    return pa.types.is_temporal(type_)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_long_chunks_and_short_ones(type_: pa.DataType) -> None:
    """Long enough that chunks go past the staging buffer, in all orders of long and short."""
    random = np.random.default_rng(7)
    rows = 300_000
    array = column(type_, 4096, random)
    array = pa.concat_arrays([array] * (rows // 4096 + 1)).slice(5, rows)
    batch = pa.RecordBatch.from_arrays([array], ["c"])
    edges = [0, 1, 70_000, 70_001, 135_900, 136_192, 136_193, 290_000, rows]
    batches = [batch.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    with written(batches) as fragment, pa.ipc.open_file(str(fragment.path)) as reader:
        assert_same(reader.get_batch(0).column(0), array)
        assert fragment.check() == []


def test_one_string_larger_than_the_stage() -> None:
    strings = ["a", "b" * (9 << 20), "", None, "c"] * 3
    batch = pa.record_batch({"s": pa.array(strings, pa.large_string())})
    with written([batch]) as fragment, pa.ipc.open_file(str(fragment.path)) as reader:
        assert reader.get_batch(0).column(0).to_pylist() == strings
        assert fragment.check() == []


def test_dictionaries_of_batches_become_one() -> None:
    type_ = pa.dictionary(pa.int8(), pa.large_string())
    batches = [
        pa.record_batch({"d": pa.array(words, pa.large_string()).dictionary_encode().cast(type_)})
        for words in (["b", "a", None], ["c", "a"], ["a", "unused"], [])
    ]
    kept = [*batches[:2], batches[2].slice(0, 1), batches[3]]
    with written(kept) as fragment, pa.ipc.open_file(str(fragment.path)) as reader:
        array = reader.get_batch(0).column(0)
        assert array.to_pylist() == ["b", "a", None, "c", "a", "a"]
        assert array.dictionary.to_pylist() == ["a", "b", "c"]


def test_too_many_dictionary_values_are_refused_by_name(tmp_path: Path) -> None:
    type_ = pa.dictionary(pa.int8(), pa.large_string())
    batches = []
    for start in (0, 100):
        words = pa.array([f"{i:03}" for i in range(start, start + 100)], pa.large_string())
        batches.append(pa.record_batch({"code": words.dictionary_encode().cast(type_)}))
    with pytest.raises(StorageError, match=r'column "code".*200 different values.*wider indexes'):
        write_fragment(POSIX, tmp_path, "f", batches[0].schema, BatchRows(batches))


@pytest.mark.parametrize("claimed", [1, 3])
def test_a_source_must_keep_its_word(tmp_path: Path, claimed: int) -> None:
    batch = pa.record_batch({"x": pa.array([1, 2])})

    class Liar(BatchRows):
        @property
        def rows(self) -> int:
            return claimed

    with pytest.raises(StorageError, match=r'column "x"'):
        write_fragment(POSIX, tmp_path, "f", batch.schema, Liar([batch]))


def test_a_source_of_another_type_is_refused(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": pa.array([1, 2])})
    with pytest.raises(StorageError, match=r'column "x".*int64.*int32'):
        write_fragment(POSIX, tmp_path, "f", pa.schema([("x", pa.int32())]), BatchRows([batch]))


def test_types_that_tables_cannot_hold_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.string())])
    with pytest.raises(StorageError, match=r'column "x" has type string, stored as large_string'):
        write_fragment(POSIX, tmp_path, "f", schema, BatchRows([]))
    assert list(tmp_path.iterdir()) == []


def test_passing_rows_free_what_was_read() -> None:
    rows = 10_000

    def batch(number: int) -> pa.RecordBatch:
        values = pa.array(range(number * rows, (number + 1) * rows))
        return pa.record_batch({"n": values, "code": values.cast(pa.string()).dictionary_encode()})

    source = PassingRows([batch(number) for number in range(4)])
    assert source.rows == 4 * rows
    held = pa.total_allocated_bytes()
    read = source.column(0)
    for number in range(4):
        chunk = next(read)
        assert chunk[0].as_py() == number * rows
        assert pa.total_allocated_bytes() <= held - number * rows * 8
    assert next(read, None) is None
    codes = [[chunk[0].as_py() for chunk in source.column(1)] for _ in range(2)]
    assert codes == [[str(number * rows) for number in range(4)]] * 2


def test_no_rows_can_pass() -> None:
    assert PassingRows([]).rows == 0


def test_damaged_string_offsets_are_refused(tmp_path: Path) -> None:
    offsets = np.array([0, 5, 3, 8], np.int64)
    array = pa.Array.from_buffers(
        pa.large_string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"abcdefgh")]
    )
    batch = pa.RecordBatch.from_arrays([array], ["s"])
    with pytest.raises(StorageError, match=r'column "s".*offsets'):
        write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))


@pytest.mark.parametrize(
    "bad", [b"\x80", b"na\xefve", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xe2\x82"]
)
def test_strings_that_are_not_utf8_are_refused(tmp_path: Path, bad: bytes) -> None:
    good = "naïve ✓ \U0001f695 \ud7ff \ue000 \U0010ffff".encode()
    binary = pa.array([good] * 2000 + [None, bad, good], pa.large_binary())
    strings = pa.Array.from_buffers(pa.large_string(), len(binary), binary.buffers())
    batch = pa.RecordBatch.from_arrays([strings.slice(1)], ["name"])
    with pytest.raises(
        StorageError, match=r'column "name".*row 2000 is not UTF-8: read the column as binary'
    ):
        write_fragment(POSIX, tmp_path, "plain", batch.schema, BatchRows([batch]))
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), strings.slice(2000))
    batch = pa.RecordBatch.from_arrays([codes], ["name"])
    with pytest.raises(StorageError, match=r'column "name".*UTF8'):
        write_fragment(POSIX, tmp_path, "dictionary", batch.schema, BatchRows([batch]))
    accepted = pa.record_batch({"name": pa.array([good.decode()], pa.large_string())})
    write_fragment(POSIX, tmp_path, "good", accepted.schema, BatchRows([accepted]))


def test_writing_can_be_cancelled(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": pa.array(range(10))})
    with pytest.raises(CancelledError):
        write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]), cancelled=lambda: True)


def test_an_existing_fragment_is_never_overwritten(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": pa.array(range(10))})
    write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))
    before = (tmp_path / "f.arrow").read_bytes()
    with pytest.raises(FileExistsError):
        write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))
    assert (tmp_path / "f.arrow").read_bytes() == before


def test_the_vectors_file_is_an_arrow_file_too(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": pa.array([1.5, None, float("nan")] * 1000), "s": ["a", "b", "c"] * 1000})
    batch = batch.cast(pa.schema([("x", pa.float64()), ("s", pa.large_string())]))
    entry = write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))
    frame = pl.read_ipc(tmp_path / "f.vectors.arrow")
    assert frame.shape == (3, 2)
    first = frame.row(0, named=True)["x"]
    assert (first["min"], first["max"], first["null_count"], first["nan_count"]) == (1.5, 1.5, 341, 341)
    metadata = pa.ipc.open_file(str(tmp_path / "f.vectors.arrow")).schema.metadata
    assert json.loads(metadata[b"bamquery.layout"])["rows"] == entry.rows == 3000


def test_memory_does_not_grow_with_the_fragment(tmp_path: Path) -> None:
    """Chunks are written as they pass: none is kept."""
    chunk = pa.array(np.arange(1 << 20, dtype=np.int64))
    alive: list[int] = []

    class Passing:
        rows = 16 << 20

        def column(self, index: int):
            for _ in range(16):
                alive.append(pa.total_allocated_bytes())
                yield pa.concat_arrays([chunk.slice(0, 1), chunk.slice(1)])

    before = pa.total_allocated_bytes()
    schema = pa.schema([("x", pa.int64())])
    entry = write_fragment(POSIX, tmp_path, "f", schema, Passing())
    assert max(alive) - before < 3 * chunk.nbytes
    assert (
        Fragment.open(tmp_path, entry, schema).zone_map.column_statistics("x").maximum.as_py()
        == (1 << 20) - 1
    )
