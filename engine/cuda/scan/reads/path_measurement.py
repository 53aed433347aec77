"""Measures a GPU's ways to files in the page cache, with the kernels that scans read by."""

from __future__ import annotations

from typing import Final

import numpy as np

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn
from bamquery.engine.cuda.scan.path_rates import GpuProfile
from bamquery.engine.cuda.scan.reads.checksums import check_vectors
from bamquery.engine.cuda.scan.reads.fetch_blocks import Fetches
from bamquery.engine.cuda.scan.reads.fetch_vectors import fetch_vectors
from bamquery.engine.cuda.scan.reads.load_vectors import COPY_ENGINE, load_vectors
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.storage.format.layout import VECTOR_ROWS

LEAST_VECTORS: Final = 2048
"""Of a chunk to be measured with: less is over before queue pairs are busy."""
_TURNS: Final = 3
"""Of each, the fastest of which counts: the first ones bring the file into memory."""
_PICKED: Final = 8
"""One vector of so many is picked, with which its neighbours are not."""
_BLOCKS_A_VECTOR: Final = 8


def measure_paths(chunk: ChunkMemory, columns: list[ScanColumn], assumed: GpuProfile) -> GpuProfile | None:
    """What this chunk's reads take; None where it is too small, or no column of it will do.

    Takes about ten milliseconds, and 10 bytes of the GPU's memory for each of the column's. What cannot be
    told from it stays as assumed: how many copies and picks of next to nothing fit into a second.
    """
    column = next((column for column in columns if _will_do(chunk, column)), None)
    if column is None or chunk.rows.count < LEAST_VECTORS:
        return None
    name, bits = column.name, chunk.buffers(column.name)[0].bits
    size = chunk.rows.count * VECTOR_ROWS * bits // 8
    streamed = []
    for _ in range(_TURNS):
        loaded = load_vectors(chunk, name, "values", bits, chunk.state.stream)
        if loaded.path != COPY_ENGINE or loaded.seconds is None:
            return None
        chunk.state.wait_for(chunk.state.stream)
        streamed.append(loaded.seconds())
    checks = []
    for _ in range(_TURNS):
        clock = chunk.clock(chunk.state.stream)
        check_vectors(chunk, name, "values", bits, loaded.memory, chunk.state.stream)
        clock.end()
        chunk.state.wait_for(chunk.state.stream)
        checks.append(clock.seconds())
    vectors = np.arange(0, chunk.rows.count, _PICKED)
    step = VECTOR_ROWS // _BLOCKS_A_VECTOR
    everywhere = np.arange(0, (chunk.rows.count - 1) * VECTOR_ROWS, step)
    picked = [_pick(chunk, name, bits, vectors * VECTOR_ROWS) for _ in range(_TURNS)]
    fetched = [_fetch(chunk, name, bits, everywhere) for _ in range(_TURNS)]
    alone = min(_fetch(chunk, name, bits, everywhere[:1]) for _ in range(_TURNS))
    per_block = max(VECTOR_ROWS // step * step * bits // 8 // chunk.state.block_bytes, 1)
    blocks = min(len(everywhere), chunk.rows.count * per_block)
    return GpuProfile(
        stream=size / min(streamed),
        copies=assumed.copies,
        vectors=len(vectors) * VECTOR_ROWS * bits // 8 / min(picked),
        picks=assumed.picks,
        blocks=blocks / max(min(fetched) - alone, min(fetched) / 2),
        latency=alone,
        checksum=size / min(checks),
        source="measured",
    )


def _will_do(chunk: ChunkMemory, column: ScanColumn) -> bool:
    if chunk.is_packed(column.name):
        return False  # its rows are not where those of a plain column are
    bits = chunk.buffers(column.name)[0].bits
    apart = VECTOR_ROWS * bits // 8 // _BLOCKS_A_VECTOR >= chunk.state.block_bytes
    return column.form is not Form.STRINGS and apart and chunk.is_mapped(column.name, "values")


def _select(chunk: ChunkMemory, rows: np.ndarray) -> Selection:
    positions = chunk.allocate(4 * len(rows), "measuring reads")
    chunk.uploads.fill(positions, rows.astype(np.uint32), chunk.state.stream)
    word = chunk.uploads.put(np.array([len(rows)], np.uint32), chunk.state.stream)
    count = Slot(word, -1, -1)
    return Selection(positions, len(rows), count, count)


def _pick(chunk: ChunkMemory, name: str, bits: int, rows: np.ndarray) -> float:
    found = fetch_vectors(chunk, name, "values", bits, _select(chunk, rows), None)
    chunk.state.wait_for(chunk.state.stream)
    return found.seconds()


def _fetch(chunk: ChunkMemory, name: str, bits: int, rows: np.ndarray) -> float:
    fetches = Fetches(chunk, _select(chunk, rows))
    fetches.add(name, bits, None)
    seconds = fetches.start()
    assert seconds is not None
    chunk.state.wait_for(chunk.state.stream)
    return seconds()
