"""Kernels over pages of several drives, as fibers over software controllers; tests/gpu has it on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bamquery._native import QueueMemory
from bamquery.driver.array import Striped
from bamquery.driver.bench import gpu_block, gpu_pages
from bamquery.driver.bench.gpu_array import run_array_gpu
from bamquery.driver.bench.gpu_block import run_block_gpu
from bamquery.driver.bench.gpu_cache import run_cache_gpu
from bamquery.driver.bench.served import serve
from bamquery.driver.bench.workload import ArrayWorkload, BlockWorkload, CacheWorkload
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.gpu.array import GpuArray, GpuPageCache
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError
from tests.native.programs import mutated
from tests.unit.driver.gpu.emulated_gpu import EmulatedGpu, Memory

PAGE = 4096
UNRECOVERED_READ = 0x281
WRITE_FAULT = 0x280
DRIVES = [(512,), (512, 4096), (4096, 512, 512), (512, 4096, 512)]


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> EmulatedGpu:
    return EmulatedGpu(tmp_path_factory.mktemp("kernels"))


@contextmanager
def drives_of(gpu: Any, blocks: Sequence[int], **shape: Any) -> Iterator[list[GpuQueues]]:
    """Queues of software controllers with these LBA sizes, each with a namespace of random bytes."""
    with ExitStack() as stack:
        made = []
        for number, block in enumerate(blocks):
            memory = QueueMemory(
                **{"leased_pairs": 0, "shared_pairs": 2, "depth": 8, "slot_bytes": PAGE} | shape,
                block_bytes=block,
            )
            controller = stack.enter_context(SoftwareController(memory, threads=1))
            contents = controller.contents(controller.add_memory((12 + number) * PAGE, block))
            np.frombuffer(contents, np.uint8)[:] = np.random.default_rng(number).integers(
                0, 256, len(contents), np.uint8
            )
            queues = stack.enter_context(GpuQueues(gpu, memory, controller.activity))
            queues.controller = controller  # type: ignore[attr-defined]
            made.append(queues)
        yield made


def controllers(drives: Sequence[GpuQueues]) -> list[SoftwareController]:
    return [one.controller for one in drives]  # type: ignore[attr-defined]


def contents_of(drives: Sequence[GpuQueues]) -> list[np.ndarray]:
    return [np.frombuffer(one.contents(1), np.uint8) for one in controllers(drives)]


def joined(drives: Sequence[GpuQueues], order: Sequence[int], stripe: int) -> np.ndarray:
    """The address space, byte by byte."""
    contents = contents_of(drives)
    if len(order) == 1:
        return contents[order[0]].view(np.uint64).copy()
    rows = min(map(len, contents)) // stripe
    parts = [contents[drive][row * stripe : (row + 1) * stripe] for row in range(rows) for drive in order]
    return np.concatenate(parts).view(np.uint64)


def gather(array: GpuArray, places: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Elements at these places; every fifth is left out, and -1."""
    cache = array.cache
    gpu: Any = cache.queues[0].gpu
    given, out = Memory(places.nbytes), Memory(places.nbytes, 0xFF)
    given.write(places)
    grid, block = shape
    first, *others = cache.queues
    launch = first.start(
        gpu.load_elements("gather_elements"),
        array.view_memory,
        given,
        out,
        len(places),
        grid=grid,
        block=block,
        others=others,
    )
    launch.wait(60)
    found: np.ndarray = out.read_array(np.uint64)
    return found


def check_gather(gpu: EmulatedGpu, blocks: Sequence[int]) -> None:
    random = np.random.default_rng(len(blocks))
    for stripe in (PAGE, 4 * PAGE):
        order = [int(one) for one in random.permutation(len(blocks))]
        with (
            drives_of(gpu, blocks) as drives,
            GpuPageCache(drives, controllers(drives), pages=5) as cache,
        ):
            wanted = joined(drives, order, stripe)
            space = Striped([(drive, 1) for drive in order], stripe)
            with GpuArray(cache, space, "u8", len(wanted)) as array:
                for shape in ((1, 32), (2, 96)):
                    places = random.integers(0, len(wanted), 700)
                    found = gather(array, places, shape)
                    asked = np.arange(len(places)) % 5 != 4
                    cache.check()
                    assert (found[asked] == wanted[places][asked]).all()
                    assert (found[~asked] == 2**64 - 1).all()
            reads = [one.statistics().reads for one in controllers(drives)]
            assert all(reads), reads
            assert sum(reads) == cache.statistics()["misses"]


