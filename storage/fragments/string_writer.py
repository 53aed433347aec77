"""Writes strings and binary: offsets and bytes in two regions of the file, or payloads in one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import WritableFile
from bamquery.storage.format.file_region import FileRegion
from bamquery.storage.format.layout import VECTOR_ROWS, Extent, align
from bamquery.storage.fragments.fsst_writer import StringPacking
from bamquery.storage.fragments.validity import ValidityBuilder
from bamquery.storage.statistics.collect import StatisticsBuilder

_STAGE_ROWS: Final = 64 * VECTOR_ROWS
_STAGE_BYTES: Final = 4 << 20
_OFFSET_BYTES: Final = 8


class StringWriter:
    """Stages strings until whole vectors of them are there; memory is that of one piece of a chunk."""

    def __init__(
        self,
        file: WritableFile,
        start: int,
        *,
        type_: pa.DataType,
        rows: int,
        validity: ValidityBuilder,
        statistics: StatisticsBuilder,
        packing: StringPacking,
    ) -> None:
        self._utf8 = pa.types.is_large_string(type_)
        self._packing = packing
        self._validity = validity
        self._statistics = statistics
        self._offsets_region = FileRegion(file, start)
        self._values_region = FileRegion(file, align(start + _OFFSET_BYTES * (rows + 1)))
        self._payload_region = FileRegion(file, start)  # instead of both
        # Offset of each staged row, and where the last one ends.
        self._offsets = np.zeros(_STAGE_ROWS + 1, np.int64)
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
            end = int(self._offsets[self._staged])
            ends = _native.string_ends(offsets, first, rows, data.nbytes, nulls, first, end)
            used = end - int(self._offsets[0])
            self._reserve(used + int(ends[-1]) - end)
            _native.copy_strings(offsets, first, rows, data, nulls, first, self._data[used:])
            self._offsets[self._staged + 1 : self._staged + 1 + rows] = ends
            self._staged += rows
            done += rows
            if self._staged == _STAGE_ROWS or self._staged_bytes >= _STAGE_BYTES:
                self._flush(self._staged // VECTOR_ROWS * VECTOR_ROWS)

    def finish(self) -> tuple[Extent | None, Extent]:
        """See `bamquery.storage.fragments.column_writer.ValuesWriter.finish`."""
        self._flush(self._staged)
        if self._packing.packer is not None:
            return None, self._payload_region.finish()
        self._offsets_region.append([view(self._offsets[:1])])  # where the last string ends
        return self._offsets_region.finish(), self._values_region.finish()

    @property
    def _staged_bytes(self) -> int:
        return int(self._offsets[self._staged] - self._offsets[0])

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
        first, end = int(self._offsets[0]), int(self._offsets[rows])
        validity = self._validity.vectors(self._row)
        *found, ill_formed = _native.string_statistics(
            self._offsets[: rows + 1], rows, self._data[: end - first], first, validity, self._utf8
        )
        if ill_formed >= 0:
            raise ValueError(
                f"row {self._row + ill_formed} is not UTF-8: read the column as binary, or leave it out"
            )
        packed = self._packing.pack(self._offsets[: rows + 1], rows, self._data[: end - first], validity)
        if packed is None:
            self._statistics.add_strings(tuple(found))
            self._offsets_region.append([view(self._offsets[:rows])])
            self._values_region.append([view(self._data[: end - first])])
        else:
            payload, crcs = packed
            *bounds, nulls, _, _ = found
            self._statistics.add_strings((*bounds, nulls, crcs, np.empty(0, np.uint32)))
            self._payload_region.append([payload])
        left = self._staged_bytes - (end - first)
        rest = self._data[end - first : end - first + left].copy()
        if self._data.size > 2 * _STAGE_BYTES:  # one giant string must not keep its room for ever
            self._data = np.empty(max(left, _STAGE_BYTES), np.uint8)
        self._data[:left] = rest
        kept = self._staged - rows
        self._offsets[: kept + 1] = self._offsets[rows : self._staged + 1].copy()
        self._staged = kept
        self._row += rows
