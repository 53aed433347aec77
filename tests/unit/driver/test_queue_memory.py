"""Queue memory as Python sees it: its shape, and the pools it makes for another side's addresses."""

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bamquery._native import CpuQueueClient, ElsewhereController, QueueMemory
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError

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


SMALL = {"leased_pairs": 1, "shared_pairs": 1, "depth": 8, "slot_bytes": 16384}
READ_ONLY_AT = PAIR_VIEW.size - 2
REGISTERS_AT = PAIR_VIEW.size - 1


def lent(size: int = QueueMemory(**SMALL).size) -> mmap.mmap:
    return mmap.mmap(-1, size)


def test_it_lies_in_memory_that_somebody_else_has() -> None:
    memory = lent()
    address = np.frombuffer(memory, np.uint8).ctypes.data
    queues = QueueMemory(**SMALL, memory=memory, bus=0x5000, first_queue=3, read_only=True)
    assert (queues.address, queues.size) == (address, len(memory))
    _, contents = queues.make_pool(RINGS, POOL)
    fields = PAIR_VIEW.unpack_from(contents, PAIR_VIEW.size)
    assert fields[5] - 0x5000 == fields[4] - RINGS  # landing buffers, as both sides have them
    assert fields[12 + 1] == 4  # the second pair's number
    assert contents[PAIR_VIEW.size + READ_ONLY_AT] == 1
    assert contents[READ_ONLY_AT] == 1


def test_it_keeps_the_memory() -> None:
    memory = lent()
    queues = QueueMemory(**SMALL, memory=memory)
    with pytest.raises(BufferError):
        memory.close()
    del queues
    memory.close()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"memory": lent()[:-1]}, None),
        ({"memory": memoryview(lent())[:-1]}, r"a memory of this shape is \d+ bytes, and there are \d+"),
        ({"memory": memoryview(lent(1 << 20))[8:]}, "must begin on a multiple of 4,096"),
        ({"memory": lent(), "bus": 100}, "the bus address is 100, must be a multiple of 4,096"),
        ({"memory": lent(), "bus": (1 << 64) - 4096}, "so that the memory ends below"),
        ({"memory": lent(), "first_queue": 0}, "the first queue is 0"),
        ({"first_queue": 65534}, "the first queue is 65534"),
        ({"registers": True}, "registers are a drive's, and none are named"),
        ({"doorbells": bytearray(8)}, r"doorbells are 384 bytes, on a multiple of 4, and there are 8"),
    ],
)
def test_a_place_that_cannot_be_says_why(place: dict[str, Any], said: str | None) -> None:
    with pytest.raises(BufferError if said is None else ValueError, match=said):  # bytes cannot be written
        QueueMemory(**SMALL, **place)


@pytest.mark.parametrize("registers", [False, True])
def test_a_pool_has_a_drives_doorbells_where_the_other_side_has_them(*, registers: bool) -> None:
    doorbells = bytearray(4096)
    queues = QueueMemory(**SMALL, doorbells=doorbells, registers=registers, first_queue=2)
    stride = 4 << 4
    address = np.frombuffer(doorbells, np.uint8).ctypes.data
    assert queues.drive_doorbells == (address, 7 * stride + 4, registers)
    with pytest.raises(ValueError, match="say where the GPU has them"):
        queues.make_pool(RINGS, POOL)
    _, contents = queues.make_pool(RINGS, POOL, 0x700000)
    assert PAIR_VIEW.unpack_from(contents)[2:4] == (0x700000 + 4 * stride, 0x700000 + 5 * stride)
    assert contents[REGISTERS_AT] == registers
    with pytest.raises(ValueError, match="doorbells lie in it"):
        QueueMemory(**SMALL).make_pool(RINGS, POOL, 0x700000)
    assert QueueMemory(**SMALL).drive_doorbells is None


def test_a_controller_serves_what_another_map_of_a_file_is_driven_by(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_bytes(bytes(lent()))
    with path.open("r+b") as file:
        theirs, ours = (mmap.mmap(file.fileno(), 0) for _ in range(2))
    served = QueueMemory(**SMALL, memory=theirs)
    controller = SoftwareController(served)
    nsid = controller.add_memory(1 << 20)
    words = np.arange(1 << 17, dtype=np.uint64)
    np.frombuffer(controller.contents(nsid), np.uint64)[:] = words
    with controller, controller.activity():
        driven = QueueMemory(**SMALL, memory=ours, bus=served.address, read_only=True)
        elsewhere = ElsewhereController(nsid=nsid, block_bytes=512, blocks=2048)
        client = CpuQueueClient(driven, elsewhere)
        read = np.zeros(12800, np.uint64)  # by PRP lists that name the other map's addresses
        client.read(nsid, 7, read, 10.0)
        assert np.array_equal(read, words[7 * 64 :][: read.size])
        with pytest.raises(NvmeError, match="read failed"):
            client.read(nsid, 2048, read, 10.0)
        with pytest.raises(NvmeError, match="takes no writes"):
            client.write(nsid, 0, read, 10.0)
        assert elsewhere.shape_of(nsid) == (nsid, 512, 2048, 1 << 20, False, True, "")
        assert elsewhere.shape_of(nsid + 1) is None
        assert not elsewhere.stop(0.0)
        with pytest.raises(RuntimeError, match="who has it creates its queues"):
            elsewhere.recreate_queues()
