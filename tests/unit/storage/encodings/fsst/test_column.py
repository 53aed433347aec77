"""Compressed columns in files: what is read, what is said of them, what is found when they are damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.format.layout import LOAD_BYTES, FragmentLayout
from bamquery.storage.fragments.column_storage import column_storage, vector_forms
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from tests.unit.storage.encodings.fsst.columns import sentences
from tests.unit.storage.random_columns import written

ROWS = 5000


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    random = np.random.default_rng(5)
    blobs = [b"%d%s" % (row, text) for row, text in enumerate(sentences(ROWS))]
    return pa.record_batch(
        {
            "words": pa.array([f"{i} furiously ironic deposits {i}" for i in range(ROWS)], pa.large_string()),
            "blobs": pa.array(blobs, pa.large_binary(), mask=random.random(ROWS) < 0.2),
            "noise": pa.array([random.bytes(20) for _ in range(ROWS)], pa.large_binary()),
            "number": pa.array(np.arange(ROWS)),
        }
    )


@pytest.fixture(scope="module")
def fragment(batch: pa.RecordBatch) -> Iterator[Fragment]:
    with written([batch], encoding="packed") as opened:
        yield opened


def reader_of(fragment: Fragment, *, verify: bool = True) -> FragmentReader:
    return FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes), verify)


def test_every_way_to_read(fragment: Fragment, batch: pa.RecordBatch) -> None:
    assert fragment.check() == []
    reader, counters = reader_of(fragment), ReadCounters()
    rows = np.flatnonzero(np.random.default_rng(1).random(ROWS) < 0.02)
    vectors = np.array([0, 2, 4])
    of_vectors = np.flatnonzero(np.isin(np.arange(ROWS) // 1024, vectors))
    for name in ("words", "blobs", "noise"):
        expected = batch.column(name)
        assert isinstance(fragment.column(name), FsstColumn)
        assert reader.stream(name, vectors, counters).equals(expected.take(pa.array(of_vectors)))
        assert reader.fetch_vectors(name, rows, counters).equals(expected.take(pa.array(rows)))
        assert reader.fetch_blocks(name, rows, counters).equals(expected.take(pa.array(rows)))
        assert reader.fetch_blocks(name, rows[:0], counters).equals(expected[:0])


def test_a_row_is_a_small_read_of_ends_and_one_of_bytes(fragment: Fragment) -> None:
    reader, counters = reader_of(fragment), ReadCounters()
    reader.fetch_blocks("words", np.array([3000]), counters)
    assert counters.commands == 2
    assert counters.blocks <= 4  # each may lie across two
    place = fragment.layout.columns[0]
    assert place.validity is None
    assert place.offsets is None


def test_footprints(fragment: Fragment) -> None:
    reader = MappedReader(fragment.path, fragment.data_bytes)
    rows = np.flatnonzero(np.random.default_rng(1).random(ROWS) < 0.01)
    vectors = np.unique(rows // 1024)
    for name in ("words", "blobs"):
        stored, counters = fragment.column(name), ReadCounters()
        stored.read_vectors(reader, vectors, counters, verify=True)
        whole = stored.vectors_footprint(vectors, reader.block_size)
        assert (whole.runs, whole.blocks) == (counters.commands, counters.blocks)
        counters = ReadCounters()
        stored.read_rows(reader, rows, counters)
        single = stored.rows_footprint(rows, vectors, reader.block_size)
        assert single.blocks == pytest.approx(counters.blocks, rel=0.3)
        shape = stored.shape(vectors)
        lengths = 8 * fragment.layout.columns[fragment.column_index(name)].values.length
        assert sum(buffer.bits for buffer in shape.buffers) == pytest.approx(lengths / ROWS, rel=0.1)
        assert (shape.rounds, shape.form) == (2, "fsst")


def test_what_is_said_of_them(fragment: Fragment, batch: pa.RecordBatch) -> None:
    words, noise = column_storage(fragment, "words"), column_storage(fragment, "noise")
    assert (words.encoding, noise.encoding) == ("fsst", "fsst")
    assert vector_forms(fragment, "words") == {"symbols": 5}
    assert vector_forms(fragment, "noise") == {"bytes": 5}
    assert words.bits is not None
    assert words.plain_bits is not None
    assert words.bits < words.plain_bits / 2
    assert words.plain_bytes == 8 * (ROWS + 1) + sum(len(text) for text in batch["words"].to_pylist())
    buffers = stored_buffers(fragment, "words")
    assert buffers.compression is not None
    assert buffers.packing is None


def test_arrow_sees_payloads(fragment: Fragment) -> None:
    with pa.OSFile(str(fragment.path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    table.validate(full=True)
    assert table.num_rows == 5
    assert json.loads(table.schema.field("words").metadata[b"ARROW:extension:metadata"])["encoding"] == "fsst"
    sizes = [len(one.as_py()) for one in table.column("words").combine_chunks()]
    stored = fragment.column("words")
    assert isinstance(stored, FsstColumn)
    assert stored.payload_starts.tolist() == np.cumsum([0, *sizes])[:-1].tolist()
    contents, end = fragment.path.read_bytes(), fragment.layout.columns[0].values.end
    assert contents[end : end + LOAD_BYTES] == bytes(LOAD_BYTES)


def test_symbols_are_part_of_the_layout(fragment: Fragment) -> None:
    text = fragment.layout.to_json()
    assert FragmentLayout.from_json(text, fragment.path) == fragment.layout
    encoding = fragment.layout.columns[0].encoding
    assert encoding is not None
    assert encoding.symbols is not None
    assert len(encoding.symbols) <= 2296
    members = json.loads(text)
    for wrong in ("", "AA", "AgE=", "Af8=", "gibberish", 5):
        members["columns"][0]["packed"]["symbols"] = wrong
        with pytest.raises(CorruptionError, match="layout cannot be read"):
            tuple(FragmentLayout.from_json(json.dumps(members), fragment.path).columns)


def test_damage_is_found(batch: pa.RecordBatch) -> None:
    with written([batch.select(["words"])], encoding="packed") as fragment:
        extent = fragment.layout.columns[0].values
        data = bytearray(fragment.path.read_bytes())
        data[extent.offset + extent.length // 2] ^= 1
        fragment.path.write_bytes(data)
        (error,) = fragment.check()
        assert 'column "words", vector 2: its values do not match' in str(error)
        with pytest.raises(CorruptionError, match="vector 2"):
            reader_of(fragment).stream("words", np.arange(5), ReadCounters())


def test_rows_whose_codes_are_none_are_an_error(batch: pa.RecordBatch) -> None:
    with written([batch.select(["words"])], encoding="packed") as fragment:
        extent = fragment.layout.columns[0].values
        data = bytearray(fragment.path.read_bytes())
        data[extent.offset : extent.end] = b"\xff" * extent.length
        fragment.path.write_bytes(data)
        for verify in (True, False):
            with pytest.raises(CorruptionError, match='column "words"'):
                reader_of(fragment, verify=verify).fetch_vectors("words", np.array([7, 9]), ReadCounters())
        with pytest.raises(CorruptionError, match='column "words": vector 0 of strings cannot be'):
            reader_of(fragment).fetch_blocks("words", np.array([7, 9]), ReadCounters())


def test_strings_of_few_values_keep_their_dictionary_and_long_ones_stay_plain() -> None:
    few = pa.array([f"text {i % 7}" for i in range(ROWS)], pa.large_string())
    long = pa.array([str(i) * 3000 for i in range(20)] * 1, pa.large_string())
    with written([pa.record_batch({"few": few})], encoding="packed") as fragment:
        assert column_storage(fragment, "few").encoding == "dictionary"
    with written([pa.record_batch({"long": long})], encoding="packed") as fragment:
        assert column_storage(fragment, "long").encoding == "plain"
