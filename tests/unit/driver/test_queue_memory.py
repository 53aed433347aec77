"""Queue memory as Python sees it: its shape, and the pools it makes for another side's addresses."""

import struct
from typing import Any

import pytest

from bamquery._native import QueueMemory

PAIR_VIEW = struct.Struct("<8Q5IHxx")
POOL_VIEW = struct.Struct("<3Q3Ixxxx")
RINGS, POOL = 0x7000_0000_0000, 0x6000_0000_0000


def test_a_pool_is_made_for_the_addresses_of_the_side_that_runs() -> None:
    memory = QueueMemory(leased_pairs=2, shared_pairs=1, depth=8, slots=5, slot_bytes=16384, block_bytes=4096)
    view, contents = memory.make_pool(RINGS, POOL)
    assert len(contents) == memory.pool_bytes
    pairs, free, retired, leased, shared, flags_bytes = POOL_VIEW.unpack(view)
    assert (pairs, leased, shared, flags_bytes) == (POOL, 2, 1, memory.flags_bytes)
    assert POOL < free < retired < POOL + memory.pool_bytes
    assert struct.unpack_from("<I", contents, free - POOL) == (0b11,)
    flags_seen = set()
    for number in range(3):
        fields = PAIR_VIEW.unpack_from(contents, number * PAIR_VIEW.size)
        *rings, landing, landing_bus, lists_bus, flags = fields[:8]
        assert all(RINGS <= address < RINGS + memory.size for address in (*rings, landing))
        assert landing_bus - memory.address == landing - RINGS  # the controller has its own addresses
        assert memory.address <= lists_bus < memory.address + memory.size
        assert POOL < flags <= POOL + memory.pool_bytes - memory.flags_bytes
        assert fields[8:] == (8, 5, 16384, 24 + 8, 4096, number + 1)
        flags_seen.add(flags)
    assert len(flags_seen) == 3


def test_a_fresh_pool_has_seen_nothing() -> None:
    memory = QueueMemory(leased_pairs=1, shared_pairs=2, depth=4)
    view, contents = memory.make_pool(RINGS, POOL)
    assert memory.pool_statistics(view, contents) == [(0, 0, 0, 0, 0, False)] * 3


def test_statistics_are_read_from_the_flags() -> None:
    memory = QueueMemory(leased_pairs=0, shared_pairs=1, depth=4)
    view, contents = memory.make_pool(RINGS, POOL)
    (flags,) = struct.unpack_from("<Q", contents, 56)
    changed = bytearray(contents)
    at = flags - POOL
    struct.pack_into("<I", changed, at + 24, 1)  # broken
    struct.pack_into("<4I", changed, at + 32, 11, 12, 13, 14)  # doorbells, errors, late, missed
    struct.pack_into("<I", changed, at + 48 + 16 + 4, 3)  # slot 1, after 4 marks, is in quarantine
    assert memory.pool_statistics(view, bytes(changed)) == [(11, 12, 14, 13, 1, True)]


@pytest.mark.parametrize(
    ("shape", "named"),
    [
        ({"depth": 3}, "depth is 3"),
        ({"depth": 8, "slots": 8}, "slots is 8"),
        ({"slot_bytes": 1000}, "slot_bytes"),
        ({"block_bytes": 1024}, "block_bytes"),
        ({"leased_pairs": 0, "shared_pairs": 0}, "number of queue pairs"),
    ],
)
def test_a_shape_that_cannot_be_says_which(shape: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        QueueMemory(**shape)


def test_bytes_of_another_pool_are_refused() -> None:
    small, large = QueueMemory(depth=4), QueueMemory(depth=64)
    view, contents = small.make_pool(RINGS, POOL)
    with pytest.raises(ValueError, match="not the bytes of a pool"):
        large.pool_statistics(view, contents)
    with pytest.raises(ValueError, match="not the bytes of a pool"):
        small.pool_statistics(view[:-1], contents)
