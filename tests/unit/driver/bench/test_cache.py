"""Pages and elements through the page cache on the CPU, every one compared."""

from dataclasses import replace

import pytest

from bamquery import _native
from bamquery.driver.bench.cache import element_bytes, run_array_cpu, run_cache_cpu
from bamquery.driver.bench.options import ELEMENTS
from bamquery.driver.bench.workload import ArrayWorkload, CacheWorkload, Figures, Interrupted, Pattern
from tests.unit.driver.bench.test_block import quiet, ring_options

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


def test_an_unknown_element() -> None:
    backing = _native.BenchBacking("", 1 << 20, True)
    with pytest.raises(ValueError, match="no such element"):
        _native.start_array_bench(
            backing,
            ring_options(),
            cache_bytes=1 << 18,
            element="int128",
            element_bytes=16,
            pattern="random",
            theta=1.0,
            seed=1,
            verify=True,
        )


@pytest.mark.parametrize("kind", ["pages", "elements"])
def test_wrong_content_is_found(kind: str) -> None:
    backing = _native.BenchBacking("", 1 << 20, True)
    backing.fill(2)
    if kind == "pages":
        run = _native.start_cache_bench(
            backing,
            ring_options(),
            cache_bytes=1 << 18,
            warm=False,
            pattern="random",
            theta=1.0,
            seed=1,
            verify=True,
        )
    else:
        run = _native.start_array_bench(
            backing,
            ring_options(),
            cache_bytes=1 << 18,
            element="float64",
            element_bytes=8,
            pattern="random",
            theta=1.0,
            seed=1,
            verify=True,
        )
    while run.operations == 0:
        pass
    found = run.stop()
    assert found["mismatches"] == found["operations"]


def test_ctrl_c() -> None:
    def interrupt(path: str, seconds: float, operations: int, moved: int) -> None:
        raise KeyboardInterrupt

    for run, workload in ((run_cache_cpu, PAGES), (run_array_cpu, ELEMENTS_OF)):
        with pytest.raises(Interrupted) as raised:
            run(workload, interrupt)  # type: ignore[operator]
        assert len(raised.value.figures) == 1
