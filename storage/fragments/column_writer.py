"""Writes one column of a fragment as its chunks stream past, in whole vectors, with their statistics.

Chunks come in any length; pieces of whole vectors go out. Long chunks without nulls are written from where
they are; others pass through a staging buffer, in which values under nulls become zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.data_types.names import type_name
from bamquery.errors import StorageError
from bamquery.storage.encodings.packed.parameters import payload_starts
from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import WritableFile
from bamquery.storage.format.file_region import FileRegion
from bamquery.storage.format.layout import (
    ALIGNMENT,
    LOAD_BYTES,
    VECTOR_ROWS,
    ColumnLayout,
    DictionaryLayout,
    Encoding,
    Extent,
    PackedLayout,
    align,
)
from bamquery.storage.format.storable_types import is_string_like, value_kind
from bamquery.storage.fragments.choose_packing import can_pack
from bamquery.storage.fragments.dictionaries import Reindexer
from bamquery.storage.fragments.fsst_writer import StringPacker, StringPacking
from bamquery.storage.fragments.packed_writer import Packer, Packing
from bamquery.storage.fragments.string_writer import StringWriter
from bamquery.storage.fragments.validity import ValidityBuilder
from bamquery.storage.statistics.collect import StatisticsBuilder
from bamquery.storage.statistics.packed_parts import may_have_packed_parts
from bamquery.storage.statistics.parts import has_parts, part_columns, part_statistics
from bamquery.storage.statistics.type_bounds import first_outside

_STAGE_BYTES: Final = 4 << 20
_DIRECT_ROWS: Final = 64 * VECTOR_ROWS
"""Chunks shorter than this are staged: many small writes would cost more than the copy."""


@dataclass(frozen=True)
class WrittenColumn:
    """What is known of a column once all of it is written."""

    layout: ColumnLayout
    null_count: int
    statistics: pa.StructArray
    end: int
    """Where the next buffer may start."""
    cells: NDArray[np.int64] | None = None
    """Of a packed column: where its payloads end, which is written to where `layout` is to say."""


class ValuesWriter(Protocol):
    """Writes the values of one column, and its offsets where it has them."""

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """Take the next chunk, which starts at `row`; its validity is in the builder already."""
        ...

    def finish(self) -> tuple[Extent | None, Extent]:
        """Write what is left; the extents of offsets and values."""
        ...


def write_column(
    file: WritableFile,
    start: int,
    type_: Any,
    rows: int,
    chunks: Iterable[pa.Array[Any]],
    *,
    dictionary: tuple[pa.Array[Any], DictionaryLayout] | None = None,
    encoding: Encoding = "plain",
) -> WrittenColumn:
    """Write the buffers of a column of exactly `rows` rows from the aligned offset `start` on.

    `dictionary`: for columns of that type, the values that `unify` found, and where they are written.
    `encoding`: whether it may be packed; codes of dictionaries then always are.

    Raises:
        StorageError: the file cannot be written, or a value is outside of its type.
        ValueError: the chunks are not `rows` rows of `type_`.
    """
    values = None if dictionary is None else dictionary[0]
    stored_type = type_ if values is None else type_.index_type
    reindex = None if values is None else Reindexer(type_, values)
    validity = ValidityBuilder(rows)
    statistics = StatisticsBuilder()
    writer: ValuesWriter
    packing = Packing(
        stored_type,
        can_pack(stored_type, encoding),
        always=values is not None,
        parts=values is None and may_have_packed_parts(type_),
    )
    strings = StringPacking(can_pack(stored_type, encoding))
    if is_string_like(stored_type):
        writer = StringWriter(
            file,
            start,
            type_=stored_type,
            rows=rows,
            validity=validity,
            statistics=statistics,
            packing=strings,
        )
    elif pa.types.is_boolean(stored_type):
        writer = BitWriter(FileRegion(file, start), rows, validity, statistics, packing)
    else:
        writer = FixedWriter(
            FileRegion(file, start), stored_type, validity, statistics, packing, dictionary=values
        )
    row = 0
    for chunk in chunks:
        if chunk.type != type_ or row + len(chunk) > rows:
            raise ValueError(f"{len(chunk)} rows of {chunk.type} at row {row}, of {rows} rows of {type_}")
        stored = chunk if reindex is None else reindex(chunk)
        validity.add(stored, row)
        writer.add(stored, row)
        row += len(chunk)
    if row != rows:
        raise ValueError(f"{row} rows instead of {rows}")
    offsets, extent = writer.finish()
    end = align(extent.end)
    packer = packing.packer if strings.packer is None else strings.packer
    validity_extent = None
    validity_crcs = None
    bitmap = validity.bitmap
    encoded = None
    if packer is not None:
        encoded = _packed_layout(packer, has_nulls=bitmap is not None)
        if end - extent.end < LOAD_BYTES:
            file.write_at(end, [bytes(ALIGNMENT)])
            end += ALIGNMENT
    elif bitmap is not None:
        region = FileRegion(file, end)
        region.append([view(bitmap)])
        validity_extent = region.finish()
        end = align(validity_extent.end)
        validity_crcs = _native.strided_crcs(bitmap, VECTOR_ROWS // 8)
    layout = ColumnLayout(
        validity_extent, offsets, extent, None if dictionary is None else dictionary[1], encoded
    )
    decoded = values is not None and pa.types.is_floating(values.type)
    rows_of_statistics = statistics.finish(
        values.type if decoded and values is not None else stored_type,
        rows,
        validity_crcs,
        None if decoded else values,
        parts=_part_columns(type_, statistics, packer),
        packing=None if packer is None else packer.parameters,
    )
    for bound in ("min", "max"):
        # Nothing is committed that could not be read again; what comes from outside was looked at before.
        outside = first_outside(rows_of_statistics.field(bound))
        if outside is not None:
            raise StorageError(f"a value cannot be stored: {type_name(type_)} {outside[1]}")
    cells = None if packer is None else np.append(_payload_starts(packer), extent.length)
    return WrittenColumn(layout, statistics.null_count, rows_of_statistics, end, cells)


def _packed_layout(packer: Packer | StringPacker, *, has_nulls: bool) -> PackedLayout:
    """Of a packed column; where its cells end is known later."""
    nowhere = Extent(0, 0)
    if isinstance(packer, Packer):
        return PackedLayout(packer.choice.divisor, packer.choice.origin, has_nulls=has_nulls, cells=nowhere)
    return PackedLayout(
        1, 0, has_nulls=has_nulls, cells=nowhere, plain_bytes=packer.plain_bytes, symbols=packer.symbols
    )


def _payload_starts(packer: Packer | StringPacker) -> NDArray[np.int64]:
    if isinstance(packer, Packer):
        return payload_starts(packer.parameters)
    starts: NDArray[np.int64] = packer.parameters["offset"].astype(np.int64)
    return starts


def _part_columns(
    type_: Any, statistics: StatisticsBuilder, packer: Packer | StringPacker | None
) -> dict[str, Any]:
    """What the vectors file has of the column's parts."""
    if isinstance(packer, Packer):
        return packer.part_columns()
    return part_columns(type_, statistics.parts) if has_parts(type_) and packer is None else {}


