"""What scans share and keep: given back, bounded, and whole again after a fault; over an emulated GPU."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bamquery.driver.gpu.device import GpuKernel
from bamquery.errors import CancelledError, GpuError, KernelError
from bamquery.storage.files.mapped_files import MAPPED_FILES
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import check, compare, every_type, run
from tests.stored import stored
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with stored(tmp_path_factory.mktemp("table") / "db", every_type(9000, nulls="pick"), (4000,)) as snapshot:
        yield snapshot


@pytest.fixture
def resources(device: Any) -> Iterator[Any]:
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    found = resources_of(device.session)
    yield found
    device.session.gpu.cuda.busy_streams.clear()
    device.session.gpu.busy = False
    device.session.deadline_s = 60.0
    found.close_parked()


def answers(device: Any, table: Snapshot) -> None:
    predicates = [compare(table, "pick", "less", 0.3)]
    check(device, table, ("f64", "i32"), predicates, strategy="blocks", zone_maps=False, reader="queues")


def streams(resources: Any) -> set[object]:
    return {stream for found in resources._streams.values() for stream in found}


@pytest.mark.parametrize("which", ["of libcudf", "of loads"])
def test_a_stream_that_does_not_end_is_an_error_and_the_next_query_answers(
    device: Any, resources: Any, table: Snapshot, which: str
) -> None:
    answers(device, table)
    before = streams(resources)
    cuda = device.session.gpu.cuda
    cuda.busy_streams |= {device.session.driver_stream} if which == "of libcudf" else before
    device.session.deadline_s = 0.05
    with pytest.raises(GpuError, match=r"did not end on cuda:0 within 0\.05 s: a kernel or a copy"):
        answers(device, table)
    assert len(resources._parked) == 1
    assert streams(resources) != before  # the scan's own are kept from others
    cuda.busy_streams.clear()
    answers(device, table)
    assert not resources._parked
    assert streams(resources) >= before


def test_a_scan_that_was_told_to_stop_is_closed_behind_that(
    device: Any, resources: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words that stop kernels are written to memory that must not be given back before."""
    from bamquery.engine.cuda.scan import scan
    from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory

    told: list[object] = []

    def stop(memory: ChunkMemory, stream: Any) -> None:
        told.append(stream)
        device.session.gpu.cuda.busy_streams.add(stream)

    def cancelled(*_: object) -> None:
        raise CancelledError("the query was cancelled")

    monkeypatch.setattr(ChunkMemory, "stop", stop)
    monkeypatch.setattr(scan.ChunkRun, "run", cancelled)
    monkeypatch.setattr(scan, "_SETTLE_S", 0.01)
    with pytest.raises(CancelledError):
        run(device, table, ("f64",), [compare(table, "pick", "less", 0.3)])
    assert told
    assert not set(told) & streams(resources)
    assert len(resources._parked) == 1
    device.session.gpu.cuda.busy_streams.clear()
    resources.close_parked()
    assert not resources._parked
    assert set(told) <= streams(resources)


