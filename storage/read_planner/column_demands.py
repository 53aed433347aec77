"""What each strategy asks for of one column: counted where rows are known, else from a hit pyramid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint, StoredColumn
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.cost_model import SINGLE_ROWS, Path, ReadDemand
from bamquery.storage.read_planner.hit_pyramid import HitPyramid
from bamquery.storage.read_planner.strategy import Strategy

_LARGE_RUN: Final = 64 << 10
"""Bytes of runs, on average, that read as fast as a stream."""
_LARGE_COPY: Final = 256 << 10
"""The same of a GPU's copy engine, whose copies are each started by the host."""
_PICK: Final = 6
"""Values of a packed vector that are decoded together while one by itself is: as in pick.cpp."""
_SECTOR: Final = 32
"""Bytes that a GPU loads at least."""
_LINE: Final = 128
"""Bytes of a GPU's cache line, whose sectors are asked for together."""
_PAYLOAD_STEP: Final = 16
"""Bytes on a multiple of which packed vectors begin, whose widths differ."""


@dataclass(frozen=True, slots=True)
class ReaderShape:
    """What of a reader decides how many commands and blocks a read is.

    Attributes:
        block_size: bytes.
        request_bytes: of the largest command; None: a run is a run, as in memory maps.
        verifies: what is read whole is compared with checksums.
        sees_rows: single values are loaded without their blocks.
    """

    block_size: int
    request_bytes: int | None = None
    verifies: bool = True
    sees_rows: bool = False


def stored_demands(
    stored: StoredColumn,
    rows: NDArray[np.int64],
    candidates: NDArray[np.int64],
    reader: ReaderShape,
    strategies: Sequence[Strategy] = tuple(Strategy),
    *,
    decodes: bool = True,
) -> dict[Strategy, ReadDemand]:
    """Of a column for ascending row ids, all of which are in the vectors `candidates`: counted exactly.

    No row ids: all rows. Without `decodes`, what is read whole is only compared as it is stored.
    """
    shape, block = stored.shape(candidates), reader.block_size

    def demand(strategy: Strategy) -> ReadDemand:
        if strategy is Strategy.FETCH_BLOCKS:
            return _demand_of_blocks(shape, stored.rows_footprint(rows, candidates, block), len(rows), reader)
        vectors = candidates if strategy is Strategy.STREAM else vectors_of(rows)
        values = _decoded_values(len(vectors), len(rows)) if decodes else 0
        return _whole(shape, stored.vectors_footprint(vectors, block), values, reader)

    return {strategy: demand(strategy) for strategy in strategies}


def expected_demands(
    stored: StoredColumn,
    hits: HitPyramid,
    candidates: NDArray[np.int64],
    reader: ReaderShape,
    strategies: Sequence[Strategy] = tuple(Strategy),
) -> dict[Strategy, ReadDemand]:
    """The same for rows of which only their pyramid is known."""
    shape, block = stored.shape(candidates), reader.block_size

    def demand(strategy: Strategy) -> ReadDemand:
        found = Footprint(0, 0)
        if strategy is Strategy.FETCH_BLOCKS:
            for buffer in shape.buffers:
                found += expected_blocks(buffer, hits, block)
            found += _expected_references(shape, hits, len(candidates), found.blocks, block)
            return _demand_of_blocks(shape, found, round(hits.rows), reader)
        if strategy is Strategy.STREAM:
            values = _decoded_values(len(candidates), round(hits.rows))
            return _whole(shape, stored.vectors_footprint(candidates, block), values, reader)
        for buffer in shape.buffers:
            found += expected_vectors(buffer, hits, block)
        return _whole(shape, found, _decoded_values(math.ceil(hits.vectors), round(hits.rows)), reader)

    return {strategy: demand(strategy) for strategy in strategies}


def shape_demands(  # noqa: PLR0917 - one column of one chunk
    shape: ColumnShape,
    hits: HitPyramid,
    vectors: int,
    runs: int,
    reader: ReaderShape,
    strategies: Sequence[Strategy] = tuple(Strategy),
) -> dict[Strategy, ReadDemand]:
    """Of a column in `vectors` vectors, `runs` of them side by side, for a GPU: each block is a command."""
    weight = sum(buffer.bits * buffer.share for buffer in shape.buffers) * VECTOR_ROWS / 8

    def whole(count: float, commands: float, path: Path) -> ReadDemand:
        size = round(count * weight)
        checked = size if reader.verifies else 0
        values = round(count * VECTOR_ROWS)
        return ReadDemand(path, size, max(round(commands), 1), shape.rounds, checked, values, shape.form)

    def demand(strategy: Strategy) -> ReadDemand:
        if strategy is Strategy.STREAM:
            large = vectors * weight >= _LARGE_COPY * runs
            return whole(vectors, runs, Path.SEQUENTIAL if large else Path.VECTORS)
        if strategy is Strategy.FETCH_VECTORS:
            commands = hits.vectors * sum(buffer.share for buffer in shape.buffers)
            return whole(hits.vectors, commands, Path.VECTORS)
        if reader.sees_rows:
            return _demand_of_sectors(shape, hits)
        blocks = sum(expected_blocks(buffer, hits, reader.block_size).blocks for buffer in shape.buffers)
        return ReadDemand(Path.BLOCKS, blocks * reader.block_size, blocks, shape.block_rounds)

    return {strategy: demand(strategy) for strategy in strategies}


