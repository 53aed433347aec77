"""How a chunk's columns are to be read, by the same planner as on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn
from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead, KernelTime
from bamquery.engine.cuda.scan.reads.string_reads import row_bytes
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape
from bamquery.storage.read_planner.column_demands import ReaderShape, shape_demands
from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid
from bamquery.storage.read_planner.planner import Choice, Strategy, plan_reads

_LESSON: Final = 16
"""Times as many rows as those of a chunk must be left, for another way to be tried with it."""
COLD: Final = "columns that the page cache lacked were asked for ahead, and read as is cheapest for the drive"


def plan_columns(
    chunk: ChunkMemory,
    columns: Sequence[ScanColumn],
    hits: HitPyramid,
    wanted: NDArray[np.bool_] | None = None,
) -> list[Choice]:
    """The ways that cost least together, for rows that lie as `hits` tells.

    What the page cache lacks is planned with the drive's rates, and teaches nothing of pages that are there.

    `wanted`: vectors of the pieces that have such rows, which are what a stream would read.
    """
    state = chunk.state
    cold = any(chunk.is_cold(column.name) for column in columns)
    vectors = chunk.rows.count if wanted is None else int(wanted.sum())
    strategies = tuple(Strategy) if state.forced is None else (state.forced,)
    demands = []
    for column in columns:
        seen = (
            not cold and not state.queues and column.form is not Form.STRINGS and chunk.is_pinned(column.name)
        )
        reader = ReaderShape(state.block_bytes, verifies=state.verifies, sees_rows=seen)
        shape = column_shape(chunk, column)
        demands.append(shape_demands(shape, hits, vectors, chunk.rows.runs, reader, strategies))
    if cold:
        state.note(COLD)
        return plan_reads(demands, state.cold_model, verified_first=state.verifies)
    profile = state.work.profile
    with profile.lock:
        left = profile.rows_total - profile.rows_scanned
    return plan_reads(
        demands,
        state.model,
        state.corrections,
        verified_first=state.verifies,
        explores=len(strategies) > 1 and _LESSON * chunk.rows.rows <= left,
    )


def column_shape(chunk: ChunkMemory, column: ScanColumn) -> ColumnShape:
    """How the chunk's rows of a column lie in blocks."""
    if chunk.is_packed(column.name):
        bits, more = chunk.listed.resident.packed_shape(column.name)
        return ColumnShape((BufferShape(bits, width=8),), form="packed", refers=more)
    if chunk.is_compressed(column.name):
        return chunk.listed.resident.string_shape(column.name)
    buffers = [BufferShape(chunk.buffers(column.name)[0].bits)]
    strings = column.form is Form.STRINGS
    if strings:
        stored = [piece.fragment.rows for piece in chunk.rows.pieces]
        size = row_bytes(chunk.extents(column.name, "values"), stored)
        buffers = [BufferShape(64, width=9), BufferShape(8 * size, width=size)]
    nulls = chunk.nulls(column.name)
    if nulls is not None and (nulls.states == 1).any():
        buffers.append(BufferShape(1, share=float((nulls.states == 1).mean())))
    return ColumnShape(tuple(buffers), rounds=2 if strings else 1)


def every_row(rows: ChunkRows) -> HitPyramid:
    """How all rows of a chunk's vectors lie."""
    groups = [0.0] * LEVELS
    for piece in rows.pieces:
        found = HitPyramid.from_vectors(piece.vectors, piece.rows)
        groups = [sum(pair) for pair in zip(groups, found.groups, strict=True)]
    return HitPyramid(tuple(groups))


def learn(
    chunk: ChunkMemory,
    planned: Sequence[tuple[str, Choice]],
    reads: Sequence[ColumnRead],
    kernels: Sequence[KernelTime],
) -> None:
    """Hold what reads took against what they should have, once all of them have ended."""
    seconds = [(kernel.columns, kernel.seconds()) for kernel in kernels]
    profile = chunk.state.work.profile
    for strategy in Strategy:
        chosen = {name: choice for name, choice in planned if choice.strategy is strategy}
        # A column that was looked at first has been streamed besides.
        once = {name for name in chosen if sum(read.name == name for read in reads) == 1}
        taken = [(names, found) for names, found in seconds if once.issuperset(names)]
        timed = {name for names, _ in taken for name in names}
        if not timed:
            continue
        choices = [chosen[name] for name in sorted(timed)]
        total = sum(found for _, found in taken)
        chunk.state.corrections.learn(choices, total)
        expected = sum(choice.cost_seconds for choice in choices)
        with profile.lock:
            for name in timed:
                share = chosen[name].cost_seconds / expected if expected else 0.0
                profile.columns[name].planned.add(chosen[name].cost_seconds, share * total)
