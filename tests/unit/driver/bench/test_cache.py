"""Pages and elements through the page cache on the CPU, every one compared."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.bench.cache import element_bytes, run_array_cpu, run_cache_cpu
from bamquery.driver.bench.options import ELEMENTS
from bamquery.driver.bench.workload import (
    ArrayWorkload,
    Backing,
    CacheWorkload,
    Figures,
    Interrupted,
    Pattern,
)
from bamquery.driver.software_controller import SoftwareController
from tests.unit.driver.bench.test_block import quiet

PAGES = CacheWorkload(extent_bytes=1 << 20, cache_bytes=1 << 18, seconds=0.05, pairs=2, depth=8)
ELEMENTS_OF = ArrayWorkload(extent_bytes=1 << 20, cache_bytes=1 << 18, seconds=0.05, pairs=2, depth=8)


def _asked_often(workload: CacheWorkload) -> Figures:
    """Figures of pages by the thousand: a run lasts longer on a machine that is busy with other things."""
    while True:
        (figures,) = run_cache_cpu(workload, quiet)
        if figures.operations >= 5_000:
            return figures
        workload = replace(workload, seconds=workload.seconds * 4)
        assert workload.seconds < 60, f"only {figures.operations} pages"


@pytest.mark.parametrize("page_bytes", [512, 4096, 1 << 15])
@pytest.mark.parametrize("threads", [0, 1])
def test_a_cache_smaller_than_the_extent(page_bytes: int, threads: int) -> None:
    cache = _asked_often(replace(PAGES, page_bytes=page_bytes, controller_threads=threads))
    assert cache.right, cache.notes
    assert cache.verified is True
    assert cache.bytes == cache.operations * page_bytes
    assert cache.counters["misses"] == cache.counters["controller_reads"]
    looks = sum(cache.counters[name] for name in ("hits", "misses", "coalesced"))
    assert looks == cache.operations
    assert 0 < cache.counters["hit_ratio"] < 1


def test_a_warm_cache_reads_nothing() -> None:
    (cache,) = run_cache_cpu(replace(PAGES, cache_bytes=1 << 20, warm=True), quiet)
    assert cache.counters["misses"] == 0
    assert cache.counters["hit_ratio"] == 1
    assert cache.counters["controller_reads"] == 256


def test_hot_pages_stay() -> None:
    """At equal sizes a skewed pattern hits more often than a uniform one."""
    uniform = _asked_often(PAGES)
    skewed = _asked_often(replace(PAGES, pattern=Pattern.ZIPF, theta=1.5))
    assert skewed.counters["hit_ratio"] > uniform.counters["hit_ratio"]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("operation", ["gather", "scan"])
def test_elements(element: str, operation: str) -> None:
    (array,) = run_array_cpu(replace(ELEMENTS_OF, element=element, operation=operation, seconds=0.05), quiet)
    assert array.path == operation
    assert array.right, array.notes
    assert array.verified is True
    assert array.operations > 0
    assert array.bytes == array.operations * element_bytes(element)
    assert array.latency is None


OPTIONS: dict[str, Any] = {
    "clients": 2,
    "deadline_seconds": 10.0,
    "cache_bytes": 1 << 18,
    "page_bytes": 4096,
    "extent_bytes": 1 << 20,
    "stripe_bytes": 8192,
    "pattern": "random",
    "theta": 1.0,
    "seed": 1,
    "verify": True,
}


@contextmanager
def sources(seeds: Sequence[int], blocks: Sequence[int]) -> Iterator[list[Any]]:
    """Controllers with contents of these seeds, and LBAs of these sizes."""
    with ExitStack() as stack:
        found = []
        for seed, block in zip(seeds, blocks, strict=True):
            memory = QueueMemory(leased_pairs=2, shared_pairs=0, depth=8, block_bytes=block)
            controller = stack.enter_context(SoftwareController(memory, threads=0))
            nsid = controller.add_memory((1 << 20) // len(seeds), block)
            _native.fill_content(controller.contents(nsid), seed)
            found.append((memory, controller.native, nsid))
        yield found


def ended(run: Any) -> dict[str, Any]:
    """What a run has done as soon as it has done something."""
    while run.operations == 0 and not run.finished:
        pass
    counted: dict[str, Any] = run.stop()
    return counted


def test_an_unknown_element() -> None:
    with sources([1], [512]) as served, pytest.raises(ValueError, match="no such element"):
        _native.start_array_bench(served, **OPTIONS, element="int128", element_bytes=16)


def start(kind: str, served: list[Any]) -> Any:
    if kind == "pages":
        return _native.start_cache_bench(served, **OPTIONS, warm=False)
    return _native.start_array_bench(served, **OPTIONS, element="float64", element_bytes=8)


@pytest.mark.parametrize("kind", ["pages", "elements"])
@pytest.mark.parametrize("seeds", [[2], [3, 1], [1, 1]])
def test_wrong_content_is_found(kind: str, seeds: list[int]) -> None:
    with sources(seeds, [512, 4096][: len(seeds)]) as served:
        found = ended(start(kind, served))
        assert found["mismatches"] <= found["operations"]
        # Of two that have the first one's content, only the second is wrong.
        assert (found["mismatches"] == found["operations"]) == (seeds != [1, 1])
        assert found["mismatches"] > 0


@pytest.mark.parametrize("kind", ["pages", "elements"])
def test_drives_of_other_blocks(kind: str) -> None:
    with sources([1, 3, 5, 7], [512, 4096, 4096, 512]) as served:
        found = ended(start(kind, served))
        assert (found["mismatches"], found["errors"]) == (0, 0)
        assert sum(drive["commands"] for drive in found["drives"]) == found["counters"]["misses"]


def test_what_cannot_be_striped() -> None:
    with sources([1, 3], [512, 4096]) as served:
        for wrong, words in (
            ({"stripe_bytes": 4096 * 3}, "power of two pages"),
            ({"page_bytes": 2048}, "do not take such pages"),
            ({"extent_bytes": 2 << 20}, "share of the extent"),
            ({"clients": 0}, "no clients"),
        ):
            with pytest.raises(ValueError, match=words):
                _native.start_cache_bench(served, **OPTIONS | wrong, warm=False)
        with pytest.raises(ValueError, match="no drive"):
            _native.start_cache_bench([], **OPTIONS, warm=False)


@pytest.mark.parametrize("controllers", [2, 3])
@pytest.mark.parametrize("threads", [0, 2])
def test_several_controllers(controllers: int, threads: int) -> None:
    drives = {
        "controllers": controllers,
        "controller_threads": threads,
        "extent_bytes": controllers << 19,
        "stripe_bytes": 1 << 14,
    }
    (cache,) = run_cache_cpu(replace(PAGES, **drives), quiet)
    (array,) = run_array_cpu(replace(ELEMENTS_OF, **drives), quiet)
    for figures in (cache, array):
        assert figures.right, figures.notes
        assert figures.verified is True
        assert len(figures.drives) == controllers
        assert all(drive.commands and not drive.errors for drive in figures.drives)
        assert all((drive.pairs, drive.depth) == (2, 8) for drive in figures.drives)
        assert sum(drive.commands for drive in figures.drives) == figures.counters["misses"]
        assert sum(drive.bytes for drive in figures.drives) == figures.counters["controller_read_bytes"]


def test_one_file_for_each_controller(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    workload = replace(PAGES, backing=Backing(first, further=(second,), keep=True), controllers=2)
    (cache,) = run_cache_cpu(workload, quiet)
    assert cache.right, cache.notes
    assert [drive.namespace for drive in cache.drives] == [
        f"drive 0: {first} (mapped)",
        f"drive 1: {second} (mapped)",
    ]
    assert first.stat().st_size == second.stat().st_size == 1 << 19
    assert _native.find_wrong(first.read_bytes(), 1) == _native.find_wrong(second.read_bytes(), 3) == -1


def test_ctrl_c() -> None:
    def interrupt(path: str, seconds: float, operations: int, moved: int) -> None:
        raise KeyboardInterrupt

    for run, workload in ((run_cache_cpu, PAGES), (run_array_cpu, ELEMENTS_OF)):
        with pytest.raises(Interrupted) as raised:
            run(workload, interrupt)  # type: ignore[operator]
        assert len(raised.value.figures) == 1
