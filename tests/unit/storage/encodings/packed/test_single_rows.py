"""Blocks that single rows of packed columns take: each is read once, and plans know of about as many."""

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.parameters import escapes
from bamquery.storage.format.layout import LOAD_BYTES, VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters
from bamquery.storage.readers.opening import open_blocks
from tests.packed.parameters import payload_bytes
from tests.unit.storage.random_columns import written

ROWS = 256 * VECTOR_ROWS
BLOCK = 512


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    random = np.random.default_rng(3)
    whole = random.integers(0, 4000, ROWS)
    far = random.random(ROWS)
    fee = random.choice([0.0, 1.0, 1e9, 3e9], ROWS)
    return pa.record_batch(
        {
            "none": pa.array(whole),
            "few": pa.array(np.where(far < 0.01, whole << 40, whole)),
            "frequent": pa.array(fee),
            "raw": pa.array(random.normal(size=ROWS), mask=far < 0.1),
        }
    )


@pytest.fixture(scope="module")
def fragment(batch: pa.RecordBatch):
    with written([batch], encoding="packed") as opened:
        yield opened


def opened(fragment: Fragment, *, direct: bool) -> BlockReader:
    return open_blocks(fragment.path, fragment.data_bytes, direct=direct, block_size=BLOCK)


def chosen(rows: int) -> np.ndarray:
    return np.sort(np.random.default_rng(rows).choice(ROWS, rows, replace=False))


def packed(fragment: Fragment, name: str) -> PackedColumn:
    column = fragment.column(name)
    assert isinstance(column, PackedColumn)
    return column


class Recorder:
    """A reader that knows which blocks it was asked for, whatever it holds."""

    def __init__(self, reader: BlockReader) -> None:
        self.reader = reader
        self.rounds: list[set[int]] = []

    def gather(self, base, stride, width, rows, *rest):
        first, last = (base + rows) // BLOCK, (base + rows + width - 1) // BLOCK
        assert (stride, width) == (1, LOAD_BYTES)
        self.rounds.append({*first.tolist(), *last.tolist()})
        return self.reader.gather(base, stride, width, rows, *rest)


@pytest.mark.parametrize("direct", [False, True], ids=["mapped", "direct"])
@pytest.mark.parametrize("name", ["none", "few", "frequent", "raw"])
def test_a_block_is_read_once(fragment: Fragment, batch: pa.RecordBatch, name: str, *, direct: bool) -> None:
    column, rows, counters = packed(fragment, name), chosen(700), ReadCounters()
    recorder = Recorder(opened(fragment, direct=direct))
    size = recorder.reader.block_size
    if size != BLOCK:
        pytest.skip(f"direct reads take blocks of {size} bytes here")
    found = column.read_rows(recorder, rows, counters)
    assert found.equals(batch.column(name).take(pa.array(rows)))
    codes, *rest = recorder.rounds
    assert len(rest) == (name != "none")
    assert counters.blocks == len(codes.union(*rest))
    if rest:
        assert codes & rest[0], "otherwise there is nothing to hold"


@pytest.mark.parametrize("direct", [False, True], ids=["mapped", "direct"])
@pytest.mark.parametrize("name", ["none", "few", "frequent", "raw"])
@pytest.mark.parametrize("rows", [0, 1, 3000, 60_000])
def test_whole_vectors_give_the_same_rows(
    fragment: Fragment, batch: pa.RecordBatch, name: str, rows: int, *, direct: bool
) -> None:
    """As many blocks are read as for the vectors themselves, counted once, however many turns it takes."""
    column, taken, reader = packed(fragment, name), chosen(rows), opened(fragment, direct=direct)
    counters, expected = ReadCounters(), ReadCounters()
    found = column.fetch_rows(reader, taken, counters, verify=True)
    assert found.equals(batch.column(name).take(pa.array(taken)))
    column.read_packed(reader, np.unique(taken // VECTOR_ROWS), expected, verify=True)
    assert counters == expected


def test_a_damaged_vector_is_named_wherever_it_is_read(batch: pa.RecordBatch) -> None:
    """Raw vectors, of which a turn has eight; the damaged one begins the third, and rows of it are wanted."""
    with written([batch], encoding="packed") as fragment:
        column = packed(fragment, "raw")
        layout = fragment.layout.columns[fragment.column_index("raw")]
        with fragment.path.open("r+b") as file:
            file.seek(layout.values.offset + int(column.payload_starts[17]) + 4)
            file.write(b"damage")
        for direct in (False, True):
            reader = opened(fragment, direct=direct)
            rows = np.arange(0, ROWS, 100)
            with pytest.raises(CorruptionError, match=r'column "raw", vector 17: its values do not match'):
                column.fetch_rows(reader, rows, ReadCounters(), verify=True)
            assert len(column.fetch_rows(reader, rows, ReadCounters(), verify=False)) == len(rows)
            others = rows[rows // VECTOR_ROWS != 17]
            assert len(column.fetch_rows(reader, others, ReadCounters(), verify=True)) == len(others)


@pytest.mark.parametrize("rows", [[-1], [ROWS], [5, 5000, 4000], [5000, 5001, 3]])
def test_rows_that_cannot_be(fragment: Fragment, rows: list[int]) -> None:
    column = packed(fragment, "raw")
    with pytest.raises(CorruptionError, match='column "raw": '):
        column.fetch_rows(opened(fragment, direct=False), np.array(rows), ReadCounters(), verify=True)


@pytest.mark.parametrize("name", ["none", "few", "frequent", "raw"])
@pytest.mark.parametrize("rows", [1, 300, 3000, 60_000])
def test_footprints_are_about_what_is_read(fragment: Fragment, name: str, rows: int) -> None:
    column, taken = packed(fragment, name), chosen(rows)
    expected = column.rows_footprint(taken, np.unique(taken // VECTOR_ROWS), BLOCK)
    counters = ReadCounters()
    column.read_rows(opened(fragment, direct=False), taken, counters)
    near = pytest.approx if name != "none" else lambda count, **_: count
    assert expected.blocks == near(counters.blocks, rel=0.06, abs=1)
    assert expected.runs == near(counters.commands, rel=0.15, abs=1)


def test_shapes_say_whether_rows_refer(fragment: Fragment) -> None:
    everything = np.arange(fragment.vector_count)
    shapes = {name: packed(fragment, name).shape(everything) for name in ("none", "few", "frequent", "raw")}
    assert [shape.refers for shape in shapes.values()] == [False, True, True, True]
    assert [shape.block_rounds for shape in shapes.values()] == [1, 2, 2, 2]
    assert shapes["few"].referring == pytest.approx(0.01, rel=0.1)
    assert shapes["frequent"].referring == pytest.approx(0.5), "two of four codes"
    assert shapes["raw"].referring == 1


def test_columns_are_what_this_is_about(fragment: Fragment) -> None:
    few = packed(fragment, "few").parameters
    assert escapes(few).min() > 0
    assert few["bits"].max() < 20
    assert escapes(packed(fragment, "frequent").parameters).tolist() == [2] * fragment.vector_count
    raw = packed(fragment, "raw").parameters
    rows = np.full(fragment.vector_count, VECTOR_ROWS)
    assert payload_bytes(raw, rows, "float64").tolist() == [8 * VECTOR_ROWS + 128] * fragment.vector_count
