"""Writes strings and binary: offsets and bytes in two regions of the file, or payloads in one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fsst_writer import StringPacking
from bamquery.storage.fragments.regions import ColumnSpace, Region
from bamquery.storage.fragments.validity import ValidityBuilder
from bamquery.storage.statistics.collect import StatisticsBuilder

_STAGE_ROWS: Final = 64 * VECTOR_ROWS
_STAGE_BYTES: Final = 4 << 20
_OFFSET_BYTES: Final = 8


class StringWriter:
    """Stages strings until whole vectors of them are there; memory is that of one piece of a chunk."""

    def __init__(
        self,
        space: ColumnSpace,
        *,
        type_: pa.DataType,
        validity: ValidityBuilder,
        statistics: StatisticsBuilder,
        packing: StringPacking,
    ) -> None:
        self._utf8 = pa.types.is_large_string(type_)
        self._packing = packing
        self._validity = validity
        self._statistics = statistics
        self._offsets = space.region()
        self._values = space.region(behind=_OFFSET_BYTES)
        self._payloads = space.region()  # instead of both
        # Offset of each staged row, and where the last one ends.
        self._ends = np.zeros(_STAGE_ROWS + 1, np.int64)
        self._data: NDArray[np.uint8] = np.empty(_STAGE_BYTES, np.uint8)
        self._staged = 0  # rows
        self._row = 0  # first row not written yet

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """Take the next chunk; ValueError where its offsets are damaged."""
        if not len(chunk):
            return
        buffers = chunk.buffers()
        nulls = buffers[0] if chunk.null_count else None
        data = view(buffers[2])
        offsets = np.frombuffer(view(buffers[1]), np.int64, chunk.offset + len(chunk) + 1)
        done = 0
        while done < len(chunk):
            first = chunk.offset + done
            rows = self._piece(offsets[first:])
            end = int(self._ends[self._staged])
            ends = _native.string_ends(offsets, first, rows, data.nbytes, nulls, first, end)
            used = end - int(self._ends[0])
            self._reserve(used + int(ends[-1]) - end)
            _native.copy_strings(offsets, first, rows, data, nulls, first, self._data[used:])
            self._ends[self._staged + 1 : self._staged + 1 + rows] = ends
            self._staged += rows
            done += rows
            if self._staged == _STAGE_ROWS or self._staged_bytes >= _STAGE_BYTES:
                self._flush(self._staged // VECTOR_ROWS * VECTOR_ROWS)

    def flush(self) -> None:
        """See `bamquery.storage.fragments.column_writer.ValuesWriter.flush`."""
        self._flush(self._staged // VECTOR_ROWS * VECTOR_ROWS)
        if not self._staged_bytes:
            self._data = np.empty(_STAGE_BYTES, np.uint8)  # pages that nobody touched take no memory

    def finish(self) -> tuple[Region | None, Region]:
        """See `bamquery.storage.fragments.column_writer.ValuesWriter.finish`."""
        self._flush(self._staged)
        if self._packing.packer is not None:
            return None, self._payloads
        self._offsets.append([view(self._ends[:1])])  # where the last string ends
        return self._offsets, self._values

    @property
    def _staged_bytes(self) -> int:
        return int(self._ends[self._staged] - self._ends[0])

    def _piece(self, offsets: NDArray[np.int64]) -> int:
        """Rows to take next, of those at `offsets`: at most a stage full of bytes, but at least one row."""
        room = min(_STAGE_ROWS - self._staged, len(offsets) - 1)
        limit = int(offsets[0]) + _STAGE_BYTES
        return max(int(np.searchsorted(offsets[1 : room + 1], limit, side="right")), 1)

    def _reserve(self, size: int) -> None:
        if size > self._data.size:
            grown = np.empty(max(size, 2 * self._data.size), np.uint8)
            used = self._staged_bytes
            grown[:used] = self._data[:used]
            self._data = grown

    def _flush(self, rows: int) -> None:
        """Write the first `rows` staged rows: whole vectors, or all that is left."""
        if not rows:
            return
        first, end = int(self._ends[0]), int(self._ends[rows])
        validity = self._validity.vectors(self._row)
        *found, ill_formed = _native.string_statistics(
            self._ends[: rows + 1], rows, self._data[: end - first], first, validity, self._utf8
        )
        if ill_formed >= 0:
            raise ValueError(
                f"row {self._row + ill_formed} is not UTF-8: read the column as binary, or leave it out"
            )
        packed = self._packing.pack(self._ends[: rows + 1], rows, self._data[: end - first], validity)
        if packed is None:
            self._statistics.add_strings(tuple(found))
            self._offsets.append([view(self._ends[:rows])])
            self._values.append([view(self._data[: end - first])])
        else:
            payload, crcs = packed
            *bounds, nulls, _, _ = found
            self._statistics.add_strings((*bounds, nulls, crcs, np.empty(0, np.uint32)))
            self._payloads.append([payload])
        left = self._staged_bytes - (end - first)
        rest = self._data[end - first : end - first + left].copy()
        if self._data.size > 2 * _STAGE_BYTES:  # one giant string must not keep its room for ever
            self._data = np.empty(max(left, _STAGE_BYTES), np.uint8)
        self._data[:left] = rest
        kept = self._staged - rows
        self._ends[: kept + 1] = self._ends[rows : self._staged + 1].copy()
        self._staged = kept
        self._row += rows
