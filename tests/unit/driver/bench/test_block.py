"""Every path on the CPU, for moments, comparing every byte. Nothing here says how fast."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bamquery import _native
from bamquery.driver.bench.block import run_block_cpu
from bamquery.driver.bench.workload import (
    Access,
    Backing,
    BlockWorkload,
    Figures,
    Interrupted,
    PathName,
    Pattern,
)
from bamquery.driver.doctor.disk import io_uring_errno
from bamquery.errors import BamQueryError, StorageError

TINY = BlockWorkload(
    extent_bytes=1 << 20, seconds=0.05, pairs=2, depth=16, paths=(PathName.RINGS, PathName.MAPPED)
)


def quiet(path: str, seconds: float, operations: int, moved: int) -> None:
    """A progress that says nothing."""


def run(workload: BlockWorkload) -> list[Figures]:
    found = run_block_cpu(workload, quiet)
    assert [figures.path for figures in found] == list(workload.paths)
    for figures in found:
        assert figures.operations > 0, figures
        assert figures.bytes == figures.operations * workload.block_bytes
        assert figures.errors == 0, figures.notes
        assert figures.verified is (True if workload.verify else None), figures.notes
        assert figures.latency is not None
        assert figures.latency.p50 <= figures.latency.p99 <= figures.latency.max
    return found


@pytest.mark.parametrize("write_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("pattern", list(Pattern))
def test_memory(write_share: float, pattern: Pattern) -> None:
    rings, _ = run(replace(TINY, write_share=write_share, pattern=pattern))
    reads, writes = rings.counters["controller_reads"], rings.counters["controller_writes"]
    assert reads + writes == rings.operations
    assert (reads > 0) == (write_share < 1)
    assert (writes > 0) == (write_share > 0)


@pytest.mark.parametrize("block_bytes", [512, 4096, 1 << 16])
@pytest.mark.parametrize("lba_bytes", [512, 4096])
def test_block_sizes(block_bytes: int, lba_bytes: int) -> None:
    if block_bytes >= lba_bytes:
        run(replace(TINY, block_bytes=block_bytes, lba_bytes=lba_bytes, write_share=0.5))


@pytest.mark.parametrize("depth", [2, 4, 256])
@pytest.mark.parametrize("threads", [0, 2])
def test_depths_and_threads(depth: int, threads: int) -> None:
    run(replace(TINY, depth=depth, controller_threads=threads))


@pytest.mark.parametrize("controllers", [2, 3])
@pytest.mark.parametrize("write_share", [0.0, 0.5])
def test_several_controllers(controllers: int, write_share: float) -> None:
    workload = replace(
        TINY,
        controllers=controllers,
        extent_bytes=controllers << 19,
        write_share=write_share,
        paths=(PathName.RINGS,),
        pairs=4,
    )
    (rings,) = run(workload)
    assert len(rings.drives) == controllers
    assert sum(drive.commands for drive in rings.drives) == rings.operations
    assert sum(drive.bytes for drive in rings.drives) == rings.bytes
    for drive in rings.drives:
        assert (drive.pairs, drive.depth, drive.errors) == (4 // controllers, 16, 0)
        assert drive.commands > 0
        assert drive.doorbell_writes
        assert drive.in_flight is not None
        assert drive.in_flight > 0


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("threads", [0, 1])
def test_files_are_made_and_removed(tmp_path: Path, access: Access, threads: int) -> None:
    path = tmp_path / "blocks"
    paths = [PathName.RINGS, PathName.MAPPED]
    if io_uring_errno() == 0:
        paths.append(PathName.IO_URING)
    backing = Backing(path, access)
    run(replace(TINY, backing=backing, write_share=0.3, controller_threads=threads, paths=tuple(paths)))
    assert os.listdir(tmp_path) == []


def test_a_file_is_kept_and_used_again(tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    run(replace(TINY, backing=Backing(path, keep=True), write_share=0.5))
    kept = path.read_bytes()
    assert _native.find_wrong(kept, TINY.seed) == -1  # what was written is put back
    made = path.stat().st_ino
    run(replace(TINY, backing=Backing(path), write_share=0.5))
    assert path.read_bytes() == kept
    assert path.stat().st_ino == made


def test_what_somebody_has_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "diary"
    path.write_bytes(b"x" * TINY.extent_bytes)
    with pytest.raises(BamQueryError, match="--overwrite"):
        run_block_cpu(replace(TINY, backing=Backing(path)), quiet)
    assert path.read_bytes() == b"x" * TINY.extent_bytes
    run(replace(TINY, backing=Backing(path, overwrite=True)))
    assert path.stat().st_size == TINY.extent_bytes
    with pytest.raises(BamQueryError, match="--seed 2"):
        run_block_cpu(replace(TINY, backing=Backing(path), seed=2), quiet)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BamQueryError, match="no regular file"):
        run_block_cpu(replace(TINY, backing=Backing(tmp_path)), quiet)
    with pytest.raises(StorageError, match="smaller --extent"):
        run_block_cpu(replace(TINY, backing=Backing(tmp_path / "no" / "folder")), quiet)


@pytest.mark.parametrize("start", ["mapped", "rings"])
def test_wrong_content_is_found(start: str) -> None:
    backing = _native.BenchBacking("", 1 << 20, True)
    backing.fill(2)
    job = _native.BlockJob(
        block_bytes=4096,
        blocks=256,
        clients=1,
        depth=8,
        pattern="random",
        theta=1.0,
        write_share=0.0,
        seed=1,
        verify=True,
    )
    if start == "mapped":
        started = _native.start_mapped_bench(backing, job)
    else:
        started = _native.start_rings_bench(backing, job, ring_options())
    while started.operations == 0:
        pass
    found = started.stop()
    assert found["mismatches"] == found["operations"]
    assert found["errors"] == 0


def test_a_write_to_a_wrong_place_is_found() -> None:
    backing = _native.BenchBacking("", 1 << 20, True)
    backing.fill(1)
    job = _native.BlockJob(
        block_bytes=4096,
        blocks=128,  # the first half; nobody should touch the second
        clients=1,
        depth=8,
        pattern="random",
        theta=1.0,
        write_share=1.0,
        seed=1,
        verify=True,
    )
    started = _native.start_mapped_bench(backing, job)
    memoryview(backing)[(1 << 20) - 3] ^= 1
    found = started.stop()
    assert found["wrong_after_writing"] == (1 << 20) - 8
    assert found["mismatches"] == 0


def test_deadlines_that_pass_are_errors() -> None:
    # 126 commands of half a MiB at 7 GB/s: the last of them takes 9 ms.
    slow = replace(TINY, profile="980pro", depth=64, block_bytes=1 << 19, paths=(PathName.RINGS,))
    (rings,) = run_block_cpu(replace(slow, deadline_seconds=1e-4), quiet)
    assert rings.errors > 0
    assert not rings.right
    # The first to pass is a command's own, or that of a client which waits for a slot while it is late.
    assert any("deadline" in note for note in rings.notes), rings.notes


def test_profiles_count_for_the_rings_only() -> None:
    rings, mapped = run(replace(TINY, profile="optane", drives=2))
    assert rings.latency is not None
    assert mapped.latency is not None
    assert rings.latency.p50 > 11_000  # nanoseconds: the drive's own


def test_ctrl_c_gives_the_figures_so_far() -> None:
    def interrupt(path: str, seconds: float, operations: int, moved: int) -> None:
        if path == PathName.MAPPED:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        run_block_cpu(TINY, interrupt)
    rings, mapped = raised.value.figures
    assert (rings.path, mapped.path) == TINY.paths
    assert mapped.notes[-1] == "stopped by Ctrl-C"
    assert rings.verified is True


def ring_options() -> _native.RingOptions:
    return _native.RingOptions(
        pairs=1,
        depth=8,
        transfer_bytes=4096,
        block_bytes=512,
        threads=1,
        direct=False,
        writable=False,
        profile="",
        drives=1,
        deadline_seconds=10.0,
    )
