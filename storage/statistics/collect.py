"""Statistics of vectors: collected while a column is written, kept as one row a vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS, vector_count
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.statistics.parts import PartStatistics

Bytes: TypeAlias = NDArray[np.uint8]

_PREFIX_BYTES: Final = 16
_NO_PREFIX: Final = 255


@dataclass(frozen=True)
class ColumnStatistics:
    """Of a whole fragment's column: counts, and bounds of the values that are neither null nor NaN.

    Bounds are values of the column's (or its dictionary's) type: the very minimum and maximum, except for
    strings, of which they are cut after 16 bytes. None where there is no such value, or no bound.
    """

    minimum: pa.Scalar[Any] | None
    maximum: pa.Scalar[Any] | None
    null_count: int
    nan_count: int


@dataclass
class StatisticsBuilder:
    """Collects what the native statistics functions return for consecutive pieces of one column."""

    minima: list[Bytes] = field(default_factory=list)
    maxima: list[Bytes] = field(default_factory=list)
    minimum_lengths: list[Bytes] = field(default_factory=list)
    maximum_lengths: list[Bytes] = field(default_factory=list)
    null_counts: list[NDArray[np.uint16]] = field(default_factory=list)
    nan_counts: list[NDArray[np.uint16]] = field(default_factory=list)
    values_crcs: list[NDArray[np.uint32]] = field(default_factory=list)
    offsets_crcs: list[NDArray[np.uint32]] = field(default_factory=list)
    parts: list[PartStatistics] = field(default_factory=list)
    """Of plain columns that have some."""

    def add_fixed(self, statistics: tuple[Any, ...]) -> None:
        """What `_native.vector_statistics` returned."""
        lists: tuple[list[Any], ...] = (
            self.minima,
            self.maxima,
            self.null_counts,
            self.nan_counts,
            self.values_crcs,
        )
        for values, more in zip(lists, statistics, strict=True):
            values.append(more)

    def add_strings(self, statistics: tuple[Any, ...]) -> None:
        """What `_native.string_statistics` returned."""
        lists: tuple[list[Any], ...] = (
            self.minima,
            self.minimum_lengths,
            self.maxima,
            self.maximum_lengths,
            self.null_counts,
            self.values_crcs,
            self.offsets_crcs,
        )
        for values, more in zip(lists, statistics, strict=True):
            values.append(more)

    @property
    def null_count(self) -> int:
        """Nulls so far."""
        return sum(int(counts.sum()) for counts in self.null_counts)

    def finish(
        self,
        type_: pa.DataType,
        rows: int,
        validity_crcs: NDArray[np.uint32] | None,
        dictionary: pa.Array[Any] | None = None,
        *,
        parts: Mapping[str, Any] = MappingProxyType({}),
        packing: NDArray[Any] | None = None,
    ) -> pa.StructArray:
        """One struct a vector: min, max, null_count, values_crc; where they apply nan_count and more CRCs.

        `parts`: what the vectors file has of the column's parts, which comes behind. `packing`: decode
        parameters.

        With a dictionary, minima and maxima are indexes of type `type_` into it, in its order.
        """
        null_counts = _concatenate(self.null_counts, np.uint16)
        nan_counts = _concatenate(self.nan_counts, np.uint16)
        if is_string_like(type_):
            minima = _strings(
                type_, _concatenate(self.minima, np.uint8), _concatenate(self.minimum_lengths, np.uint8)
            )
            maxima = _strings(
                type_, _concatenate(self.maxima, np.uint8), _concatenate(self.maximum_lengths, np.uint8)
            )
        else:
            counts = np.full(vector_count(rows), VECTOR_ROWS)
            if rows % VECTOR_ROWS:
                counts[-1] = rows % VECTOR_ROWS
            skipped = null_counts.astype(np.int64)
            if nan_counts.size:
                skipped += nan_counts
            known = skipped < counts
            minima = _from_bytes(type_, _concatenate(self.minima, np.uint8), known)
            maxima = _from_bytes(type_, _concatenate(self.maxima, np.uint8), known)
        if dictionary is not None:
            minima, maxima = dictionary.take(minima), dictionary.take(maxima)
        columns = {
            "min": minima,
            "max": maxima,
            "null_count": pa.array(null_counts),
            "values_crc": pa.array(_concatenate(self.values_crcs, np.uint32)),
        }
        if pa.types.is_floating(minima.type):
            columns["nan_count"] = pa.array(nan_counts)
        if validity_crcs is not None:
            columns["validity_crc"] = pa.array(validity_crcs)
        if is_string_like(type_) and packing is None:
            columns["offsets_crc"] = pa.array(_concatenate(self.offsets_crcs, np.uint32))
        if packing is not None:
            columns["packing"] = pa.Array.from_buffers(
                pa.binary(packing.itemsize), len(packing), [None, pa.py_buffer(view(packing.view(np.uint8)))]
            )
        columns |= parts
        return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _concatenate(pieces: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def _bitmap(known: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if known.all() else pa.py_buffer(view(np.packbits(known, bitorder="little")))


def _from_bytes(type_: pa.DataType, values: Bytes, known: NDArray[np.bool_]) -> pa.Array[Any]:
    if pa.types.is_boolean(type_):
        values = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(type_, len(known), [_bitmap(known), pa.py_buffer(view(values))])


def _strings(type_: pa.DataType, cells: Bytes, lengths: Bytes) -> pa.Array[Any]:
    known = lengths != _NO_PREFIX
    kept = np.where(known, lengths, 0).astype(np.int64)
    data = cells.reshape(-1, _PREFIX_BYTES)[np.arange(_PREFIX_BYTES) < kept[:, None]]
    offsets = np.concatenate([[0], np.cumsum(kept)])
    return pa.Array.from_buffers(
        type_, len(known), [_bitmap(known), pa.py_buffer(view(offsets)), pa.py_buffer(view(data))]
    )
