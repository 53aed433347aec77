"""Queue pairs driven by a GPU's threads: every byte compared, every fault of the controller met."""

import ctypes
import mmap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.memory import PinnedMemory
from bamquery.driver.nvme.gpu_doorbells import GpuDoorbells
from bamquery.errors import GpuError, NvmeError, StorageError
from tests.gpu.rings import SEED, Mode, Rings, content, make_rings

KERNELS = ["ring_leased", "ring_shared", "ring_mixed"]
DEADLINE_MISSED, NO_SLOT, QUEUE_BROKEN = (7, 0xC0), (7, 0xC1), (7, 0xC2)


@pytest.fixture
def brief(scale: float) -> float:
    """Deadline, in seconds, of commands that end much later or never; no other may take so long."""
    return 0.2 if scale >= 1 else 2.0  # compute-sanitizer slows kernels down


@pytest.fixture
def rounds(scale: float) -> Callable[[int], int]:
    return lambda count: max(2, round(count * scale))


def status_of(rings: Rings) -> tuple[int, int]:
    """Status of the first failure that the GPU recorded; there must be one, of the rings' namespace."""
    with pytest.raises(NvmeError) as caught:
        rings.queues.check()
    rings.queues.check()  # said once
    return caught.value.sct, caught.value.sc


def quarantined(rings: Rings) -> int:
    return sum(pair.quarantined for pair in rings.queues.statistics())


def start_again(rings: Rings) -> None:
    rings.controller.set_faults([])
    rings.controller.stop()
    rings.controller.recreate_queues()
    rings.controller.start()
    rings.queues.renew()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("launch", [(1, 1), (1, 31), (1, 32), (3, 33), (4, 256), (40, 96)])
@pytest.mark.parametrize(
    "modes",
    [
        Mode.READ_ANY,
        Mode.HOLDS_SLOT,
        Mode.DIVERGENT | Mode.EARLY_EXIT,
        Mode.DIVERGENT | Mode.EARLY_EXIT | Mode.HOLDS_SLOT,
    ],
)
def test_every_thread_reads_what_is_there(
    gpu: Gpu, rounds: Callable[[int], int], kernel: str, launch: tuple[int, int], modes: Mode
) -> None:
    grid, block = launch
    with make_rings(gpu, leased_pairs=4, shared_pairs=2, depth=512, rounds=rounds(8)) as rings:
        tally = rings.run(kernel, grid=grid, block=block, modes=modes)
        assert tally.sound, tally
        rings.queues.check()
        assert tally.commands == rings.controller.statistics().reads
        if Mode.EARLY_EXIT not in modes:
            assert tally.commands == grid * block * rings.job.rounds


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("depth", "slots"), [(2, 1), (4, 3), (8, 2), (64, 63)])
def test_rings_of_any_depth_wrap_and_fill(
    gpu: Gpu, rounds: Callable[[int], int], kernel: str, depth: int, slots: int
) -> None:
    shape = {"leased_pairs": 2, "shared_pairs": 2, "depth": depth, "slots": slots}
    with make_rings(gpu, rounds=rounds(24), **shape) as rings:
        tally = rings.run(kernel, grid=6, block=64, deadline_s=60.0)
        assert tally.sound, tally
        assert tally.commands == 6 * 64 * rings.job.rounds


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("registers", [False, True])
def test_doorbells_lie_elsewhere(
    gpu: Gpu, rounds: Callable[[int], int], monkeypatch: pytest.MonkeyPatch, kernel: str, *, registers: bool
) -> None:
    """Written as a drive's registers are, too, though memory is all there is to write to."""
    pin = gpu.pin

    def pin_as_memory(owner: object, address: int, size: int, **_: bool) -> PinnedMemory:
        return pin(owner, address, size)

    monkeypatch.setattr(gpu, "pin", pin_as_memory)
    reached = GpuDoorbells("registers", "it is memory")
    monkeypatch.setattr("bamquery.driver.gpu.queues.gpu_doorbells", lambda _: reached)
    shape = {"leased_pairs": 3, "shared_pairs": 2, "depth": 64}
    doorbells = mmap.mmap(-1, 4096)
    with make_rings(gpu, rounds=rounds(32), doorbells=doorbells, registers=registers, **shape) as rings:
        assert rings.queues.memory.drive_doorbells is not None
        tally = rings.run(kernel, grid=8, block=96)
        assert tally.sound, tally
        assert tally.commands == 8 * 96 * rings.job.rounds
        memory = rings.queues.memory
        assert not any((ctypes.c_uint32 * 1024).from_address(memory.address))  # where they lie otherwise
        assert sum(pair.doorbells for pair in rings.queues.statistics()) > 0


