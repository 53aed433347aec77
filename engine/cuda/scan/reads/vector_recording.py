"""Which vectors a chunk's reads touched, for a profile that records it: asked of the GPU only then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows
from bamquery.engine.cuda.scan.reads.fetch_vectors import vectors_of_rows
from bamquery.engine.profiling.vector_map import VectorMap
from bamquery.storage.read_planner.planner import Strategy


def touched_vectors(chunk: ChunkMemory, selection: Selection) -> Callable[[], NDArray[np.bool_]] | None:
    """Which of the chunk's vectors hold the selection's rows, once counters were copied back.

    None where no profile asks.
    """
    if chunk.state.work.profile.vector_map is None:
        return None
    count = chunk.rows.count
    words = vectors_of_rows(chunk, selection)
    block = chunk.host_block(4 * count)
    cuda = chunk.state.session.gpu.cuda
    cuda("copy from the GPU", "cuMemcpyDtoHAsync", block.host, words.ptr, 4 * count, chunk.state.stream)
    return lambda: block.view(0, np.uint32, count) != 0


def record_read(
    found: VectorMap, column: str, strategy: Strategy, rows: ChunkRows, touched: NDArray[np.bool_] | None
) -> None:
    """Note a read of those of the chunk's vectors; None: of all."""
    for number, piece in enumerate(rows.pieces):
        first = int(rows.firsts[number])
        vectors = piece.vectors
        if touched is not None:
            vectors = vectors[touched[first : first + len(vectors)]]
        found.read(column, piece.fragment.id, vectors, strategy)
