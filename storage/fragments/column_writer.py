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
from bamquery.storage.format.file_region import FileTail
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
from bamquery.storage.fragments.regions import ColumnSpace, FileSpace, Region
from bamquery.storage.fragments.row_source import require_type
from bamquery.storage.fragments.string_writer import StringWriter
from bamquery.storage.fragments.validity import ValidityBuilder
from bamquery.storage.statistics.collect import StatisticsBuilder
from bamquery.storage.statistics.packed_parts import may_have_packed_parts
from bamquery.storage.statistics.parts import has_parts, part_columns, part_statistics
from bamquery.storage.statistics.type_bounds import first_outside

_STAGE_BYTES: Final = 4 << 20
_FIRST_BYTES: Final = 8 << 10
"""Of booleans' bits, of which there is room for more once more come."""
_DIRECT_ROWS: Final = 64 * VECTOR_ROWS
"""Chunks shorter than this are staged: many small writes would cost more than the copy."""


@dataclass(frozen=True)
class WrittenColumn:
    """What is known of a column once all of it is written."""

    layout: ColumnLayout
    null_count: int
    statistics: pa.StructArray
    cells: NDArray[np.int64] | None = None
    """Of a packed column: where its payloads end, which is written to where `layout` is to say."""


class ValuesWriter(Protocol):
    """Writes the values of one column, and its offsets where it has them."""

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """Take the next chunk, which starts at `row`; its validity is in the builder already."""
        ...

    def flush(self) -> None:
        """Keep no more rows than make no vector yet; it may be long until more come."""
        ...

    def finish(self) -> tuple[Region | None, Region]:
        """Add what is left; the regions of offsets and values."""
        ...


