"""A dictionary column's codes, which become places in the dictionaries of all of a chunk's fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pylibcudf as plc
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.cache.late_columns import Dictionary, Held
from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, PlacesColumn
from bamquery.engine.cuda.scan.columns.dictionaries import JoinedDictionary, dictionary_size
from bamquery.engine.cuda.scan.columns.scan_column import ScanColumn
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.engine.cuda.session import CudaSession
from bamquery.errors import CorruptionError
from bamquery.storage.fragments.fragment import Fragment


@dataclass(frozen=True)
class CodesCheck:
    """That a column's dictionaries have all its codes; `bad` as a VectorCheck's."""

    column: str
    bad: Slot

    def settle(self, chunk: ChunkMemory) -> None:
        """Look at what it found, once the board was copied back.

        Raises:
            CorruptionError: names file and column.
        """
        found = chunk.board.word(self.bad)
        if found:
            fragment, _ = chunk.rows.place(chunk.rows.count - found)
            problem = f'column "{self.column}" refers to values beyond its dictionary'
            raise CorruptionError(problem, fragment.path)


def prepare(chunk: ChunkMemory, column: ScanColumn, wanted: NDArray[np.bool_] | None) -> None:
    """Have the dictionaries that `decode` will need copied: before kernels are started that take long."""
    dictionaries = chunk.state.dictionaries
    if dictionaries.join_all(column) is None:
        dictionaries.concatenate(column, [f for f in _used_fragments(chunk, wanted) if f is not None])


def decode(
    chunk: ChunkMemory,
    column: ScanColumn,
    codes: DeviceColumn,
    selection: Selection,
    wanted: NDArray[np.bool_] | None,
) -> tuple[PlacesColumn, CodesCheck]:
    """Start to turn a selection's codes into places in the joined dictionaries.

    `wanted`: vectors of the pieces that have selected rows; the others' dictionaries are left out.
    """
    state, rows = chunk.state, selection.rows
    joined = state.dictionaries.join_all(column)
    values: plc.Column | None
    if joined is not None:
        values, size = joined.dictionary.values, joined.dictionary.size
        firsts, behind = _joined_starts(chunk, column, joined)
        look_up = _look_up_late(state.session, joined.dictionary, nulls=codes.validity is not None)
    else:
        used = _used_fragments(chunk, wanted)
        values = state.dictionaries.concatenate(column, [one for one in used if one is not None])
        sizes = [0 if fragment is None else dictionary_size(fragment, column.name) for fragment in used]
        size = sum(sizes)
        firsts, behind = _dictionary_starts(chunk, sizes)
        look_up = _look_up(state.session, column, values)
    places = chunk.allocate(4 * rows, f'reading column "{column.name}"')
    bad = chunk.board.take(4)
    chunk.launch(
        "scan_codes",
        "scan_codes",
        *(codes.data.ptr, codes.bits, None if codes.validity is None else codes.validity.ptr),
        *(selection.positions.ptr, rows, chunk.vectors, chunk.rows.count, firsts, behind),
        *(places.ptr, bad.address),
        items=rows,
    )
    found = PlacesColumn(
        *(column.kind, 32, rows, places),
        look_up=look_up,
        values=values,
        value_count=size,
        value_kind=column.value_kind,
        stays=joined is not None,
    )
    return found, CodesCheck(column.name, bad)


def count_string_bytes(
    chunk: ChunkMemory, column: ScanColumn, places: PlacesColumn, wanted: NDArray[np.bool_] | None
) -> Slot:
    """Start to add up the bytes of the strings at places that `decode` gave; two words get them."""
    dictionaries = chunk.state.dictionaries
    joined = dictionaries.join_all(column)
    if joined is not None:
        lengths = joined.lengths
    else:
        used = [fragment for fragment in _used_fragments(chunk, wanted) if fragment is not None]
        lengths = dictionaries.lengths(column, used)
    total = chunk.board.take(8)
    chunk.launch(
        "scan_codes",
        "scan_code_bytes",
        *(places.data.ptr, places.rows, chunk.uploads.put(lengths, chunk.state.stream), len(lengths)),
        total.address,
        items=places.rows,
    )
    return total


def _dictionary_starts(chunk: ChunkMemory, sizes: list[int]) -> tuple[int, int]:
    """Where dictionaries begin by their fragments' numbers, on the GPU; and the number behind the last."""
    lowest = chunk.fragments[0]
    by_number = np.zeros(chunk.fragments[-1] + 1 - lowest, np.int64)
    by_number[np.array(chunk.fragments) - lowest] = sizes
    firsts = np.concatenate([[0], np.cumsum(by_number)]).astype(np.uint32)
    return chunk.uploads.put(firsts, chunk.state.stream) - 4 * lowest, lowest + len(by_number)


def _joined_starts(chunk: ChunkMemory, column: ScanColumn, joined: JoinedDictionary) -> tuple[int, int]:
    """As `_dictionary_starts`, in the dictionaries of all fragments: nulls have a number of their own."""
    lowest, end = chunk.fragments[0], chunk.fragments[-1] + 1
    fragments = chunk.listed.resident.fragments[lowest:end]
    starts = [joined.firsts[str(fragment.path)] for fragment in fragments]
    last = starts[-1] + dictionary_size(fragments[-1], column.name)
    firsts = np.array([*starts, last, joined.dictionary.size], np.uint32)
    return chunk.uploads.put(firsts, chunk.state.stream) - 4 * lowest, end + 1


def _look_up_late(
    session: CudaSession, dictionary: Dictionary, *, nulls: bool
) -> Callable[[rmm.DeviceBuffer, int], Held]:
    return lambda places, rows: libcudf_rows.late_rows(session, dictionary, places, rows, nulls=nulls)


def _look_up(
    session: CudaSession, column: ScanColumn, values: plc.Column | None
) -> Callable[[rmm.DeviceBuffer, int], Held]:
    def decode_places(places: rmm.DeviceBuffer, rows: int) -> plc.Column:
        if values is None:
            return libcudf_rows.null_column(session, column.value_kind, rows)
        return libcudf_rows.look_up(session, values, places, rows)

    return decode_places


def _used_fragments(chunk: ChunkMemory, wanted: NDArray[np.bool_] | None) -> list[Fragment | None]:
    """Each piece's fragment; None where no row of it is selected."""
    return [
        piece.fragment if wanted is None or wanted[first] else None
        for piece, first in zip(chunk.rows.pieces, chunk.rows.firsts[:-1].tolist(), strict=True)
    ]