def _demand_of_sectors(shape: ColumnShape, hits: HitPyramid) -> ReadDemand:
    """Of single rows that a kernel loads: sectors, a request for each line, and the other rows' work.

    Loads of neighbours in a line become one request over the bus: how many of these there are counts where
    rows lie apart, what they bring where they do not.
    """
    sectors = lines = beside = 0
    for buffer in shape.buffers:
        found = expected_blocks(buffer, hits, _LINE).blocks
        sectors += expected_blocks(buffer, hits, _SECTOR).blocks
        lines += found
        beside += max(round(hits.rows * buffer.share) - found, 0)
    return ReadDemand(Path.ROWS, sectors * _SECTOR, lines, values=beside)


def expected_vectors(buffer: BufferShape, hits: HitPyramid, block_size: int) -> Footprint:
    """Runs and blocks of the whole vectors that hold a row of the selection.

    A run that does not begin with a block shares its first and its last one with rows that nobody wants.
    """
    if not buffer.bits or not hits.rows:
        return Footprint(0, 0)
    size = VECTOR_ROWS * buffer.bits / 8
    if size <= block_size:
        rows = 8 * block_size / buffer.bits
        return _footprint(hits.runs_of(rows), hits.groups_of(rows), buffer.share)
    step = math.gcd(int(size), block_size) if size.is_integer() else _PAYLOAD_STEP
    runs = hits.runs_of(VECTOR_ROWS)
    blocks = hits.vectors * size / block_size + runs * (1 - step / block_size)
    return _footprint(runs, blocks, buffer.share)


def expected_blocks(buffer: BufferShape, hits: HitPyramid, block_size: int) -> Footprint:
    """Runs and blocks that hold a row of the selection.

    A row whose bytes begin in one block may end in the next, unless another row has that block read already.
    """
    if not buffer.bits or not hits.rows:
        return Footprint(0, 0)
    rows = 8 * block_size / buffer.bits
    blocks = hits.groups_of(rows)
    beyond = max(buffer.width - 1, 0) / block_size
    if beyond:
        dense = min(blocks * rows / (hits.vectors * VECTOR_ROWS), 1.0) if rows < VECTOR_ROWS else 0.0
        blocks += hits.rows * beyond * (1 - dense)
    return _footprint(min(hits.runs_of(rows), blocks), blocks, buffer.share)


def _expected_references(
    shape: ColumnShape, hits: HitPyramid, vectors: int, blocks: int, block_size: int
) -> Footprint:
    """Blocks that rows refer to, here and there in a column, of which `blocks` have been read for codes."""
    if not shape.referring or not hits.rows:
        return Footprint(0, 0)
    total = sum(buffer.bits for buffer in shape.buffers) * vectors * VECTOR_ROWS / (8 * block_size)
    unread = max(total - blocks, 0.0)
    asked = hits.rows * shape.referring
    # Of n blocks, k references at random ask for about n (1 - exp(-k / n)).
    more = round(unread * -math.expm1(-asked / max(total, 1.0)))
    return Footprint(more, more)


def _footprint(runs: float, blocks: float, share: float) -> Footprint:
    return Footprint(max(round(runs * share), 1), max(round(blocks * share), 1))


def _decoded_values(vectors: int, rows: int) -> int:
    """What decoding some rows of vectors takes, in values that are decoded together; no rows: all."""
    return min(vectors * VECTOR_ROWS, _PICK * rows) if rows else vectors * VECTOR_ROWS


def _whole(shape: ColumnShape, found: Footprint, values: int, reader: ReaderShape) -> ReadDemand:
    size = found.blocks * reader.block_size
    return ReadDemand(
        Path.SEQUENTIAL if size >= _LARGE_RUN * found.runs else Path.VECTORS,
        size,
        _commands(found, size, reader),
        shape.rounds,
        checked=size if reader.verifies else 0,
        values=values,
        form=shape.form,
    )


def _demand_of_blocks(shape: ColumnShape, found: Footprint, rows: int, reader: ReaderShape) -> ReadDemand:
    size = found.blocks * reader.block_size
    return ReadDemand(
        Path.BLOCKS,
        size,
        _commands(found, size, reader),
        shape.block_rounds,
        values=rows,
        form=SINGLE_ROWS.format(shape.form),
    )


def _commands(found: Footprint, size: int, reader: ReaderShape) -> int:
    return found.runs + (0 if reader.request_bytes is None else size // reader.request_bytes)