class ColumnWriter:
    """A column while its rows come, and until it is in its fragment's file."""

    def __init__(
        self,
        type_: Any,
        space: ColumnSpace,
        *,
        dictionary: pa.Array[Any] | None = None,
        encoding: Encoding = "plain",
        rows: int = 0,
    ) -> None:
        """`space` is for its bytes. With `encoding` "auto" it may be packed, and codes of dictionaries are.

        `dictionary`: for columns of that type, the values that `unify` found. `rows`: how many are to be
        expected.
        """
        self.rows = 0
        """How many came."""
        self._type = type_
        self._space = space
        self._dictionary = dictionary
        self._stored_type = stored_type = type_ if dictionary is None else type_.index_type
        self._reindex = None if dictionary is None else Reindexer(type_, dictionary)
        self._validity = validity = ValidityBuilder(rows)
        self._statistics = statistics = StatisticsBuilder()
        self._packing = packing = Packing(
            stored_type,
            can_pack(stored_type, encoding),
            always=dictionary is not None,
            parts=dictionary is None and may_have_packed_parts(type_),
        )
        self._strings = StringPacking(can_pack(stored_type, encoding))
        self._writer: ValuesWriter
        if is_string_like(stored_type):
            self._writer = StringWriter(
                space, type_=stored_type, validity=validity, statistics=statistics, packing=self._strings
            )
        elif pa.types.is_boolean(stored_type):
            self._writer = BitWriter(space.region(), validity, statistics, packing)
        else:
            self._writer = FixedWriter(
                space.region(), stored_type, validity, statistics, packing, dictionary=dictionary
            )

    @property
    def held_bytes(self) -> int:
        """Of memory that the rows take which came before the last `flush`."""
        bits = -(-self.rows // 8) if pa.types.is_boolean(self._stored_type) else 0
        return self._space.held_bytes + self._validity.held_bytes + bits

    def add(self, chunk: pa.Array[Any]) -> None:
        """Take the next rows.

        Raises:
            ValueError: the chunk is of another type, or damaged.
            StorageError: the file cannot be written.
        """
        require_type(chunk, self._type)
        stored = chunk if self._reindex is None else self._reindex(chunk)
        self._validity.add(stored, self.rows)
        self._writer.add(stored, self.rows)
        self.rows += len(chunk)

    def flush(self) -> None:
        """See `ValuesWriter.flush`."""
        self._writer.flush()

    def finish(self, tail: FileTail, dictionary: DictionaryLayout | None = None) -> WrittenColumn:
        """No rows follow: what is not yet in the file is written there; `dictionary`: where its values are.

        Raises:
            StorageError: the file cannot be written, or a value is outside of its type.
        """
        bitmap = self._validity.finish()
        offset_region, region = self._writer.finish()
        offsets = None
        if offset_region is not None:
            offsets = offset_region.place(tail.file, tail.position)
            tail.position = align(offsets.end)
        extent = region.place(tail.file, tail.position)
        tail.position = align(extent.end)
        packer = self._packing.packer if self._strings.packer is None else self._strings.packer
        validity_extent = None
        validity_crcs = None
        encoded = None
        if packer is not None:
            encoded = _packed_layout(packer, has_nulls=bitmap is not None)
            if tail.position - extent.end < LOAD_BYTES:
                tail.append([bytes(ALIGNMENT)])
        elif bitmap is not None:
            validity_extent = tail.append([view(bitmap)])
            validity_crcs = _native.strided_crcs(bitmap, VECTOR_ROWS // 8)
        layout = ColumnLayout(validity_extent, offsets, extent, dictionary, encoded)
        rows = self._vector_statistics(validity_crcs, packer)
        cells = None if packer is None else np.append(_payload_starts(packer), extent.length)
        return WrittenColumn(layout, self._statistics.null_count, rows, cells)

    def _vector_statistics(
        self, validity_crcs: NDArray[np.uint32] | None, packer: Packer | StringPacker | None
    ) -> pa.StructArray:
        values, type_ = self._dictionary, self._stored_type
        decoded = values is not None and pa.types.is_floating(values.type)
        found = self._statistics.finish(
            values.type if decoded and values is not None else type_,
            self.rows,
            validity_crcs,
            None if decoded else values,
            parts=_part_columns(self._type, self._statistics, packer),
            packing=None if packer is None else packer.parameters,
        )
        for bound in ("min", "max"):
            # Nothing is committed that could not be read again; what comes from outside was looked at before.
            outside = first_outside(found.field(bound))
            if outside is not None:
                raise StorageError(f"a value cannot be stored: {type_name(self._type)} {outside[1]}")
        return found


def write_column(
    tail: FileTail,
    type_: Any,
    rows: int,
    chunks: Iterable[pa.Array[Any]],
    *,
    dictionary: tuple[pa.Array[Any], DictionaryLayout] | None = None,
    encoding: Encoding = "plain",
) -> WrittenColumn:
    """Write the buffers of a column of exactly `rows` rows, whose chunks go to the file as they come.

    `dictionary`: its values and where they are written. See `ColumnWriter`.

    Raises:
        StorageError: the file cannot be written, or a value is outside of its type.
        ValueError: the chunks are not `rows` rows of `type_`.
    """
    values, layout = (None, None) if dictionary is None else dictionary
    space = FileSpace(tail.file, tail.position, rows)
    writer = ColumnWriter(type_, space, dictionary=values, encoding=encoding, rows=rows)
    for chunk in chunks:
        if writer.rows + len(chunk) > rows:
            raise ValueError(f"{writer.rows + len(chunk)} rows instead of {rows}")
        writer.add(chunk)
    if writer.rows != rows:
        raise ValueError(f"{writer.rows} rows instead of {rows}")
    return writer.finish(tail, layout)


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
        region: Region,
        validity: ValidityBuilder,
        statistics: StatisticsBuilder,
        packing: Packing,
    ) -> None:
        self._packing = packing
        self._region = region
        self._rows = 0
        self._validity = validity
        self._statistics = statistics
        self._values: NDArray[np.uint8] = np.zeros(_FIRST_BYTES, np.uint8)

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """See `ValuesWriter.add`."""
        self._rows = row + len(chunk)
        size = -(-self._rows // 8)
        if size > self._values.size:
            grown = np.zeros(max(size, 2 * self._values.size), np.uint8)
            grown[: self._values.size] = self._values
            self._values = grown
        _native.copy_bits(chunk.buffers()[1], chunk.offset, len(chunk), self._values, row)

    def flush(self) -> None:
        """See `ValuesWriter.flush`; all stay, which are few bytes."""

    def finish(self) -> tuple[Region | None, Region]:
        """See `ValuesWriter.finish`."""
        values = self._values[: -(-self._rows // 8)]
        bitmap = self._validity.vectors(0)
        if bitmap is not None:
            values &= bitmap
        found = _native.vector_statistics("bool", values, bitmap, self._rows)
        stored, crcs = self._packing.pack(view(values), bitmap, self._rows)
        self._statistics.add_fixed((*found[:4], found[4] if crcs is None else crcs))
        self._region.append([stored])
        return None, self._region


class FixedWriter:
    """Values of 1 to 16 bytes."""

    def __init__(
        self,
        region: Region,
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
                self._emit_staged()
                take = min(left // VECTOR_ROWS * VECTOR_ROWS, self._stage_rows)
                first = (chunk.offset + done) * self._width
                self._emit(values[first : first + take * self._width], take)
            else:
                take = min(left, self._stage_rows - self._staged)
                if direct and left >= _DIRECT_ROWS + to_boundary:
                    take = to_boundary
                self._copy(values, chunk.offset + done, take, nulls)
            done += take

    def flush(self) -> None:
        """See `ValuesWriter.flush`."""
        rows = self._staged // VECTOR_ROWS * VECTOR_ROWS
        if rows:
            stage, size = self._stage, rows * self._width
            self._emit(view(stage)[:size], rows)
            self._staged -= rows
            rest = stage[size : size + self._staged * self._width]
            self._stage = np.empty(stage.size if rest.size else 0, np.uint8)
            self._stage[: rest.size] = rest

    def finish(self) -> tuple[Region | None, Region]:
        """See `ValuesWriter.finish`."""
        self._emit_staged()
        return None, self._region

    def _copy(self, values: memoryview, first: int, rows: int, nulls: pa.Buffer | None) -> None:
        if not self._stage.size:
            self._stage = np.empty(self._stage_rows * self._width, np.uint8)
        _native.copy_values(values, first, rows, self._width, nulls, first, self._stage, self._staged)
        self._staged += rows
        if self._staged == self._stage_rows:
            self._emit_staged()

    def _emit_staged(self) -> None:
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
