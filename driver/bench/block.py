"""`bamquery bench block` on CPUs: the paths one after another, over the same content."""

from __future__ import annotations

from bamquery import _native
from bamquery.driver.bench.backing import PreparedBacking, prepared
from bamquery.driver.bench.measure import Run, measure
from bamquery.driver.bench.workload import Access, BlockWorkload, Figures, Interrupted, PathName, Progress

CPU_PATHS = (PathName.RINGS, PathName.IO_URING, PathName.MAPPED)


def run_block_cpu(workload: BlockWorkload, progress: Progress) -> list[Figures]:
    """Figures of each of the workload's paths, in order.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the backing cannot be used.
    """
    figures: list[Figures] = []
    try:
        with prepared(workload, writes=workload.write_share > 0) as backing:
            for path in workload.paths:
                run, notes = _start(path, workload, backing)
                figures.append(
                    measure(path, run, workload.seconds, progress, verify=workload.verify, notes=notes)
                )
    except Interrupted as interrupted:
        raise Interrupted([*figures, *interrupted.figures]) from None
    except KeyboardInterrupt:
        raise Interrupted(figures) from None
    return figures


def _start(path: PathName, workload: BlockWorkload, backing: PreparedBacking) -> tuple[Run, tuple[str, ...]]:
    native = backing.before(writes=workload.write_share > 0)
    direct = workload.backing.access is Access.DIRECT
    job = _native.BlockJob(
        block_bytes=workload.block_bytes,
        blocks=workload.blocks,
        clients=workload.pairs,
        depth=workload.depth,
        pattern=workload.pattern,
        theta=workload.theta,
        write_share=workload.write_share,
        seed=workload.seed,
        verify=workload.verify,
    )
    match path:
        case PathName.MAPPED:
            return _native.start_mapped_bench(native, job), ("memcpy; one block at a time",)
        case PathName.IO_URING:
            note = "O_DIRECT" if direct else "through the page cache"
            return _native.start_uring_bench(native, job, direct), (note,)
        case _:
            raise AssertionError(path)