@pytest.mark.parametrize("block", [64, 160])
def test_a_warp_that_only_sweeps(gpu: Gpu, rounds: Callable[[int], int], block: int) -> None:
    with make_rings(gpu, leased_pairs=4, depth=256, rounds=rounds(32)) as rings:
        modes = Mode.SWEEP_WARP | Mode.HOLDS_SLOT
        tally = rings.run("ring_leased", grid=8, block=block, modes=modes)
        assert tally.sound, tally
        assert tally.commands == 8 * (block - 32) * rings.job.rounds


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_blocks_than_the_gpu_holds_at_once(gpu: Gpu, scale: float, kernel: str) -> None:
    # At most 32 blocks are resident on a multiprocessor; scaled down, it is the pairs that are too few.
    grid = max(64, round(gpu.multiprocessors * 40 * scale))
    with make_rings(gpu, leased_pairs=16, shared_pairs=16, depth=256, rounds=2) as rings:
        tally = rings.run(kernel, grid=grid, block=32, deadline_s=60.0)
        assert tally.sound, tally
        assert tally.commands == grid * 32 * 2


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "sizes",  # of a block, a transfer in blocks, and a slot
    [(512, 1, 512), (512, 3, 2048), (4096, 1, 4096), (4096, 2, 8192), (512, 32, 16384), (4096, 16, 65536)],
)
def test_transfers_of_one_page_two_and_a_list(
    gpu: Gpu, rounds: Callable[[int], int], kernel: str, sizes: tuple[int, int, int]
) -> None:
    block_bytes, lbas, slot_bytes = sizes
    shape = {"leased_pairs": 2, "shared_pairs": 2, "depth": 32}
    shape |= {"block_bytes": block_bytes, "slot_bytes": slot_bytes}
    with make_rings(gpu, rounds=rounds(8), lbas=lbas, **shape) as rings:
        tally = rings.run(kernel, grid=4, block=64)
        assert tally.sound, tally


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("modes", [Mode.WRITES, Mode.WRITES | Mode.HOLDS_SLOT])
def test_what_is_written_is_read_back_and_is_there(
    gpu: Gpu, rounds: Callable[[int], int], kernel: str, modes: Mode
) -> None:
    grid, block, lbas = 8, 96, 2
    with make_rings(gpu, leased_pairs=4, depth=128, rounds=rounds(6), lbas=lbas) as rings:
        tally = rings.run(kernel, grid=grid, block=block, modes=modes)
        assert tally.sound, tally
        written = grid * block * lbas * 512
        after = rings.bytes_now()
        assert np.array_equal(after[:written], content(SEED + rings.job.rounds, written))
        rest = content(SEED, after.size - written, written // 512)
        assert np.array_equal(after[written:], rest)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("modes", [Mode.READ_ANY, Mode.WRITES])
def test_a_file(gpu: Gpu, rounds: Callable[[int], int], tmp_path: Path, direct: bool, modes: Mode) -> None:
    file = tmp_path / "namespace"
    shape = {"leased_pairs": 4, "depth": 64, "block_bytes": 4096}
    try:
        with make_rings(gpu, file=file, direct=direct, rounds=rounds(8), **shape) as rings:
            tally = rings.run("ring_leased", grid=8, block=64, modes=modes)
            last = SEED + rings.job.rounds
    except StorageError as error:
        if direct:
            pytest.skip(f"no direct reads here: {error}")
        raise
    assert tally.sound, tally
    written = 8 * 64 * 4096 if modes else 0
    assert np.array_equal(np.fromfile(file, np.uint8, written), content(last, written))


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_error_says_which_command_and_why(gpu: Gpu, rounds: Callable[[int], int], kernel: str) -> None:
    with make_rings(gpu, leased_pairs=2, depth=128, rounds=rounds(32), size=1 << 20) as rings:
        bad = Fault("error", nsid=rings.job.nsid, first_lba=100, blocks=7, status=0x281)
        rings.controller.set_faults([bad])
        tally = rings.run(kernel, grid=4, block=128)
        fired = rings.controller.statistics().fired[0]
        assert fired > 0
        assert tally.failed == fired
        assert tally.wrong == tally.slotless == tally.unleased == 0
        with pytest.raises(NvmeError, match="unrecovered read error") as caught:
            rings.queues.check()
        error = caught.value
        assert (error.nsid, error.sct, error.sc) == (rings.job.nsid, 2, 0x81)
        assert 100 <= error.lba < 107
        assert sum(pair.errors for pair in rings.queues.statistics()) == fired
        rings.controller.set_faults([])
        assert rings.run(kernel, grid=4, block=128).sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_the_controller_refuses(gpu: Gpu, kernel: str) -> None:
    with make_rings(gpu, depth=64, rounds=2, size=1 << 20) as rings:
        nowhere = rings.run(kernel, grid=1, block=32, nsid=rings.job.nsid + 5)
        assert nowhere.failed == nowhere.commands == 64
        assert status_of(rings) == (0, 0x0B)
        beyond = rings.run(kernel, grid=1, block=32, blocks=1 << 60)
        assert beyond.failed == beyond.commands == 64
        assert status_of(rings) == (0, 0x80)
        large = rings.run(kernel, grid=1, block=32, lbas=9)  # a slot has 8
        assert large.failed == large.commands == 64
        assert status_of(rings) == (7, 0xC6)
        assert rings.run(kernel, grid=1, block=32).sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_lost_completion_is_an_error_in_time_and_the_next_launch_works(
    gpu: Gpu, brief: float, kernel: str
) -> None:
    with make_rings(gpu, leased_pairs=2, shared_pairs=2, depth=64, rounds=8) as rings:
        rings.controller.set_faults([Fault("lose", most=3)])
        tally = rings.run(kernel, grid=2, block=64, deadline_s=brief)
        assert tally.failed == 3
        assert tally.wrong == 0
        assert status_of(rings) == DEADLINE_MISSED
        assert quarantined(rings) == 3
        for _ in range(2):
            assert rings.run(kernel, grid=2, block=64).sound
        assert quarantined(rings) == 3  # whose completions may still come
        start_again(rings)
        assert quarantined(rings) == 0
        assert rings.run(kernel, grid=2, block=64).sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_completion_after_its_deadline_harms_nobody(gpu: Gpu, brief: float, kernel: str) -> None:
    with make_rings(gpu, leased_pairs=1, shared_pairs=1, depth=64, rounds=4) as rings:
        rings.controller.set_faults([Fault("delay", most=5, delay=3 * brief)])
        tally = rings.run(kernel, grid=1, block=64, deadline_s=brief)
        assert tally.failed == 5
        assert tally.wrong == 0
        assert status_of(rings) == DEADLINE_MISSED
        for _ in range(100):  # until they have come; whoever uses the queue pair finds them
            assert rings.run(kernel, grid=1, block=64).sound
            if quarantined(rings) == 0:
                break
            time.sleep(0.05)
        (used,) = [pair for pair in rings.queues.statistics() if pair.missed]
        assert (used.missed, used.late, used.quarantined) == (5, 5, 0)


def test_without_a_slot_left_waiting_ends(gpu: Gpu, brief: float) -> None:
    with make_rings(gpu, leased_pairs=1, depth=2, rounds=1) as rings:
        rings.controller.set_faults([Fault("lose", most=1)])
        tally = rings.run("ring_leased", grid=1, block=32, deadline_s=brief)
        assert tally.failed == 1
        assert tally.slotless == 31
        with pytest.raises(NvmeError):
            rings.queues.check()
        assert rings.run("ring_leased", grid=1, block=1, deadline_s=brief).slotless == 1
        assert status_of(rings) == NO_SLOT
        start_again(rings)
        assert rings.run("ring_leased", grid=1, block=32).sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_completions_in_any_order(gpu: Gpu, rounds: Callable[[int], int], kernel: str) -> None:
    with make_rings(gpu, leased_pairs=2, depth=128, rounds=rounds(16)) as rings:
        rings.controller.set_faults([Fault("reorder", probability=0.3, window=9)], seed=3)
        tally = rings.run(kernel, grid=4, block=128)
        assert rings.controller.statistics().fired[0] > 0
        assert tally.sound, tally


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_controller_that_breaks_the_protocol(gpu: Gpu, kernel: str) -> None:
    with make_rings(gpu, leased_pairs=1, shared_pairs=1, depth=32, rounds=8) as rings:
        rings.controller.set_faults([Fault("wrong_head", most=1, opcode=Opcode.READ)])
        tally = rings.run(kernel, grid=2, block=64)
        assert tally.failed + tally.unleased > 0
        assert tally.wrong == 0
        assert status_of(rings) == QUEUE_BROKEN
        assert sum(pair.broken for pair in rings.queues.statistics()) == 1
        again = rings.run(kernel, grid=1, block=32)
        assert again.failed + again.slotless + again.unleased > 0
        assert status_of(rings) == QUEUE_BROKEN
        start_again(rings)
        assert rings.run(kernel, grid=2, block=64).sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_controller_that_does_not_run(gpu: Gpu, brief: float, kernel: str) -> None:
    with make_rings(gpu, depth=64, rounds=2) as rings:
        rings.controller.stop()
        tally = rings.run(kernel, grid=1, block=32, deadline_s=brief)
        assert tally.failed > 0
        assert status_of(rings) == DEADLINE_MISSED
        start_again(rings)
        assert rings.run(kernel, grid=1, block=32).sound


def test_a_controller_asleep_is_woken(gpu: Gpu) -> None:
    with make_rings(gpu, depth=64, rounds=2) as rings:
        for _ in range(3):
            time.sleep(0.3)
            assert rings.run("ring_leased", grid=1, block=32).sound


def test_kernels_side_by_side_have_pairs_of_their_own(gpu: Gpu, rounds: Callable[[int], int]) -> None:
    with make_rings(gpu, leased_pairs=6, shared_pairs=2, depth=64, rounds=rounds(32)) as rings:
        streams = [gpu.new_stream() for _ in range(3)]
        kernels = ["ring_leased", "ring_leased", "ring_shared"]
        for kernel in kernels:
            gpu.load("ring_test", kernel)  # which would wait for kernels that run
        launches = [
            rings.start(kernel, replace(rings.job, deadline_s=60.0), grid=12, block=96, stream=stream)
            for kernel, stream in zip(kernels, streams, strict=True)
        ]
        for launch in launches:
            launch.wait(120)
        for number in range(3):
            assert rings.tally(number).sound
            assert rings.tally(number).commands == 12 * 96 * rings.job.rounds
        rings.queues.check()


def test_faults_of_all_kinds_at_once(gpu: Gpu, brief: float, rounds: Callable[[int], int]) -> None:
    with make_rings(gpu, leased_pairs=4, shared_pairs=4, depth=256, rounds=rounds(64)) as rings:
        faults = [
            Fault("lose", probability=0.0005, most=20),
            Fault("delay", probability=0.001, delay=2 * brief, most=20),
            Fault("error", probability=0.01, status=0x281),
            Fault("reorder", probability=0.1, window=20),
        ]
        rings.controller.set_faults(faults, seed=11)
        for kernel in KERNELS:
            tally = rings.run(kernel, grid=8, block=128, deadline_s=brief, modes=Mode.DIVERGENT)
            assert tally.wrong == 0
            assert tally.commands > 0
        with pytest.raises(NvmeError):
            rings.queues.check()
        rings.controller.set_faults([])
        for kernel in KERNELS:
            assert rings.run(kernel, grid=8, block=128).sound


def test_a_kernel_that_lasts_longer_than_one_waits(gpu: Gpu) -> None:
    with make_rings(gpu, depth=64, rounds=2) as rings:
        launch = gpu.launch(gpu.load("ring_test", "ring_nap"), 1_500_000_000, grid=1, block=1)
        with pytest.raises(GpuError, match=r"ring_nap did not end within 0\.1 s"):
            launch.wait(0.1)
        launch.wait(60)
        assert not gpu.busy
        assert rings.run("ring_leased", grid=1, block=32).sound
