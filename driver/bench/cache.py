"""`bamquery bench cache` and `bamquery bench array` on CPUs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from bamquery import _native
from bamquery.driver.bench.measure import measure
from bamquery.driver.bench.page_sources import PagesRun, Sources, open_sources
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

    def start(sources: Sources, *, verify: bool) -> _native.CacheRun:
        return _native.start_cache_bench(
            sources.native,
            clients=sources.clients,
            deadline_seconds=workload.deadline_seconds,
            cache_bytes=workload.cache_bytes,
            page_bytes=workload.page_bytes,
            extent_bytes=workload.extent_bytes,
            stripe_bytes=workload.stripe_bytes,
            warm=workload.warm,
            pattern=workload.pattern,
            theta=workload.theta,
            seed=workload.seed,
            verify=verify,
        )

    return _run("cache", workload, start, progress)


def run_array_cpu(workload: ArrayWorkload, progress: Progress) -> list[Figures]:
    """Figures of elements read through an array; an operation is an element.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    scans = workload.operation == "scan"

    def start(sources: Sources, *, verify: bool) -> _native.CacheRun:
        return _native.start_array_bench(
            sources.native,
            clients=sources.clients,
            deadline_seconds=workload.deadline_seconds,
            cache_bytes=workload.cache_bytes,
            page_bytes=workload.page_bytes,
            extent_bytes=workload.extent_bytes,
            stripe_bytes=workload.stripe_bytes,
            element=workload.element,
            element_bytes=element_bytes(workload.element),
            pattern=Pattern.SEQUENTIAL if scans else workload.pattern,
            theta=workload.theta,
            seed=workload.seed,
            verify=verify,
        )

    return _run(workload.operation, workload, start, progress)


def _run(
    path: str,
    workload: CacheWorkload | ArrayWorkload,
    start: Callable[..., _native.CacheRun],
    progress: Progress,
) -> list[Figures]:
    try:
        with open_sources(workload) as sources:
            verify = workload.verify and sources.known_content
            run = PagesRun(start(sources, verify=verify), sources, workload.page_bytes)
            notes = () if verify or not workload.verify else ("what drives hold is not known, nor compared",)
            try:
                figures = measure(path, run, workload.seconds, progress, verify=verify, notes=notes)
            except Interrupted as stopped:
                raise Interrupted([replace(one, drives=run.drives) for one in stopped.figures]) from None
            return [replace(figures, drives=run.drives)]
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted([]) from None


def element_bytes(element: str) -> int:
    """Of `int8` to `float64`."""
    match = re.fullmatch(r"(?:u?int|float)(8|16|32|64)", element)
    assert match, element
    return int(match.group(1)) // 8