class BitWriter:
    """Booleans: few enough bytes to keep until all are there."""

    def __init__(
        self,
        region: FileRegion,
        rows: int,
        validity: ValidityBuilder,
        statistics: StatisticsBuilder,
        packing: Packing,
    ) -> None:
        self._packing = packing
        self._region = region
        self._rows = rows
        self._validity = validity
        self._statistics = statistics
        self._values = np.zeros(-(-rows // 8), np.uint8)

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """See `ValuesWriter.add`."""
        _native.copy_bits(chunk.buffers()[1], chunk.offset, len(chunk), self._values, row)

    def finish(self) -> tuple[Extent | None, Extent]:
        """See `ValuesWriter.finish`."""
        bitmap = self._validity.bitmap
        if bitmap is not None:
            self._values &= bitmap
        found = _native.vector_statistics("bool", self._values, bitmap, self._rows)
        stored, crcs = self._packing.pack(view(self._values), bitmap, self._rows)
        self._statistics.add_fixed((*found[:4], found[4] if crcs is None else crcs))
        self._region.append([stored])
        return None, self._region.finish()


class FixedWriter:
    """Values of 1 to 16 bytes."""

    def __init__(
        self,
        region: FileRegion,
        type_: pa.DataType,
        validity: ValidityBuilder,
        statistics: StatisticsBuilder,
        packing: Packing,
        *,
        dictionary: pa.Array[Any] | None = None,
    ) -> None:
        self._packing = packing
        self._region = region
        self._kind = value_kind(type_)
        self._width = int(type_.bit_width) // 8
        self._validity = validity
        self._statistics = statistics
        self._parts = dictionary is None and has_parts(type_)
        # NaN among its values: minimum and maximum do not follow from the order of a dictionary's indexes.
        self._floats: NDArray[Any] | None = None
        if dictionary is not None and pa.types.is_floating(dictionary.type):
            # Null rows have index 0, also where the dictionary is empty.
            known = dictionary.to_numpy(zero_copy_only=False)
            self._floats = known if known.size else np.zeros(1, known.dtype)
        self._stage_rows = _STAGE_BYTES // self._width // VECTOR_ROWS * VECTOR_ROWS
        self._stage: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._staged = 0  # rows
        self._row = 0  # first row not written yet

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """See `ValuesWriter.add`."""
        if not len(chunk):
            return
        buffers: Any = chunk.buffers()
        values = view(buffers[1])
        nulls = buffers[0] if chunk.null_count else None
        direct = nulls is None and buffers[1].address % self._width == 0
        done = 0
        while done < len(chunk):
            left = len(chunk) - done
            to_boundary = -self._staged % VECTOR_ROWS
            if direct and to_boundary == 0 and left >= _DIRECT_ROWS:
                self._flush()
                take = min(left // VECTOR_ROWS * VECTOR_ROWS, self._stage_rows)
                first = (chunk.offset + done) * self._width
                self._emit(values[first : first + take * self._width], take)
            else:
                take = min(left, self._stage_rows - self._staged)
                if direct and left >= _DIRECT_ROWS + to_boundary:
                    take = to_boundary
                self._copy(values, chunk.offset + done, take, nulls)
            done += take

    def finish(self) -> tuple[Extent | None, Extent]:
        """See `ValuesWriter.finish`."""
        self._flush()
        return None, self._region.finish()

    def _copy(self, values: memoryview, first: int, rows: int, nulls: pa.Buffer | None) -> None:
        if not self._stage.size:
            self._stage = np.empty(self._stage_rows * self._width, np.uint8)
        _native.copy_values(values, first, rows, self._width, nulls, first, self._stage, self._staged)
        self._staged += rows
        if self._staged == self._stage_rows:
            self._flush()

    def _flush(self) -> None:
        if self._staged:
            self._emit(view(self._stage)[: self._staged * self._width], self._staged)
            self._staged = 0

    def _emit(self, values: memoryview, rows: int) -> None:
        validity = self._validity.vectors(self._row)
        found = _native.vector_statistics(self._kind, values, validity, rows)
        if self._floats is not None:
            decoded = self._floats[np.frombuffer(values, self._kind)]
            by_value = _native.vector_statistics(str(decoded.dtype), decoded, validity, rows)
            found = (*by_value[:4], found[4])
        stored, crcs = self._packing.pack(values, validity, rows)
        self._statistics.add_fixed((*found[:4], found[4] if crcs is None else crcs))
        if self._parts and crcs is None:
            self._statistics.parts.append(part_statistics(self._kind, values, validity, rows))
        self._region.append([stored])
        self._row += rows