def test_rings_that_lost_commands_are_replaced_while_a_scan_uses_them(
    device: Any, resources: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(device, table)
    shape, broken = next(iter(resources._rings.items()))
    closed: list[str] = []
    monkeypatch.setattr(broken.queues, "close", lambda settle_s: closed.append("queues"))
    assert resources.lend_rings(shape, "a scan") is broken
    broken.failure(1, 1, 0, 1, 0x7C0)  # a deadline that was missed
    fresh = resources.lend_rings(shape, "another scan")
    assert fresh is not broken
    assert not closed  # a scan that has not noticed yet still uses them
    answers(device, table)
    resources.give_back_rings(broken, "a scan")
    assert closed == ["queues"]
    assert resources._replaced == []
    resources.give_back_rings(fresh, "another scan")


def test_a_file_is_open_as_long_as_a_scan_reads_it(device: Any, resources: Any, table: Snapshot) -> None:
    answers(device, table)
    shape, rings = next(iter(resources._rings.items()))
    fragment = table.fragments[0]
    resources.lend_rings(shape, "a scan")
    nsid = rings.namespace(fragment, "a scan")
    MAPPED_FILES.forget(fragment.path.parent)
    assert rings.namespace(fragment, "a scan") == nsid
    resources.give_back_rings(rings, "a scan")
    MAPPED_FILES.forget(fragment.path.parent)
    assert str(fragment.path) not in rings._files
    answers(device, table)


def test_files_below_a_folder_that_is_vacuumed_are_unpinned(
    device: Any, resources: Any, table: Snapshot
) -> None:
    run(device, table, ("f64",), [compare(table, "pick", "less", 0.3)], strategy="stream")
    assert resources.maps.bytes
    MAPPED_FILES.forget(Path("/elsewhere"))
    assert resources.maps.bytes
    MAPPED_FILES.forget(table.fragments[0].path.parent)
    assert resources.maps.bytes == 0


def test_pages_that_cannot_be_let_go_yet_count_until_they_are(gpu: FakeGpu, table: Snapshot) -> None:
    from bamquery.engine.cuda.scan.resources.pinned_files import PinnedFiles

    fragment = table.fragments[0]
    extents = [column.values for column in fragment.layout.columns if column.values.length > 8000][:3]
    pages = [-(-extent.length // 4096) * 4096 for extent in extents]
    maps = PinnedFiles(gpu, limit=sum(pages[:2]) + 4096)  # type: ignore[arg-type]
    pins = gpu.pins
    for extent in extents[:2]:
        found = maps.take(fragment, extent)
        assert not isinstance(found, str)
        maps.give_back(found)
    gpu.busy = True
    assert "would be pinned" in str(maps.take(fragment, extents[2]))
    assert (maps.bytes, gpu.pins) == (sum(pages[:2]), pins + 2)
    gpu.busy = False
    while gpu.retired:
        gpu.retired.pop()()
    assert gpu.pins < pins + 2
    assert not isinstance(maps.take(fragment, extents[2]), str)
    maps.close()
    assert (maps.bytes, maps.leaving, gpu.pins) == (0, 0, pins)


def test_pinned_blocks_are_kept_up_to_a_limit(scan_modules: None, gpu: FakeGpu) -> None:
    from bamquery.engine.cuda.scan.resources.host_blocks import HostBlocks

    blocks = HostBlocks(gpu, most_unused=1 << 20)  # type: ignore[arg-type]
    pins = gpu.pins
    small = [blocks.take(100) for _ in range(4)]
    large = blocks.take(8 << 20)
    blocks.give_back(large)
    assert gpu.pins == pins + 4  # more than is kept
    for block in small:
        blocks.give_back(block)
    assert blocks.unused_bytes == 4 * (64 << 10)
    assert blocks.take(1) in small
    middle = [blocks.take(512 << 10) for _ in range(3)]
    for block in middle:
        blocks.give_back(block)
    assert blocks.unused_bytes == 1 << 20  # the smaller ones were used longer ago


def test_a_board_grows(device: Any, resources: Any) -> None:
    from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard

    board = CounterBoard(device.session, resources.blocks)
    slots = [board.take(200_000) for _ in range(4)] + [board.take(1 << 20), board.take(4)]
    for number, slot in enumerate(slots):
        assert ctypes.c_uint32.from_address(slot.address).value == 0
        ctypes.c_uint32.from_address(slot.address).value = number + 1
    board.copy_back()
    assert [board.word(slot) for slot in slots] == [1, 2, 3, 4, 5, 6]
    board.close()


def test_a_scan_whose_counters_take_several_sheets(
    device: Any, resources: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.resources import counter_board as board

    monkeypatch.setattr(board, "_BYTES", 64)
    answers(device, table)


SIZES = (8, 4, 24)


class Recorder:
    """A driver that reads parameters where a launch says that they are."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, ...]] = []
        self.buffers: set[int] = set()

    def __call__(self, action: str, function: str, *arguments: Any) -> None:
        assert function == "cuLaunchKernel"
        self.buffers.add(arguments[9])
        places = (ctypes.c_uint64 * len(SIZES)).from_address(arguments[9])
        self.seen.append(tuple(ctypes.string_at(at, n) for at, n in zip(places, SIZES, strict=True)))


@pytest.fixture
def launch(scan_modules: None) -> Any:
    from bamquery.engine.cuda.launcher import Launcher

    recorder = Recorder()
    gpu: Any = type("Gpu", (), {"cuda": recorder})()
    launcher, kernel = Launcher(gpu, threading.RLock()), GpuKernel("k", None, SIZES)

    def start(*arguments: Any) -> Recorder:
        launcher.start(kernel, *arguments, grid=1, stream=None)
        return recorder

    return start


def test_each_launch_has_its_own(launch: Any) -> None:
    first, second = bytes(range(24)), bytes(range(24, 48))
    launch(1 << 40, 7, first)
    seen = launch(None, 9, second).seen
    assert seen == [
        (struct.pack("<Q", 1 << 40), struct.pack("<I", 7), first),
        (bytes(8), struct.pack("<I", 9), second),
    ]


def test_each_thread_has_a_buffer(launch: Any) -> None:
    launch(1, 2, bytes(24))
    launch(1, 2, bytes(24))
    other = threading.Thread(target=launch, args=(3, 4, bytes(24)))
    other.start()
    other.join(60)
    assert len(launch(1, 2, bytes(24)).buffers) == 2


@pytest.mark.parametrize(
    "arguments",
    [(1, 2, bytes(16)), (1, 2, bytes(32)), (1, 2, 3), (1, bytes(24)), (1, 2, None), (1, -1, bytes(24))],
)
def test_what_does_not_fit_is_refused(launch: Any, arguments: Any) -> None:
    launch(1, 2, bytes(24))
    with pytest.raises((KernelError, struct.error)):
        launch(*arguments)
