"""Frames joined and cut, so that each operator works on chunks of a good size."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeVar

import pyarrow as pa

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.plan.expressions import Literal

Item = TypeVar("Item")

FRAME_ROWS: Final = 131_072
"""Rows of the frames that sorts and aggregates give out; of a device with larger tasks, as many more."""
GATHERED_ROWS: Final = 65_536
"""Rows from which a chunk is worth a task of its own; a device may want more."""
GATHERED_BYTES: Final = 32 << 20
_LEAST_GATHERED: Final = 1 << 20
_FAR_TOO_LARGE: Final = 4
"""Times that a chunk is larger than enough from which on it is cut."""
_BLOCKS: Final = 256
"""Blocks that would fill the memory limit: small ones, so that many files are read at once."""
_LEAST_BYTES: Final = 1024
"""Of a block: smaller ones are not worth their place in a file."""


def coalesce_frames(
    context: ExecutionContext[Frame], frames: Iterable[Frame], enough: int | None = None
) -> Generator[Frame, None, None]:
    """The same rows in order, small frames joined and empty ones left out: a selective scan's are tiny.

    Where memory is scarce large ones are cut, too: what becomes of a chunk is as large as that.

    `enough`: see `gather_frames`.
    """
    for gathered in gather_frames(context, frames, enough):
        yield context.device.concatenate(gathered)


def gather_frames(
    context: ExecutionContext[Frame], frames: Iterable[Frame], enough: int | None = None
) -> Generator[list[Frame], None, None]:
    """The chunks of `coalesce_frames`, each as the frames that it is to be made of.

    Who hands chunks to other threads leaves it to them to join the frames, as others wait for this one.

    `enough`: bytes from which a chunk is not small; None: as many as are worth a task, or as threads may
    work on at once.
    """
    device = context.device
    scarce = enough is None and context.memory.share < 1
    if enough is None:
        enough = max(int(GATHERED_BYTES * context.memory.share), _LEAST_GATHERED)
    small: list[Frame] = []
    rows = size = 0
    for frame in _cut_full_frames(device, frames, enough) if scarce else frames:
        count = device.row_count(frame)
        if not count:
            continue
        if small and count >= GATHERED_ROWS * device.task_size:
            yield small  # by themselves: the large one need not be copied
            small, rows, size = [], 0, 0
        small.append(frame)
        rows += count
        if rows < GATHERED_ROWS * device.task_size:
            size += device.nbytes(frame)
        if rows >= GATHERED_ROWS * device.task_size or size >= enough:
            yield small
            small, rows, size = [], 0, 0
    if small:
        yield small


def _cut_full_frames(
    device: Device[Frame], frames: Iterable[Frame], enough: int
) -> Generator[Frame, None, None]:
    for frame in frames:
        if device.nbytes(frame) > _FAR_TOO_LARGE * enough:
            yield from cut_to_size(device, frame, enough)
        else:
            yield frame


def slice_frame(device: Device[Frame], frame: Frame, size: int | None = None) -> Generator[Frame, None, None]:
    """The frame in pieces of a good size, and of about `size` bytes; one without rows stays one."""
    rows = device.row_count(frame)
    length = FRAME_ROWS * device.task_size
    if size is not None and rows:
        length = min(max(rows * size // max(device.nbytes(frame), 1), 1), length)
    for start in range(0, max(rows, 1), length):
        yield device.slice(frame, start, length)


def spill_frame_bytes(limit: int) -> int:
    """Of frames that are written to a file and read back one by one, under a `memory_limit`."""
    return max(limit // _BLOCKS, _LEAST_BYTES)


def cut_to_size(device: Device[Frame], frame: Frame, size: int) -> Generator[Frame, None, None]:
    """The frame in pieces of about `size` bytes at most, and of at most `FRAME_ROWS`; none is empty."""
    rows = device.row_count(frame)
    fit = rows * size // max(device.nbytes(frame), 1)
    length = min(max(fit, 1), FRAME_ROWS)
    for start in range(0, rows, length):
        yield device.slice(frame, start, length)


def limit_rows(
    device: Device[Frame], frames: Iterable[Frame], count: int | None, offset: int
) -> Generator[Frame, None, None]:
    """`count` (None: all) rows from `offset` on; no frame is asked for that is not needed."""
    skip, left = offset, count
    if left == 0:
        return
    for frame in frames:
        rows = device.row_count(frame)
        skipped = min(skip, rows)
        skip -= skipped
        wanted = rows - skipped if left is None else min(left, rows - skipped)
        if wanted:
            yield frame if wanted == rows else device.slice(frame, skipped, wanted)
        if left is not None:
            left -= wanted
            if left == 0:
                return


def append_constant(device: Device[Frame], frame: Frame, mark: bool) -> Frame:
    """The frame with one more column, which says the same of all its rows."""
    column = device.evaluate([Literal(pa.scalar(mark, pa.bool_()))], frame)
    return device.join_columns([frame, column])


def drain_list(items: list[Item]) -> Iterator[Item]:
    """The items in order, each let go of before the next; the list is empty afterwards."""
    items.reverse()
    while items:
        yield items.pop()
