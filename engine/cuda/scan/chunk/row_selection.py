"""Which of a chunk's rows are alive, as positions in the GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import rmm

from bamquery.engine.cuda.frames import CudaPositions
from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn
from bamquery.engine.cuda.scan.kernel_tables.predicates import EVERYTHING, FusedPredicate
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Slot
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid


@dataclass(frozen=True)
class PassedRows:
    """A bit for each row that passed: what `Selection` is made from, once the count is known.

    Attributes:
        mask: of whole vectors.
        sums: rows that pass before each vector.
        total: the word with how many pass.
        of_pieces: of the chunk's rows only: rows that pass before each piece.
        groups: words with how many distinct groups of 2, 4, 8 … rows hold one that passes.
    """

    mask: rmm.DeviceBuffer
    sums: rmm.DeviceBuffer
    vectors: int
    total: Slot
    of_pieces: Slot | None = None
    groups: Slot | None = None

    def pyramid(self, board: CounterBoard) -> HitPyramid:
        """How the rows lie, once the board was copied back."""
        assert self.groups is not None
        counted = board.words(self.groups, LEVELS - 1).tolist()
        return HitPyramid.from_counts(board.word(self.total), counted)


@dataclass(frozen=True)
class Selection:
    """Rows of a chunk, ascending.

    Attributes:
        positions: a word each.
        rows: how many.
        count: the word on the GPU that says so, too.
        piece_rows: of each piece, a word each and one for the distinct vectors: see `describe`.
        everything: these are all rows, and positions leave nothing out.
    """

    positions: rmm.DeviceBuffer
    rows: int
    count: Slot
    described: Slot
    everything: bool = False


def filter_loaded(  # noqa: PLR0917 - the kernel's own arguments
    chunk: ChunkMemory,
    predicate: FusedPredicate,
    values: rmm.DeviceBuffer | None,
    validity: rmm.DeviceBuffer | None,
    nulls: int | None,
    stream: Any = None,
    *,
    parts: int | None = None,
) -> PassedRows:
    """Compare whole vectors, which are there for `stream`; `nulls` is where their states are.

    With `parts` (`ChunkMemory.parts`), only those of `values` are there, and no other row passes.
    """
    return _filter(
        *(chunk, predicate, values, validity, nulls, chunk.vector_rows, chunk.rows.rows, chunk.rows.count),
        parts=parts,
        stream=stream,
    )


def filter_packed(
    chunk: ChunkMemory,
    predicate: FusedPredicate,
    packed: bytes,
    stream: Any = None,
    *,
    parts: int | None = None,
) -> PassedRows:
    """Compare the codes of packed vectors (a ScanPacked), which are there for `stream`.

    `parts`: as `filter_loaded` has it.
    """
    count = chunk.rows.count
    mask = chunk.allocate(count * VECTOR_ROWS // 8, "comparing a column", stream)
    counts = chunk.allocate(4 * count, "comparing a column", stream)
    launcher = chunk.state.launcher
    define = f"BAMQUERY_SCAN_TYPE={predicate.selected_c_type}"
    launcher.start(
        launcher.kernel("packed/filter", "scan_packed_filter", define),
        *(packed, parts, count, predicate.pack(), mask.ptr, counts.ptr),
        grid=launcher.grid(count, WARPS),
        stream=chunk.state.stream if stream is None else stream,
    )
    return _count(chunk, mask, counts, count, selected=None, stream=stream)


def filter_column(
    chunk: ChunkMemory, predicate: FusedPredicate, column: DeviceColumn, before: Selection
) -> PassedRows:
    """Compare a column of the rows selected before."""
    vectors = -(-column.rows // VECTOR_ROWS)
    here = replace(predicate, c_type=predicate.selected_c_type)
    return _filter(
        *(chunk, here, column.data, column.validity, None, None, column.rows, vectors),
        selected=before,
    )


def select_all(chunk: ChunkMemory) -> Selection:
    """All rows of the chunk; nobody has to wait."""
    return select(chunk, filter_loaded(chunk, EVERYTHING, None, None, None), chunk.rows.rows)


def count_groups(chunk: ChunkMemory, selection: Selection) -> Slot:
    """Start to count distinct groups of 2, 4, 8 … rows of a selection, whose bits nobody has."""
    tiles = -(-selection.rows // VECTOR_ROWS)
    groups = chunk.board.take(4 * (LEVELS - 1))
    chunk.launch(
        "scan_pyramid",
        "scan_pyramid",
        *(None, None, tiles, selection.positions.ptr, selection.count.address, chunk.vectors, groups.address),
        items=tiles,
        of_a_block=WARPS,
    )
    return groups


def select(chunk: ChunkMemory, passed: PassedRows, rows: int) -> Selection:
    """The rows that passed, of which there are `rows`, at least one."""
    positions = _positions(chunk, passed, rows)
    return _describe(chunk, positions, rows, passed.total, everything=rows == chunk.rows.rows)


def narrow(
    chunk: ChunkMemory, before: Selection, passed: PassedRows, rows: int
) -> tuple[Selection, rmm.DeviceBuffer]:
    """Those of the rows before that passed, and their places among them."""
    places = _positions(chunk, passed, rows)
    return _narrowed_selection(chunk, before, places, rows, passed.total), places


def narrow_by_places(chunk: ChunkMemory, before: Selection, passed: CudaPositions) -> tuple[Selection, int]:
    """The same for places that libcudf found, at least one: the selection, and where the places are."""
    chunk.keep.append(passed)
    word = chunk.uploads.put(np.array([len(passed)], np.uint32), chunk.state.stream)
    count = Slot(word, -1, -1)  # on no sheet: only kernels look at it
    positions = chunk.allocate(4 * len(passed), "selecting rows")
    chunk.launch(
        "scan_select",
        "scan_pick",
        *(before.positions.ptr, passed.address, word, positions.ptr),
        items=len(passed),
    )
    return _describe(chunk, positions, len(passed), count), passed.address


def _narrowed_selection(
    chunk: ChunkMemory, before: Selection, places: rmm.DeviceBuffer, rows: int, total: Slot
) -> Selection:
    positions = chunk.allocate(4 * rows, "selecting rows")
    chunk.launch(
        "scan_select",
        "scan_pick",
        *(before.positions.ptr, places.ptr, total.address, positions.ptr),
        items=rows,
    )
    return _describe(chunk, positions, rows, total)


def _describe(
    chunk: ChunkMemory, positions: rmm.DeviceBuffer, rows: int, count: Slot, *, everything: bool = False
) -> Selection:
    """Let the GPU note how the rows spread over pieces and vectors: profiles count with it."""
    pieces = len(chunk.rows.pieces)
    described = chunk.board.take(4 * (pieces + 1))
    chunk.launch(
        "scan_select",
        "scan_describe",
        *(positions.ptr, rows, chunk.firsts, pieces, described.address, described.address + 4 * pieces),
        items=rows,
    )
    return Selection(positions, rows, count, described, everything and chunk.rows.dense)


def _filter(  # noqa: PLR0917 - the kernel's own arguments
    chunk: ChunkMemory,
    predicate: FusedPredicate,
    values: rmm.DeviceBuffer | None,
    validity: rmm.DeviceBuffer | None,
    nulls: int | None,
    vector_rows: int | None,
    rows: int,
    vectors: int,
    *,
    parts: int | None = None,
    selected: Selection | None = None,
    stream: Any = None,
) -> PassedRows:
    mask = chunk.allocate(vectors * VECTOR_ROWS // 8, "comparing a column", stream)
    counts = chunk.allocate(4 * vectors, "comparing a column", stream)
    launcher = chunk.state.launcher
    arguments: tuple[Any, ...] = (
        *(None if values is None else values.ptr, None if validity is None else validity.ptr),
        *(nulls, vector_rows, rows, vectors, parts, predicate.pack(), mask.ptr, counts.ptr),
    )
    launcher.start(
        launcher.kernel("scan_filter", "scan_filter", f"BAMQUERY_SCAN_TYPE={predicate.c_type}"),
        *arguments,
        grid=launcher.grid(vectors, WARPS),
        stream=chunk.state.stream if stream is None else stream,
    )
    return _count(chunk, mask, counts, vectors, selected=selected, stream=stream)


def _count(
    chunk: ChunkMemory,
    mask: rmm.DeviceBuffer,
    counts: rmm.DeviceBuffer,
    vectors: int,
    *,
    selected: Selection | None,
    stream: Any,
) -> PassedRows:
    """What the host has to know of bits: of the chunk's rows, or of those that were `selected` before."""
    total = chunk.board.take(4)
    sums = chunk.prefix_sums(counts.ptr, vectors, total, stream)
    groups = chunk.board.take(4 * (LEVELS - 1))
    positions = None if selected is None else selected.positions.ptr
    chunk.launch(
        "scan_pyramid",
        "scan_pyramid",
        *(mask.ptr, counts.ptr, vectors, positions, None, chunk.vectors, groups.address),
        items=vectors,
        of_a_block=WARPS,
        stream=stream,
    )
    of_pieces = None
    if selected is None:
        edges = len(chunk.rows.firsts)
        of_pieces = chunk.board.take(4 * edges)
        chunk.launch(
            "scan_select",
            "scan_pick",
            *(sums.ptr, chunk.firsts, chunk.firsts_count, of_pieces.address),
            items=edges,
            stream=stream,
        )
    return PassedRows(mask, sums, vectors, total, of_pieces, groups)


def _positions(chunk: ChunkMemory, passed: PassedRows, rows: int) -> rmm.DeviceBuffer:
    positions = chunk.allocate(4 * rows, "selecting rows")
    chunk.launch(
        "scan_select",
        "scan_positions",
        *(passed.mask.ptr, passed.sums.ptr, passed.vectors, positions.ptr),
        items=passed.vectors,
        of_a_block=WARPS,
    )
    return positions
