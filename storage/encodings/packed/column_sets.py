"""Several packed columns of a mapped file, read by one native call without Python's lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.fixed_width import of_vectors
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.format.storable_types import value_bits
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader

_PAYLOAD, _VECTORS, _ROWS = range(3)
"""What becomes of a column's rows: see `Wanted` in column_binding.cpp."""

WRONG_VALUES: Final = "its values do not match their checksum"


@dataclass(slots=True, eq=False)
class ColumnRequest:
    """What is wanted of a column.

    Attributes:
        vectors: those to be read, one or more.
        rows: of these, rows that are wanted; None: all.
        packed: whether vectors are wanted as they are stored.
        lengths: bytes of what codes stand for, where they are those of a dictionary.
    """

    column: PackedColumn
    vectors: NDArray[np.int64]
    rows: NDArray[np.int64] | None
    packed: bool
    lengths: NDArray[np.int64] | None = None


@dataclass(slots=True, eq=False)
class ReadColumn:
    """What was read.

    Attributes:
        values: the column's, codes none of which is beyond its dictionary; or its vectors.
        counters: what that took.
        string_bytes: of what its rows' codes stand for.
    """

    values: pa.Array[Any] | PackedVectors
    counters: ReadCounters
    string_bytes: int


def read_columns(
    reader: MappedReader, requests: Sequence[ColumnRequest], *, verify: bool
) -> list[ReadColumn]:
    """The columns' values, or their vectors where these are wanted packed.

    Raises:
        CorruptionError: bytes are not those that were written.
        StorageError: the file cannot be read.
    """
    spans = _spans(requests)
    asked = [_native_request(*one) for one in zip(requests, spans, strict=True)]

    def read(file: _native.BlockFile) -> list[tuple[int, int, int, int, int]]:
        return _native.read_packed_columns(file, asked, verify)

    try:
        counts = reader.read_together(read, spans)
    except ValueError as error:
        raise _corrupt(requests, str(error)) from error
    found = []
    for request, (_, kind, _, values, bitmap, _), answer in zip(requests, asked, counts, strict=True):
        commands, blocks, mismatch, nulls, strings = answer
        place = request.column.place
        if mismatch >= 0:
            raise place.corrupt(mismatch, WRONG_VALUES)
        if strings < 0:
            raise CorruptionError(f'column "{place.name}" refers to values beyond its dictionary', place.path)
        if kind == _PAYLOAD:
            lengths = of_vectors(request.column.payload_sizes, request.vectors)
            held: pa.Array[Any] | PackedVectors = request.column.hold(request.vectors, values, lengths)
        else:
            buffers = [bitmap if nulls else None, values]
            held = pa.Array.from_buffers(place.type, _rows_of(request), buffers, nulls)
        found.append(ReadColumn(held, reader.counters(commands, blocks), strings))
    return found


def _spans(requests: Sequence[ColumnRequest]) -> list[tuple[int, int]]:
    """Where in the file the payloads begin and end; mostly of the same vectors of each column."""
    found, vectors, first, last = [], None, 0, 0
    for request in requests:
        if request.vectors is not vectors:
            vectors = request.vectors
            first, last = int(vectors[0]), int(vectors[-1])
        found.append(request.column.span_of(first, last))
    return found


def _native_request(
    request: ColumnRequest, span: tuple[int, int]
) -> tuple[_native.PackedColumn, int, Any, Any, Any, Any]:
    column, vectors = request.column, request.vectors
    if request.packed:
        whole = len(vectors) == int(vectors[-1]) - int(vectors[0]) + 1
        size = span[1] - span[0] if whole else int(column.payload_sizes[vectors].sum())
        return column.native, _PAYLOAD, vectors, pa.allocate_buffer(size), None, None
    rows = _rows_of(request)
    values = pa.allocate_buffer(-(-rows * value_bits(column.place.type) // 8))
    bitmap = pa.allocate_buffer(-(-rows // 8))
    if request.rows is None:
        return column.native, _VECTORS, request.vectors, values, bitmap, request.lengths
    return column.native, _ROWS, request.rows, values, bitmap, request.lengths


def _rows_of(request: ColumnRequest) -> int:
    if request.rows is not None:
        return len(request.rows)
    return request.column.place.count_rows(request.vectors)


def _corrupt(requests: Sequence[ColumnRequest], message: str) -> CorruptionError:
    """Of which column an error is, is not said where there are several."""
    place = requests[0].column.place
    if len(requests) == 1:
        return place.corrupt_column(message)
    names = ", ".join(f'"{request.column.place.name}"' for request in requests)
    return CorruptionError(f"one of the columns {names}: {message}", place.path)
