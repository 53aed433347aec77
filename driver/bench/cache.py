"""`bamquery bench cache` and `bamquery bench array` on CPUs."""

from __future__ import annotations

import re

from bamquery import _native
from bamquery.driver.bench.backing import prepare_backing
from bamquery.driver.bench.block import ring_options
from bamquery.driver.bench.measure import measure
from bamquery.driver.bench.workload import (
    ArrayWorkload,
    CacheWorkload,
    Figures,
    Interrupted,
    Pattern,
    Progress,
)


def run_cache_cpu(workload: CacheWorkload, progress: Progress) -> list[Figures]:
    """Figures of pages read through the cache; an operation is a page.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    try:
        with prepare_backing(workload, writes=False) as backing:
            run = _native.start_cache_bench(
                backing.restore_for(writes=False),
                ring_options(workload, workload.page_bytes, writable=False),
                cache_bytes=workload.cache_bytes,
                warm=workload.warm,
                pattern=workload.pattern,
                theta=workload.theta,
                seed=workload.seed,
                verify=workload.verify,
            )
            return [measure("cache", run, workload.seconds, progress, verify=workload.verify)]
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted([]) from None


def run_array_cpu(workload: ArrayWorkload, progress: Progress) -> list[Figures]:
    """Figures of elements read through an array; an operation is an element.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    scans = workload.operation == "scan"
    try:
        with prepare_backing(workload, writes=False) as backing:
            run = _native.start_array_bench(
                backing.restore_for(writes=False),
                ring_options(workload, workload.page_bytes, writable=False),
                cache_bytes=workload.cache_bytes,
                element=workload.element,
                element_bytes=element_bytes(workload.element),
                pattern=Pattern.SEQUENTIAL if scans else workload.pattern,
                theta=workload.theta,
                seed=workload.seed,
                verify=workload.verify,
            )
            return [measure(workload.operation, run, workload.seconds, progress, verify=workload.verify)]
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted([]) from None


def element_bytes(element: str) -> int:
    """Of `int8` to `float64`."""
    match = re.fullmatch(r"(?:u?int|float)(8|16|32|64)", element)
    assert match, element
    return int(match.group(1)) // 8
