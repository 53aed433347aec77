"""Columns of selected rows, out of vectors that are in the GPU's memory."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.storage.format.layout import VECTOR_ROWS


def gather_column(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory,
    kind: pa.DataType,
    bits: int,
    values: rmm.DeviceBuffer,
    validity: rmm.DeviceBuffer | None,
    nulls: NullStates | None,
    selection: Selection,
    slots: int | None = None,
    validity_slots: int | None = None,
) -> DeviceColumn:
    """The selection's values of a column whose vectors were loaded.

    Args:
        chunk: whose vectors they are.
        kind: the column's type.
        bits: of a value as it is stored.
        values: the vectors.
        validity: the bitmaps of vectors that have nulls and values.
        nulls: their states; None: no row is null.
        selection: the rows.
        slots: where `values` has each vector, as words on the GPU; None: in their order.
        validity_slots: the same for `validity`.
    """
    data = values
    if bits == 1 or not (selection.everything and slots is None):
        data = gather(chunk, values, bits, selection.positions.ptr, slots, selection.rows)
    column = DeviceColumn(kind, row_bits(bits), selection.rows, data)
    if nulls is not None:
        bitmap = gather_validity(chunk, validity, nulls, selection, validity_slots)
        column.validity, column.nulls = bitmap
    return column


def gather_validity(
    chunk: ChunkMemory,
    validity: rmm.DeviceBuffer | None,
    nulls: NullStates,
    selection: Selection,
    slots: int | None = None,
) -> tuple[rmm.DeviceBuffer, Slot]:
    """A bitmap of the selection's rows, and the word with the number of nulls; see `gather_column`."""
    valid = chunk.allocate(selection.rows, "reading nulls")
    positions = selection.positions.ptr
    chunk.launch(
        "scan_gather",
        "scan_valid_by_vector",
        *(nulls.address, positions, selection.rows, valid.ptr),
        items=selection.rows,
    )
    if validity is not None:
        chunk.launch(
            "scan_gather",
            "scan_gather_valid",
            *(validity.ptr, nulls.address, positions, slots, selection.rows, valid.ptr),
            items=selection.rows,
        )
    return pack_validity(chunk, valid, selection.rows)


def gather(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory, values: rmm.DeviceBuffer, bits: int, positions: int, slots: int | None, rows: int
) -> rmm.DeviceBuffer:
    """Values at positions; bits become bytes."""
    data = chunk.allocate(pad_size(rows * row_bits(bits) // 8), "reading a column")
    chunk.launch(
        "scan_gather", f"scan_gather_{bits}", values.ptr, positions, slots, rows, data.ptr, items=rows
    )
    return data


def take(chunk: ChunkMemory, column: DeviceColumn, places: int, rows: int) -> DeviceColumn:
    """The rows of a column at `rows` places, words on the GPU."""
    data = gather(chunk, column.data, column.bits, places, None, rows)
    taken = replace(column, rows=rows, data=data, validity=None, nulls=None)
    if column.validity is not None:
        valid = gather(chunk, column.validity, 1, places, None, rows)
        taken.validity, taken.nulls = pack_validity(chunk, valid, rows)
    return taken


def pack_validity(chunk: ChunkMemory, valid: rmm.DeviceBuffer, rows: int) -> tuple[rmm.DeviceBuffer, Slot]:
    """A bitmap made of one byte a row, and the word with the number of nulls."""
    bitmap = chunk.allocate(-(-rows // VECTOR_ROWS) * VECTOR_ROWS // 8, "reading nulls")
    nulls = chunk.board.take(4)
    chunk.launch("scan_gather", "scan_pack_bits", *(valid.ptr, rows, bitmap.ptr, nulls.address), items=rows)
    return bitmap, nulls


def pad_size(size: int) -> int:
    """Kernels load 16 bytes at a time."""
    return -(-size // 16) * 16
