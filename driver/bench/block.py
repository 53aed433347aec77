"""`bamquery bench block` on CPUs: the paths one after another, over the same content."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from bamquery import _native
from bamquery.driver.bench.backing import PreparedBacking, prepare_backing
from bamquery.driver.bench.drives import run_drives
from bamquery.driver.bench.measure import Run, measure
from bamquery.driver.bench.served import name_of
from bamquery.driver.bench.together import Part, Together, in_flight
from bamquery.driver.bench.workload import (
    DRIVES,
    Access,
    BlockWorkload,
    DriveFigures,
    Figures,
    Interrupted,
    PathName,
    Progress,
    Setup,
)


def run_block_cpu(workload: BlockWorkload, progress: Progress) -> list[Figures]:
    """Figures of each of the workload's paths, in order.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    figures: list[Figures] = []
    try:
        with ExitStack() as stack:
            backing = None
            for path in workload.paths:
                if path is PathName.DRIVE:
                    figures.append(run_drives(workload, progress))
                    continue
                if workload.controllers > 1:
                    figures.append(run_controllers(workload, progress))
                    continue
                if backing is None:
                    backing = stack.enter_context(prepare_backing(workload, writes=workload.write_share > 0))
                run, notes = _start(path, workload, backing)
                figures.append(
                    measure(path, run, workload.seconds, progress, verify=workload.verify, notes=notes)
                )
    except Interrupted as interrupted:
        raise Interrupted([*figures, *interrupted.figures]) from None
    except KeyboardInterrupt:
        raise Interrupted(figures) from None
    return figures


def ring_options(workload: Setup, transfer_bytes: int, *, writable: bool) -> _native.RingOptions:
    """Queue pairs and a software controller as the workload wants them."""
    return _native.RingOptions(
        pairs=workload.pairs,
        depth=workload.depth,
        transfer_bytes=transfer_bytes,
        block_bytes=workload.lba_bytes,
        threads=workload.controller_threads,
        direct=workload.backing.access is Access.DIRECT,
        writable=writable,
        profile=DRIVES[workload.profile] if workload.profile else "",
        drives=workload.drives,
        deadline_seconds=workload.deadline_seconds,
    )


def run_controllers(workload: BlockWorkload, progress: Progress) -> Figures:
    """Figures of the rings of several controllers, each with its share of the extent and of the clients.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    shares = workload.shares()
    writes = workload.write_share > 0
    with ExitStack() as stack:
        backings = [stack.enter_context(prepare_backing(share, writes=writes)) for share in shares]
        run = Together(
            [
                Part(
                    _start(PathName.RINGS, share, backing)[0],
                    partial(_figures_of, name_of(number, share), share),
                )
                for number, (share, backing) in enumerate(zip(shares, backings, strict=True))
            ]
        )
        try:
            figures = measure(PathName.RINGS, run, workload.seconds, progress, verify=workload.verify)
        except Interrupted as stopped:
            raise Interrupted([replace(one, drives=run.drives) for one in stopped.figures]) from None
        return replace(figures, drives=run.drives)


def _figures_of(name: str, share: BlockWorkload, found: dict[str, Any]) -> DriveFigures:
    return DriveFigures(
        namespace=name,
        commands=found["operations"] + found["errors"],
        bytes=found["bytes"],
        errors=found["errors"],
        doorbell_writes=found["counters"]["doorbells"],
        pairs=share.pairs,
        depth=share.depth,
        in_flight=in_flight(found),
    )


def _start(path: PathName, workload: BlockWorkload, backing: PreparedBacking) -> tuple[Run, tuple[str, ...]]:
    native = backing.restore_for(writes=workload.write_share > 0)
    direct = workload.backing.access is Access.DIRECT
    # More threads than cores would measure the scheduler; the rings' clients are as many as asked.
    most = len(os.sched_getaffinity(0)) if path is not PathName.RINGS else workload.pairs
    clients = min(workload.pairs, most)
    job = _native.BlockJob(
        block_bytes=workload.block_bytes,
        blocks=workload.blocks,
        clients=clients,
        depth=workload.depth,
        pattern=workload.pattern,
        theta=workload.theta,
        write_share=workload.write_share,
        seed=workload.seed,
        verify=workload.verify,
    )
    threads = f"{clients} thread{'s' if clients > 1 else ''}"
    match path:
        case PathName.MAPPED:
            return _native.start_mapped_bench(native, job), (f"memcpy by {threads}, one block at a time",)
        case PathName.IO_URING:
            how = "past the page cache" if direct else "through the page cache"
            return _native.start_uring_bench(native, job, direct), (f"{threads}, {how}",)
        case PathName.RINGS:
            options = ring_options(workload, workload.block_bytes, writable=workload.write_share > 0)
            return _native.start_rings_bench(native, job, options), ()
        case _:
            raise AssertionError(path)
