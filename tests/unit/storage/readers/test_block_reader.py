"""Both readers against a model: the same bytes, every block counted once a call, and no others."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery.storage.readers.block_reader import BlockReader, RangeMismatchError, ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.readers.queue_reader import QueueReader

SIZE = 300_001  # not a multiple of anything
CONTENTS = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8).tobytes()
BLOCK_SIZES = [512, 4096]
REQUEST = _native.LARGEST_READ


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "file"
    path.write_bytes(CONTENTS)
    return path


@pytest.fixture(params=["mapped", "direct"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def opened(file: Path, kind: str, block_size: int, size: int = SIZE) -> BlockReader:
    if kind == "mapped":
        return MappedReader(file, size, block_size)
    return QueueReader(file, size, block_size, depth=4)


def model(pieces: list[tuple[int, int]], block_size: int) -> tuple[int, set[int]]:
    """Runs of blocks, and the blocks, that byte ranges touch."""
    blocks = {
        block
        for offset, length in pieces
        if length
        for block in range(offset // block_size, (offset + length - 1) // block_size + 1)
    }
    return sum(block - 1 not in blocks for block in blocks), blocks


def assert_counted(counters: ReadCounters, pieces: list[tuple[int, int]], block_size: int) -> None:
    runs, blocks = model(pieces, block_size)
    assert counters == ReadCounters(runs, len(blocks), len(blocks) * block_size)


ranges = st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 20_000)), max_size=30).map(
    lambda pieces: sorted((offset, min(length, SIZE - offset)) for offset, length in pieces)
)


@settings(deadline=None, max_examples=150)
@given(pieces=ranges, block_size=st.sampled_from(BLOCK_SIZES), checked=st.booleans())
def test_read_ranges(
    file: Path, kind: str, pieces: list[tuple[int, int]], block_size: int, checked: bool
) -> None:
    reader = opened(file, kind, block_size)
    counters = ReadCounters()
    expected = [CONTENTS[offset : offset + length] for offset, length in pieces]
    crcs = np.array([_native.crc32c(piece) for piece in expected], np.uint32) if checked else None
    offsets, lengths = (np.array([piece[i] for piece in pieces], np.int64) for i in (0, 1))
    data = reader.read_ranges(offsets, lengths, counters, crcs)
    assert data.to_pybytes() == b"".join(expected)
    assert_counted(counters, pieces, block_size)
    reader.close()


@settings(deadline=None, max_examples=150)
@given(
    rows=st.lists(st.integers(0, 15_000), unique=True, max_size=300),
    width=st.sampled_from([1, 2, 3, 4, 8, 16]),
    base=st.integers(0, 9000),
    block_size=st.sampled_from(BLOCK_SIZES),
)
def test_gather(file: Path, kind: str, *, rows: list[int], width: int, base: int, block_size: int) -> None:
    rows.sort()
    reader = opened(file, kind, block_size)
    counters = ReadCounters()
    pieces = [(base + width * row, width) for row in rows]
    data = reader.gather(base, width, width, np.array(rows, np.int64), counters)
    assert data.to_pybytes() == b"".join(CONTENTS[o : o + n] for o, n in pieces)
    assert_counted(counters, pieces, block_size)
    assert _native.count_row_blocks(base, width, width, np.array(rows, np.int64), block_size) == (
        counters.commands,
        counters.blocks,
    )
    reader.close()


starts = st.lists(st.integers(0, SIZE - 16), max_size=60)


@settings(deadline=None, max_examples=100)
@given(
    rounds=st.lists(starts, min_size=2, max_size=3),
    width=st.sampled_from([1, 8, 16]),
    block_size=st.sampled_from(BLOCK_SIZES),
)
def test_held_blocks_are_not_read_again(
    file: Path, kind: str, rounds: list[list[int]], width: int, block_size: int
) -> None:
    """Rows of every round may begin, lie or end in blocks of those before."""
    reader = opened(file, kind, block_size)
    held: set[int] = set()
    blocks = _native.HeldBlocks()
    for round_ in map(sorted, rounds):
        counters = ReadCounters()
        data = reader.gather(0, 1, width, np.array(round_, np.int64), counters, blocks)
        assert data.to_pybytes() == b"".join(CONTENTS[at : at + width] for at in round_)
        new = model([(at, width) for at in round_], block_size)[1] - held
        held |= new
        runs = sum(block - 1 not in new for block in new)
        assert counters == ReadCounters(runs, len(new), len(new) * block_size)
    reader.close()


def test_blocks_are_held_for_one_file(file: Path, kind: str) -> None:
    held, rows = _native.HeldBlocks(), np.zeros(1, np.int64)
    one, other = opened(file, kind, 512), opened(file, kind, 4096)
    one.gather(0, 8, 8, rows, ReadCounters(), held)
    with pytest.raises(ValueError, match="another file"):
        other.gather(0, 8, 8, rows, ReadCounters(), held)


@settings(deadline=None, max_examples=150)
@given(
    rows=st.lists(st.integers(0, 8 * (SIZE - 9000) - 1), unique=True, max_size=300),
    base=st.integers(0, 9000),
    block_size=st.sampled_from(BLOCK_SIZES),
)
def test_gather_bits(file: Path, kind: str, rows: list[int], base: int, block_size: int) -> None:
    rows.sort()
    reader = opened(file, kind, block_size)
    counters = ReadCounters()
    data = reader.gather_bits(base, np.array(rows, np.int64), counters)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    assert bits[: len(rows)].tolist() == [CONTENTS[base + row // 8] >> row % 8 & 1 for row in rows]
    assert not bits[len(rows) :].any()
    assert_counted(counters, [(base + row // 8, 1) for row in rows], block_size)
    reader.close()


def test_long_runs_are_cut_into_requests(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "long"
    contents = np.random.default_rng(1).bytes(5 * REQUEST + 4096)
    path.write_bytes(contents)
    reader = opened(path, kind, 512, len(contents))
    counters = ReadCounters()
    vectors = np.arange(0, len(contents), 8192, dtype=np.int64)
    lengths = np.minimum(len(contents) - vectors, 8192)
    crcs = _native.strided_crcs(contents, 8192)
    data = reader.read_ranges(vectors, lengths, counters, crcs)
    assert data.to_pybytes() == contents
    assert counters.bytes == len(contents)
    assert counters.commands == (6 if kind == "direct" else 1)
    reader.close()


@pytest.mark.parametrize("damaged", [[0], [7], [3, 4, 9], [9]])
def test_the_first_wrong_checksum_is_named(file: Path, kind: str, damaged: list[int]) -> None:
    reader = opened(file, kind, 512)
    lengths = np.array([8192, 8192, 8192, 8192, 100, 0, 5000, 3, 8192, 8192], np.int64)
    offsets = np.cumsum(lengths) - lengths
    crcs = np.array(
        [_native.crc32c(CONTENTS[o : o + n]) for o, n in zip(offsets, lengths, strict=True)], np.uint32
    )
    reader.read_ranges(offsets, lengths, ReadCounters(), crcs)
    crcs[damaged] ^= 1
    with pytest.raises(RangeMismatchError) as raised:
        reader.read_ranges(offsets, lengths, ReadCounters(), crcs)
    assert raised.value.index == damaged[0]
    reader.close()


@pytest.mark.parametrize(
    ("offsets", "lengths"),
    [([10, 5], [1, 1]), ([0], [SIZE + 1]), ([SIZE], [1]), ([-1], [1]), ([0], [-1]), ([2**62], [2**62])],
)
def test_reads_outside_the_file_or_out_of_order_are_refused(
    file: Path, kind: str, offsets: list[int], lengths: list[int]
) -> None:
    target = bytearray(SIZE * 2)
    native = (
        _native.open_mapped(file, SIZE, 512)
        if kind == "mapped"
        else _native.open_queue(file, SIZE, 512, 4, "auto", 30.0)
    )
    with pytest.raises(ValueError, match=r"ascend and lie within the file|too small"):
        native.read_ranges(np.array(offsets, np.int64), np.array(lengths, np.int64), target)


@pytest.mark.parametrize("block_size", [0, 1, 511, 513, 1000])
def test_impossible_block_sizes_are_refused(file: Path, block_size: int) -> None:
    with pytest.raises(ValueError, match=r"power of two"):
        MappedReader(file, SIZE, block_size)


def test_an_empty_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "empty"
    path.touch()
    reader = opened(path, kind, 512, 0)
    counters = ReadCounters()
    assert reader.read_ranges(np.array([0]), np.array([0]), counters).size == 0
    assert counters == ReadCounters()
    reader.close()


def test_counters_add_up() -> None:
    total = ReadCounters(1, 2, 1024)
    total += ReadCounters(3, 4, 2048)
    assert total == ReadCounters(4, 6, 3072)
