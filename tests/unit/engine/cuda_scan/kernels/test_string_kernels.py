"""Sums of 64 bits, checksums of vectors of any length, and bytes that are copied, against plain Python."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from bamquery import _native
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeMemory

SIZES = (1, 31, 32, 33, 1023, 1024, 1025, 5000)
LENGTHS = (*range(10), 63, 64, 65, 127, 128, 129, 192, 193, 1000, 8191, 8192, 8200, 8257, 8264, 30_000)


def strings(**fields: int) -> bytes:
    """A ScanStrings."""
    names = ("pairs", "offsets", "slots", "positions", "vectors", "places", "sizes")
    words = ("rows", "unit", "block_bytes", "vector_count")
    given = [fields.get(name, 0) for name in (*names, *words)]
    return struct.pack("<7Q4I", *given)


def launch(
    emulator: Emulator, file: str, name: str, *arguments: Any, grid: int = 3, block: int = 256
) -> None:
    kernel = emulator.kernel(file, name, ())
    packed = [
        a if isinstance(a, bytes) else int(getattr(a, "address", a or 0)).to_bytes(size, "little")
        for a, size in zip(arguments, kernel.sizes, strict=True)
    ]
    kernel.run(packed, grid, block)


def memory(data: Any, least: int = 16) -> FakeMemory:
    found = FakeMemory(max(np.asarray(data).nbytes, least))
    if np.asarray(data).nbytes:
        found.write(np.ascontiguousarray(data).view(np.uint8))
    return found


def view(held: FakeMemory, dtype: Any, count: int) -> Any:
    return held.bytes[: np.dtype(dtype).itemsize * count].view(dtype)


@pytest.mark.parametrize("rows", SIZES)
def test_lengths_are_added_up(emulator: Emulator, rows: int) -> None:
    random = np.random.default_rng(rows)
    lengths = random.integers(0, 1 << 34, rows) * (random.random(rows) < 0.7)
    ends = np.cumsum(lengths + 3)
    pairs = memory(np.stack([ends - lengths, ends], axis=1).astype(np.uint64))
    positions = memory(np.arange(rows, dtype=np.uint32))
    count = -(-rows // 1024)
    vectors = memory(np.zeros((count, 2), np.uint32))
    sizes = memory(np.array([1 << 62], np.uint64))
    sums, tiles, total, bad = (FakeMemory(8 * n) for n in (rows + 1, count, 1, 1))
    bad.clear()
    given = strings(
        pairs=pairs.address,
        positions=positions.address,
        vectors=vectors.address,
        sizes=sizes.address,
        rows=rows,
        vector_count=count,
    )
    launch(emulator, "strings/offsets", "scan_string_lengths", given, None, sums, tiles, bad)
    launch(emulator, "strings/offsets", "scan_string_tiles", tiles, count, total, grid=1, block=1024)
    launch(emulator, "strings/offsets", "scan_string_sums", sums, rows, tiles, total)
    assert view(bad, np.uint32, 1)[0] == 0
    assert view(sums, np.uint64, rows + 1).tolist() == [0, *np.cumsum(lengths).tolist()]
    assert view(total, np.uint64, 1)[0] == lengths.sum()


def test_many_tiles(emulator: Emulator) -> None:
    count = 2500
    values = np.arange(count, dtype=np.uint64) << np.uint64(33)
    tiles, total = memory(values), FakeMemory(8)
    launch(emulator, "strings/offsets", "scan_string_tiles", tiles, count, total, grid=1, block=1024)
    assert view(tiles, np.uint64, count).tolist() == (np.cumsum(values) - values).tolist()
    assert view(total, np.uint64, 1)[0] == values.sum()


def test_checksums_of_any_length(emulator: Emulator) -> None:
    """Each at another place: pieces begin on any byte."""
    random = np.random.default_rng(7)
    data = random.integers(0, 256, sum(LENGTHS) + 3 * len(LENGTHS)).astype(np.uint8)
    begins = np.cumsum([n + 3 for n in LENGTHS]) - np.array(LENGTHS) - 3
    held = memory(data)
    count = len(LENGTHS)
    ranges = memory(np.stack([begins, begins + np.array(LENGTHS)], axis=1).astype(np.uint64))
    places = memory(np.full(count, held.address, np.uint64))
    rows, slots = memory(np.full(count, 1024, np.uint16)), memory(np.zeros(count, np.uint32))
    pieces = [data[begin : begin + size] for begin, size in zip(begins, LENGTHS, strict=True)]
    crcs = np.array([_native.crc32c(piece) for piece in pieces], np.uint32)

    def first_bad(expected: Any) -> int:
        bad = FakeMemory(4)
        bad.clear()
        given = strings(slots=slots.address, vector_count=count)
        launch(
            *(emulator, "strings/crc", "scan_string_crc", given, ranges, places, rows, None),
            *(memory(expected), bad),
        )
        return int(view(bad, np.uint32, 1)[0])

    assert not first_bad(crcs)
    for number in range(count):
        wrong = crcs.copy()
        wrong[number] ^= 1
        assert first_bad(wrong) == count - number, LENGTHS[number]


def test_rows_without_bytes_between_others(emulator: Emulator) -> None:
    """Thousands of them, also where 16 bytes of the answer end in the middle of a row."""
    lengths = np.zeros(7000, np.int64)
    lengths[[0, 3, 4, 3500, 3501, 6990, 6999]] = [1, 15, 16, 17, 4096, 33, 5000]
    rows = len(lengths)
    sums = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    data = np.random.default_rng(3).integers(0, 256, int(sums[-1])).astype(np.uint8)
    held = memory(data)
    pairs = memory(np.stack([sums[:-1], sums[1:]], axis=1))
    to = FakeMemory(-(-int(sums[-1]) // 16) * 16)
    positions = memory(np.zeros(rows, np.uint32))
    given = strings(pairs=pairs.address, positions=positions.address, rows=rows, vector_count=1)
    places = memory(np.full(1, held.address, np.uint64))
    launch(emulator, "strings/bytes", "scan_string_bytes", given, memory(sums), None, None, places, to)
    assert (to.bytes[: len(data)] == data).all()
