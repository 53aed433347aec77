"""Rows in order: in memory as long as they fit, then by sorted runs in files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.frame_sizing import append_constant, drain_list, slice_frame
from bamquery.engine.operators.sort.sorted_runs import SortedRuns
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field, SortKey

_BUCKET_ROWS: Final = 1 << 20
"""Rows sorted at once: a fraction of a second, after which a query can stop."""
_BUCKETS: Final = 64
"""Buckets that would fill the memory limit at least."""
_SAMPLES: Final = 16
"""Sampled rows for each bucket: the largest bucket is then seldom twice the mean."""
_LEAST_ROWS: Final = 1024
"""Rows of a bucket at least."""


def sort_rows(
    context: ExecutionContext[Frame],
    chunks: Iterable[Frame],
    fields: Sequence[Field],
    keys: Sequence[SortKey],
    *,
    memory: Reservation,
    profile: OperatorProfile,
) -> Generator[Frame, None, None]:
    """All rows of chunks, none of them empty, in stable order; within `memory_limit`.

    Many rows are sorted by sampling: rows of a sample split the order into buckets, each chunk is sorted
    and cut at them, and each bucket's pieces are sorted again. All of that runs on all threads, in steps
    short enough to be cancelled between. Where memory ends, what has come is sorted so and becomes a run
    in a file; runs are merged in the end.

    Raises:
        ExecutionError: a key cannot be computed.
        MemoryLimitError: there is nowhere to keep rows.
        StorageError: the folder has no room for them.
    """
    device = context.device
    with ExitStack() as stack:
        runs: SortedRuns[Frame] | None = None
        held: list[Frame] = []
        rows = size = 0
        for chunk in chunks:
            count, more = device.row_count(chunk), device.nbytes(chunk)
            wanted = _needed_bytes(context, rows + count, size + more)
            if not memory.fits(wanted):
                if context.spill_folder is None:
                    memory.resize(wanted)
                if runs is None:
                    runs = stack.enter_context(SortedRuns(context, fields, keys, profile, memory.room))
                _add_run(runs, context, held, rows, size)
                held, rows, size = [], 0, 0
                memory.resize(0)
                if not memory.fits(_needed_bytes(context, count, more)):
                    _add_run(runs, context, [chunk], count, more)
                    continue
            held.append(chunk)
            rows += count
            size += more
        if runs is None:
            ordered = _sort_in_memory(
                context, held or [device.empty(fields)], rows, size, columns=len(fields), keys=keys
            )
        else:
            _add_run(runs, context, held, rows, size)
            profile.details["peak_memory"] = memory.peak
            memory.resize(0)
            ordered = runs.merge(memory)
        stack.enter_context(closing(ordered))
        for frame in ordered:
            profile.details["peak_memory"] = memory.peak
            yield from slice_frame(device, frame)


def _add_run(
    runs: SortedRuns[Frame],
    context: ExecutionContext[Frame],
    held: list[Frame],
    rows: int,
    size: int,
) -> None:
    if rows:
        with closing(
            _sort_in_memory(context, held, rows, size, columns=len(runs.fields), keys=runs.keys)
        ) as ordered:
            runs.add(ordered)


def _needed_bytes(context: ExecutionContext[Frame], rows: int, size: int) -> int:
    """Bytes for the rows, and for those of a bucket of each thread, joined and in order."""
    bucket = size * min(_bucket_rows(context, rows, size), rows) // max(rows, 1)
    return size + min(2 * size, 3 * (context.threads + 1) * bucket)


def _bucket_rows(context: ExecutionContext[Frame], rows: int, size: int) -> int:
    fit = context.memory.limit // _BUCKETS * rows // max(size, 1)
    return min(_BUCKET_ROWS, max(fit, _LEAST_ROWS))


def _sort_in_memory(
    context: ExecutionContext[Frame],
    held: list[Frame],
    rows: int,
    size: int,
    *,
    columns: int,
    keys: Sequence[SortKey],
) -> Generator[Frame, None, None]:
    """Frames in order, that make the rows of those held in order; the list is emptied."""
    device = context.device
    buckets = -(-rows // _bucket_rows(context, rows, size))
    if buckets <= 1:
        ordered = device.sort(device.concatenate(held), keys)
        held.clear()
        yield ordered
        return
    splitters = _splitters(device, held, rows, buckets, keys)

    def cut(chunk: Frame) -> list[Frame]:
        return _cut_at_splitters(device, chunk, splitters, columns, keys)

    pieces: list[list[Frame]] = [[] for _ in range(buckets)]
    with closing(ordered_map(context, cut, drain_list(held), looks_ahead=True)) as chunks:
        for chunk in chunks:
            for bucket, piece in zip(pieces, chunk, strict=True):
                bucket.append(piece)

    def order(bucket: list[Frame]) -> Frame:
        return device.sort(device.concatenate(bucket), keys)

    with closing(ordered_map(context, order, drain_list(pieces), looks_ahead=True)) as frames:
        yield from frames


def _splitters(
    device: Device[Frame], held: Sequence[Frame], rows: int, buckets: int, keys: Sequence[SortKey]
) -> Frame:
    """`buckets` - 1 rows in order that split the rows into parts of about one size."""
    step = max(rows // (buckets * _SAMPLES), 1)
    samples: list[Frame] = []
    first = step // 2
    for chunk in held:
        count = device.row_count(chunk)
        samples.append(device.take(chunk, np.arange(first, count, step)))
        first += step * max(-(-(count - first) // step), 0) - count
    ordered = device.sort(device.concatenate(samples), keys)
    places = np.arange(1, buckets) * device.row_count(ordered) // buckets
    return device.take(ordered, places)


def _cut_at_splitters(
    device: Device[Frame], chunk: Frame, splitters: Frame, columns: int, keys: Sequence[SortKey]
) -> list[Frame]:
    """The chunk in order, in one piece for each bucket: from a splitter on, up to the next."""
    both = [append_constant(device, splitters, True), append_constant(device, chunk, False)]
    # The sort is stable, so a splitter stands before rows that equal it: all of those go into its bucket.
    ordered = device.sort(device.concatenate(both), keys)
    of_splitters = device.matching_positions(ColumnRef(columns, "splitter", pa.bool_()), ordered)
    places = device.read_positions(of_splitters).tolist()
    rows = device.select(ordered, range(columns))
    starts, ends = [0, *(place + 1 for place in places)], [*places, device.row_count(ordered)]
    return [device.slice(rows, start, end - start) for start, end in zip(starts, ends, strict=True)]
