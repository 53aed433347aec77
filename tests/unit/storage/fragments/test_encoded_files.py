"""What an encoded fragment is in Arrow's eyes, and which of its columns are encoded."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.format.layout import ALIGNMENT, CELLS_ALIGNMENT, LOAD_BYTES
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from tests.unit.storage.random_columns import written

ROWS = 5000


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    random = np.random.default_rng(5)
    number = random.integers(0, 1000, ROWS)
    return pa.record_batch(
        {
            "small": pa.array(number),
            "holes": pa.array(number * 60, mask=random.random(ROWS) < 0.2),
            "noise": pa.array(random.random(ROWS)),
            "names": pa.array([f"name {i % 7}" for i in range(ROWS)], pa.large_string()),
            "texts": pa.array([f"text {i}" for i in range(ROWS)], pa.large_string()),
            "blobs": pa.array(
                [random.bytes(int(n)) for n in random.integers(700, 900, ROWS)], pa.large_binary()
            ),
            "codes": pa.array(["x", "y"] * (ROWS // 2), pa.large_string()).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def fragment(batch: pa.RecordBatch):
    with written([batch], encoding="auto") as opened:
        yield opened


def test_columns_are_encoded_where_that_is_smaller(fragment: Fragment) -> None:
    encoded = [column.encoding is not None for column in fragment.layout.columns]
    assert encoded == [True, True, False, True, True, False, True]
    assert fragment.check() == []


def test_arrow_sees_a_row_for_each_vector(fragment: Fragment, batch: pa.RecordBatch) -> None:
    with pa.OSFile(str(fragment.path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    table.validate(full=True)
    assert table.num_rows == fragment.vector_count
    for name in ("noise", "blobs"):
        lists = table.column(name).combine_chunks()
        assert lists.flatten().equals(batch.column(name))
        assert [len(one) for one in lists] == [1024] * 4 + [904]
    metadata = table.schema.field("holes").metadata
    assert metadata[b"ARROW:extension:name"] == b"bamquery.packed"
    said = json.loads(metadata[b"ARROW:extension:metadata"])
    assert (said["type"], said["divisor"]) == ("int64", 60)
    names = table.column("names").combine_chunks().field("values")
    assert names.flatten().to_pylist() == [f"name {i}" for i in range(7)]
    payloads = table.column("small").combine_chunks()
    packing = stored_buffers(fragment, "small").packing
    assert packing is not None
    starts = 16 * packing.parameters["offset"].astype(np.int64)
    assert starts.tolist() == np.cumsum([0, *(len(one.as_py()) for one in payloads)])[:-1].tolist()


def test_an_encoded_fragment_is_smaller(fragment: Fragment, batch: pa.RecordBatch) -> None:
    small = fragment.layout.columns[0].values.length
    assert small <= ROWS * 10 // 8 + 5 * 160  # ten bits a value, parts of 128 rows
    buffers = stored_buffers(fragment, "small")
    assert (buffers.bits, buffers.validity, buffers.offsets) == (64, None, None)


def test_buffers_are_aligned_and_zeros_follow_on_payloads(fragment: Fragment) -> None:
    contents = fragment.path.read_bytes()
    for column in fragment.layout.columns:
        assert all(extent.offset % ALIGNMENT == 0 for extent in column.buffers)
        assert all(extent.offset % CELLS_ALIGNMENT == 0 for extent in column.ends)
        if column.encoding is not None:
            assert contents[column.values.end : column.values.end + LOAD_BYTES] == bytes(LOAD_BYTES)
    assert len(contents) % ALIGNMENT == 0


def test_strings_of_a_dictionary_are_strings(fragment: Fragment, batch: pa.RecordBatch) -> None:
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))
    rows = np.array([0, 17, 4999])
    found = reader.fetch_blocks("names", rows, ReadCounters())
    assert found.type == pa.large_string()
    assert found.to_pylist() == [f"name {i % 7}" for i in rows]
    encoding = fragment.layout.columns[3].encoding
    assert encoding is not None
    assert encoding.plain_bytes == 6 * ROWS


def test_footprints_are_what_is_read(fragment: Fragment) -> None:
    reader = MappedReader(fragment.path, fragment.data_bytes)
    rows = np.flatnonzero(np.random.default_rng(1).random(ROWS) < 0.01)
    vectors = np.unique(rows // 1024)
    for name in ("small", "holes"):
        column = fragment.column(name)
        for estimate, read in (
            (column.rows_footprint(rows, vectors, 512), lambda c, k=column: k.read_rows(reader, rows, c)),
            (
                column.vectors_footprint(vectors, 512),
                lambda c, k=column: k.read_vectors(reader, vectors, c, verify=True),
            ),
        ):
            counters = ReadCounters()
            read(counters)
            assert (estimate.runs, estimate.blocks) == (counters.commands, counters.blocks)


def test_columns_are_plain_again_where_nothing_is_smaller(batch: pa.RecordBatch) -> None:
    kept = batch.select(["noise", "blobs"])
    with written([kept], encoding="auto") as fragment:
        assert not fragment.layout.is_encoded
        assert fragment.check() == []
        with pa.OSFile(str(fragment.path), "rb") as file:
            assert pa.ipc.open_file(file).read_all().equals(pa.Table.from_batches([kept]))


@pytest.mark.parametrize("what", ["cells", "lists"])
def test_ends_that_are_others_are_found(batch: pa.RecordBatch, what: str) -> None:
    with written([batch.select(["codes", "texts"])], encoding="auto") as fragment:
        encoding = fragment.layout.columns[0].encoding
        assert encoding is not None
        extent = getattr(encoding, what)
        damage(fragment.path, extent.offset + 8)
        (error,) = fragment.check()
        assert isinstance(error, CorruptionError)
        assert 'column "codes"' in str(error)


def damage(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
