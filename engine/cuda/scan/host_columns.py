"""Columns that kernels do not read: through the device's column reader, at rows that the host is told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.selection import Selection


def read_by_host(
    chunk: ChunkMemory, name: str, selection: Selection | None, wait: Callable[[], None]
) -> CudaFrame:
    """The selection's rows of a column, all of the chunk's if None; `wait` ends what was started.

    Raises:
        StorageError: a file cannot be read, or is not what was written.
    """
    reads, device = chunk.state.work.reads, chunk.state.device
    if selection is None:
        return device.concatenate(
            [reads.read(piece, name, None, selected=False) for piece in chunk.rows.pieces]
        )
    rows = chunk.rows.row_ids(download(chunk, selection.positions.ptr, selection.rows, wait))
    return device.concatenate(
        [
            reads.read(piece, name, ids, selected=True)
            for piece, ids in zip(chunk.rows.pieces, rows, strict=True)
            if len(ids)
        ]
    )


def download(chunk: ChunkMemory, address: int, words: int, wait: Callable[[], None]) -> NDArray[np.uint32]:
    """Words from the GPU."""
    state = chunk.state
    block = state.resources.blocks.take(4 * words)
    cuda = state.session.gpu.cuda
    cuda("copy from the GPU", "cuMemcpyDtoHAsync", block.host, address, 4 * words, state.stream)
    wait()
    found = block.view(0, np.uint32, words).copy()
    state.resources.blocks.give_back(block)
    return found