@pytest.mark.parametrize("blocks", DRIVES)
def test_elements_come_from_the_drive_that_has_them(gpu: EmulatedGpu, blocks: Sequence[int]) -> None:
    check_gather(gpu, blocks)


@pytest.mark.parametrize("blocks", DRIVES)
def test_writes_reach_their_drives(gpu: EmulatedGpu, blocks: Sequence[int]) -> None:
    order = list(range(len(blocks)))[::-1]
    with (
        drives_of(gpu, blocks) as drives,
        GpuPageCache(drives, controllers(drives), pages=7) as cache,
    ):
        before = joined(drives, order, PAGE)
        space = Striped([(drive, 1) for drive in order], PAGE)
        with GpuArray(cache, space, "u8", len(before), writable=True) as array:
            first, *others = drives
            kernel: Any = gpu.load_elements("double_elements")
            first.run(kernel, array.view_memory, grid=2, block=64, others=others)
            cache.flush()
        assert (joined(drives, order, PAGE) == 2 * before).all()


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_drive_that_fails_is_named_and_the_others_are_read(gpu: EmulatedGpu, broken: int) -> None:
    order = [2, 0, 1]
    with (
        drives_of(gpu, (512, 4096, 512)) as drives,
        GpuPageCache(drives, controllers(drives), pages=8) as cache,
        GpuArray(cache, Striped([(drive, 1) for drive in order], PAGE), "u8", 36 * 512) as array,
    ):
        wanted = joined(drives, order, PAGE)
        # Its first pages come, the others do not.
        lbas = PAGE // drives[broken].memory.block_bytes
        faulty = Fault("error", first_lba=4 * lbas, blocks=1 << 20, status=UNRECOVERED_READ)
        controllers(drives)[broken].set_faults([faulty])
        places = np.random.default_rng(3).integers(0, len(wanted), 1000)
        found = gather(array, places, (2, 64))
        with pytest.raises(NvmeError, match=f"drive {broken}, namespace 1, LBA") as caught:
            cache.check()
        assert (caught.value.drive, caught.value.sct, caught.value.sc) == (broken, 2, 0x81)
        assert caught.value.lba >= 4 * lbas
        pages = places // 512
        lost = (np.array(order)[pages % 3] == broken) & (pages // 3 >= 4)
        asked = np.arange(len(places)) % 5 != 4
        assert (found[asked & ~lost] == wanted[places][asked & ~lost]).all()
        assert (found[asked & lost] == 0).all()
        for queues in drives:
            assert all(pair.quarantined == 0 and not pair.broken for pair in queues.statistics())


def test_a_drive_that_takes_no_writes_keeps_the_others_from_nothing(gpu: EmulatedGpu) -> None:
    with (
        drives_of(gpu, (512, 512, 4096)) as drives,
        GpuPageCache(drives, controllers(drives), pages=64) as cache,
        GpuArray(cache, Striped([(0, 1), (1, 1), (2, 1)], PAGE), "u8", 36 * 512, writable=True) as array,
    ):
        before = [contents.copy() for contents in contents_of(drives)]
        first, *others = drives
        kernel: Any = gpu.load_elements("double_elements")
        first.run(kernel, array.view_memory, grid=1, block=64, others=others)
        controllers(drives)[1].set_faults([Fault("error", opcode=Opcode.WRITE, status=WRITE_FAULT)])
        with pytest.raises(NvmeError, match="drive 1"):
            cache.flush()
        for number, (old, new) in enumerate(zip(before, contents_of(drives), strict=True)):
            words = old[: 12 * PAGE].view(np.uint64)
            assert (new[: 12 * PAGE].view(np.uint64) == (words if number == 1 else 2 * words)).all()
        controllers(drives)[1].set_faults([])
        cache.flush()
        assert (
            contents_of(drives)[1][: 12 * PAGE].view(np.uint64) == 2 * before[1][: 12 * PAGE].view("u8")
        ).all()


def test_what_cannot_be_is_refused(gpu: EmulatedGpu) -> None:
    with drives_of(gpu, (512, 4096)) as drives, drives_of(gpu, (512,), shared_pairs=0, leased_pairs=1) as odd:
        served = controllers(drives)
        cache = GpuPageCache(drives, served, pages=4)
        for space, count, words in (
            (Striped([]), 1, "takes a namespace"),
            (Striped([(0, 1), (2, 1)], PAGE), 1, "no drive 2 among 2"),
            (Striped([(0, 1), (1, 9)], PAGE), 1, "no namespace 9"),
            (Striped([(0, 1), (0, 1)], PAGE), 1, "none of them twice"),
            (Striped([(0, 1), (1, 1)], 3 * PAGE), 1, "a power of two of the cache's pages"),
            (Striped([(0, 1), (1, 1)], PAGE), 24 * PAGE + 1, "within the namespaces"),
            (1, 12 * PAGE + 1, "within the namespace,"),
        ):
            with pytest.raises(ValueError, match=words):
                GpuArray(cache, space, "u1", count)
        for queues, controlled, words in (
            ([], [], "1 to 256 drives"),
            (drives, served[:1], "not of 2 queues and 1 controllers"),
            (drives, served[::-1], "of another controller"),
            (odd, controllers(odd), "no shared pairs"),
        ):
            with pytest.raises(ValueError, match=words):
                GpuPageCache(queues, controlled, pages=4)
        for page_bytes, words in ((2048, "whole blocks"), (8192, "do not fit slots")):
            with pytest.raises(ValueError, match=words):
                GpuPageCache(drives, served, pages=4, page_bytes=page_bytes)


MUTATIONS: dict[str, tuple[str, str, str]] = {
    "all pages come from the first drive": (
        "queues/drive_queues.hpp",
        "return shared_pair(pools_[drive], hint_);",
        "return shared_pair(pools_[drive * 0], hint_);",
    ),
    "an LBA is the first drive's": (
        "queues/drive_queues.hpp",
        "lba_bytes(uint32_t drive) const { return pools_[drive].pairs[0].block_bytes; }\n\n"
        "  template <typename Group>\n"
        "  BAMQUERY_CORE uint32_t sweep(Group group) const {\n"
        "    uint32_t swept = 0;\n"
        "    for (uint32_t drive = 0; drive < drives_; ++drive) swept += at(drive).sweep(group);\n"
        "    return swept;\n"
        "  }\n\n"
        " private:\n"
        "  const QueuePoolView* pools_;\n"
        "  uint32_t drives_;\n"
        "  uint32_t hint_;",
        "lba_bytes(uint32_t) const { return pools_[0].pairs[0].block_bytes; }\n"
        "  template <typename Group>\n"
        "  BAMQUERY_CORE uint32_t sweep(Group) const { return 0; }\n\n"
        " private:\n"
        "  const QueuePoolView* pools_;\n"
        "  uint32_t drives_;\n"
        "  uint32_t hint_;",
    ),
    "a page is known by its number alone": (
        "page_cache/page_slot.hpp",
        "return (static_cast<uint64_t>(drive) << kNsidBits | nsid) << kNumberBits | number;",
        "return static_cast<uint64_t>(nsid) << kNumberBits | number;",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_wrong_drive_is_found_out(name: str, tmp_path: Path) -> None:
    header, right, wrong = MUTATIONS[name]
    headers = mutated(tmp_path / "headers", header, right, wrong)
    with pytest.raises((AssertionError, NvmeError)):
        check_gather(EmulatedGpu(tmp_path, headers), (4096, 512))


@pytest.fixture
def emulated_bench(gpu: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bamquery bench` opens GPUs: each of them is that one."""
    for module in (gpu_pages, gpu_block):
        monkeypatch.setattr(module, "Gpu", lambda _ordinal: gpu)


def quiet(_path: str, _seconds: float, _operations: int, _moved: int) -> None:
    """A progress that says nothing."""


SMALL: dict[str, Any] = {
    "device": "cuda:0",
    "seconds": 5e-3,  # Of the fake's clock: five launches.
    "pairs": 2,
    "depth": 64,
    "controller_threads": 1,
}
PAGED: dict[str, Any] = SMALL | {"cache_bytes": 200 << 12, "stripe_bytes": 1 << 14}


@pytest.mark.usefixtures("emulated_bench")
@pytest.mark.parametrize("drives", [1, 2, 3])
def test_benchmarks_of_pages_and_elements(drives: int) -> None:
    extent = drives << 20
    found = [
        *run_cache_gpu(CacheWorkload(**PAGED, extent_bytes=extent, controllers=drives), quiet),
        *run_cache_gpu(CacheWorkload(**PAGED, extent_bytes=extent, controllers=drives, warm=True), quiet),
        *run_array_gpu(ArrayWorkload(**PAGED, extent_bytes=extent, controllers=drives), quiet),
        *run_array_gpu(
            ArrayWorkload(**PAGED, extent_bytes=extent, controllers=drives, operation="scan"), quiet
        ),
    ]
    for figures in found:
        assert figures.operations > 0
        assert figures.right, figures.notes
        assert figures.verified
        if drives == 1:
            assert figures.drives == ()
            continue
        assert len(figures.drives) == drives
        assert not any(drive.errors for drive in figures.drives)
        assert sum(drive.commands for drive in figures.drives) == figures.counters["misses"]


@pytest.mark.usefixtures("emulated_bench")
@pytest.mark.parametrize("drives", [1, 2, 3])
@pytest.mark.parametrize("write_share", [0.0, 0.5])
def test_benchmarks_of_blocks(drives: int, write_share: float) -> None:
    workload = BlockWorkload(
        **SMALL | {"pairs": 3}, extent_bytes=drives << 20, controllers=drives, write_share=write_share
    )
    (figures,) = run_block_gpu(workload, quiet)
    assert figures.operations > 0
    assert figures.right, figures.notes
    assert figures.verified
    assert len(figures.drives) == (drives if drives > 1 else 0)
    for drive in figures.drives:
        assert drive.commands
        assert drive.doorbell_writes
        assert drive.pairs == 3 // drives


@pytest.mark.usefixtures("emulated_bench")
@pytest.mark.parametrize("fault", ["error", "lose"])
def test_a_leased_drive_that_fails_is_named_and_the_others_are_drained(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[GpuQueues] = []

    def serve_badly(share: Any, memory: QueueMemory, **options: Any) -> Any:
        return faulty(serve(share, memory, **options), fault if share.seed == 1 + 2 * 1 else "")

    monkeypatch.setattr(gpu_pages, "serve", serve_badly)
    queues_of = gpu_pages.GpuQueues

    def keep(*arguments: Any) -> GpuQueues:
        made.append(queues_of(*arguments))
        return made[-1]

    seen: list[list[Any]] = []
    close = GpuQueues.close

    def look_and_close(queues: GpuQueues, settle_s: float = 1.0) -> None:
        seen.append(queues.statistics())
        close(queues, settle_s)

    monkeypatch.setattr(gpu_pages, "GpuQueues", keep)
    monkeypatch.setattr(GpuQueues, "close", look_and_close)
    workload = ArrayWorkload(**PAGED | {"controllers": 3}, extent_bytes=3 << 20, deadline_seconds=0.3)
    (figures,) = run_array_gpu(workload, quiet)
    assert figures.errors > 0
    assert figures.verified is not False
    assert any("drive 1, namespace 1" in note for note in figures.notes), figures.notes
    lost = [sum(pair.quarantined for pair in pairs) for pairs in reversed(seen)]  # Last made, first closed.
    assert lost[0] == lost[2] == 0
    assert (lost[1] > 0) == (fault == "lose")
    failed = [drive.errors for drive in figures.drives]
    assert failed[0] == failed[2] == 0
    assert failed[1] > 0


@contextmanager
def faulty(served: Any, fault: str) -> Iterator[Any]:
    """A controller that goes wrong after its first pages."""
    with served as backing:
        if fault:
            backing.controller.set_faults([Fault(fault, first_lba=512, blocks=1 << 20, **_STATUS[fault])])
        yield backing


_STATUS: dict[str, dict[str, Any]] = {"error": {"status": UNRECOVERED_READ}, "lose": {}}


@pytest.mark.slow
def test_the_wrong_drives_lease_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = "return BlockLease::left(pools_[drive], flags_of(drive)).pair(patience_);"
    wrong = "return BlockLease::left(pools_[drive * 0], flags_of(drive * 0)).pair(patience_);"
    headers = mutated(tmp_path / "headers", "queues/drive_queues.hpp", right, wrong)
    monkeypatch.setattr(gpu_pages, "Gpu", lambda _ordinal: EmulatedGpu(tmp_path, headers))
    workload = ArrayWorkload(**PAGED, extent_bytes=2 << 20, controllers=2)
    (figures,) = run_array_gpu(workload, quiet)
    assert figures.verified is False
