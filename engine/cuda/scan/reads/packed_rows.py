"""Columns of selected rows, out of packed vectors that are in the GPU's memory."""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.storage.format.layout import VECTOR_ROWS

_ROWS: Final = struct.Struct("<8Q2I")
"""PackedRows: a ScanPacked without payloads, places, positions, rows, bytes of a block."""


def gather_packed(
    chunk: ChunkMemory, column: str, kind: pa.DataType, packed: bytes, selection: Selection
) -> DeviceColumn:
    """The selection's values of a column of type `kind`, whose vectors (a ScanPacked) were loaded."""
    bits, rows = row_bits(chunk.buffers(column)[0].bits), selection.rows
    define = value_define(kind)
    has_nulls = chunk.nulls(column) is not None
    if selection.everything:
        return _unpack(chunk, kind, bits, packed, selection, define, has_nulls=has_nulls)
    data = chunk.allocate(pad_size(rows * bits // 8), f'reading column "{column}"')
    valid = chunk.allocate(rows, "reading nulls") if has_nulls else None
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("packed/gather", "scan_packed_gather", define),
        *(packed, selection.positions.ptr, rows, data.ptr, None if valid is None else valid.ptr),
        grid=launcher.grid(rows),
        stream=chunk.state.stream,
    )
    found = DeviceColumn(kind, bits, rows, data)
    if valid is not None:
        found.validity, found.nulls = pack_validity(chunk, valid, rows)
    return found


def pack_rows(chunk: ChunkMemory, column: str, places: int, selection: Selection, block_bytes: int) -> bytes:
    """The PackedRows of a selection: a packed column's vectors, without payloads; `places` in files.

    `block_bytes`: of what is counted.
    """
    return _ROWS.pack(
        *(chunk.parameters(column), 0, 0, chunk.vectors, chunk.listed.resident.scales(column)),
        *(chunk.vector_rows, places, selection.positions.ptr, selection.rows, block_bytes),
    )


def value_define(kind: pa.DataType) -> str:
    """For kernels, what values are in CUDA C++, as far as their bits tell; booleans have a byte."""
    if pa.types.is_floating(kind):
        c_type = "double" if kind.bit_width == 64 else "float"
    elif pa.types.is_decimal64(kind):
        c_type = "ScanNarrowDecimal"
    elif pa.types.is_decimal(kind):
        c_type = "ScanDecimal"
    else:
        c_type = f"uint{row_bits(kind.bit_width)}_t"
    return f"BAMQUERY_SCAN_TYPE={c_type}"


def _unpack(  # noqa: PLR0917 - as gather_packed
    chunk: ChunkMemory,
    kind: pa.DataType,
    bits: int,
    packed: bytes,
    selection: Selection,
    define: str,
    *,
    has_nulls: bool,
) -> DeviceColumn:
    """All rows of a chunk that leaves no position out."""
    count = chunk.rows.count
    data = chunk.allocate(count * VECTOR_ROWS * bits // 8, "unpacking a column")
    found = DeviceColumn(kind, bits, selection.rows, data)
    if has_nulls:
        found.validity = chunk.allocate(count * VECTOR_ROWS // 8, "reading nulls")
        found.nulls = chunk.board.take(4)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("packed/gather", "scan_packed_unpack", define),
        *(packed, count, data.ptr, None if found.validity is None else found.validity.ptr),
        None if found.nulls is None else found.nulls.address,
        grid=launcher.grid(count, WARPS),
        stream=chunk.state.stream,
    )
    return found
