"""Blocks that single rows of packed columns take: each is read once, and plans know of about as many."""

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.parameters import escapes
from bamquery.storage.format.layout import LOAD_BYTES, VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters
from bamquery.storage.readers.opening import open_blocks
from tests.packed_parameters import payload_bytes
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
