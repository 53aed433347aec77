"""Reads a fragment back, byte by byte, and says what is not as it was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.encodings.fixed_width import vector_ranges
from bamquery.storage.files.buffers import view
from bamquery.storage.files.regular_file import open_regular
from bamquery.storage.format.arrow_schema import stored_schema
from bamquery.storage.format.layout import Extent
from bamquery.storage.format.storable_types import value_bits
from bamquery.storage.fragments.check_ends import check_ends
from bamquery.storage.fragments.check_packed_parts import damaged_packed_part
from bamquery.storage.readers.block_reader import RangeMismatchError, ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.parts import PARTS, part_ranges
from bamquery.storage.statistics.vector_statistics import VectorStatistics

if TYPE_CHECKING:
    from bamquery.storage.fragments.fragment import Fragment

_PIECE_VECTORS: Final = 64
_PIECE_BYTES: Final = 4 << 20
_MOST_ERRORS: Final = 20
"""A column with more damaged vectors is not listed further."""


def check_fragment(fragment: Fragment) -> list[CorruptionError]:
    """All that is wrong with the two files: sizes, checksums, padding, and whether Arrow reads them.

    Raises:
        StorageError: a file cannot be read at all.
    """
    entry = fragment.entry
    errors: list[CorruptionError] = []
    vectors_path = fragment.path.with_name(entry.vectors_name)
    try:
        tuple(fragment.layout.columns)
    except CorruptionError as error:
        return [error]  # where nothing is known to be, nothing can be looked at
    try:
        VectorStatistics(vectors_path, entry, fragment.schema).require_all()
    except CorruptionError as error:
        errors.append(error)
    try:
        _forget_cached_pages(fragment)
        reader = MappedReader(fragment.path, entry.data_bytes)
    except CorruptionError as error:
        return [*errors, error]
    try:
        found = [*_check_metadata(fragment, reader), *_check_padding(fragment, reader)]
        found += check_ends(fragment, reader)
        for field in fragment.schema:
            try:
                found += _check_column(fragment, field.name, reader)
            except CorruptionError as error:
                if error.path != vectors_path:
                    raise
                # What it should be compared with is what is damaged, which has been said.
    finally:
        reader.close()
    if not found:
        found += _check_with_arrow(fragment)
    return errors + found


def _forget_cached_pages(fragment: Fragment) -> None:
    """Have the device asked, not the page cache: a hint, and only for pages that nobody maps."""
    try:
        with open_regular(fragment.path) as descriptor:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except (OSError, StorageError):
        return  # the reader says what is wrong


def _check_metadata(fragment: Fragment, reader: MappedReader) -> Iterator[CorruptionError]:
    for extent, crc in fragment.layout.metadata:
        try:
            reader.read_ranges(*_as_arrays(extent), ReadCounters(), np.array([crc], np.uint32))
        except RangeMismatchError:
            yield CorruptionError(
                f"bytes {extent.offset} to {extent.end} (Arrow metadata) do not match their checksum",
                fragment.path,
            )


def _check_padding(fragment: Fragment, reader: MappedReader) -> Iterator[CorruptionError]:
    """Bytes that belong to nothing are zero."""
    end = 0
    for extent in sorted(fragment.layout.extents, key=lambda e: (e.offset, e.end)):
        for start in range(end, extent.offset, _PIECE_BYTES):
            gap = Extent(start, min(extent.offset - start, _PIECE_BYTES))
            data = reader.read_ranges(*_as_arrays(gap), ReadCounters())
            if np.frombuffer(view(data), np.uint8).any():
                yield CorruptionError(
                    f"bytes {gap.offset} to {gap.end} (padding) are not zero", fragment.path
                )
        end = max(end, extent.end)
    if end != fragment.data_bytes:
        yield CorruptionError(f"its layout ends at byte {end}", fragment.path)


def _check_column(fragment: Fragment, column: str, reader: MappedReader) -> list[CorruptionError]:
    errors: list[CorruptionError] = []
    layout = fragment.layout.columns[fragment.column_index(column)]
    if layout.dictionary is not None:
        errors += _check_dictionary(fragment, column, reader)
    everything = np.arange(fragment.vector_count, dtype=np.int64)
    for start in range(0, len(everything), _PIECE_VECTORS):
        piece = everything[start : start + _PIECE_VECTORS]
        if _damage(fragment, column, piece, reader) is None:
            continue
        for vector in piece:
            error = _damage(fragment, column, np.array([vector]), reader)
            if error is not None:
                errors.append(error)
            if len(errors) >= _MOST_ERRORS:
                message = f'column "{column}" has more damaged vectors, which are not listed'
                return [*errors, CorruptionError(message, fragment.path)]
    return errors


def _damage(
    fragment: Fragment, column: str, vectors: NDArray[np.int64], reader: MappedReader
) -> CorruptionError | None:
    """The first thing wrong with those vectors."""
    stored = fragment.column(column)
    layout = fragment.layout.columns[fragment.column_index(column)]
    try:
        stored.read_vectors(reader, vectors, ReadCounters(), verify=True)
    except CorruptionError as error:
        return error
    damaged = _damaged_part(fragment, column, vectors, reader)
    if damaged is not None or layout.validity is None:
        return damaged
    # Queries do not read the bits of vectors without nulls; for other readers they must be right too.
    crcs = fragment.checksums(column).validity
    assert crcs is not None
    ranges = vector_ranges(layout.validity, 1, vectors)
    try:
        reader.read_ranges(*ranges, ReadCounters(), crcs[vectors])
    except RangeMismatchError as error:
        message = f"vector {vectors[error.index]}: its validity bits do not match their checksum"
        return CorruptionError(f'column "{column}", {message}', fragment.path)
    return None


def _damaged_part(
    fragment: Fragment, column: str, vectors: NDArray[np.int64], reader: MappedReader
) -> CorruptionError | None:
    """The first part that is not as its statistics say."""
    if fragment.layout.columns[fragment.column_index(column)].encoding is not None:
        return damaged_packed_part(fragment, column, vectors, reader)
    parts = fragment.parts(column)
    if parts is None:
        return None
    values = fragment.layout.columns[fragment.column_index(column)].values
    bits = value_bits(fragment.schema.field(column).type)
    numbers = (vectors[:, None] * PARTS + np.arange(PARTS)).reshape(-1)
    offsets, lengths = part_ranges(values, bits, numbers)
    there = lengths > 0
    crcs = parts.checksums[numbers[there]]
    try:
        reader.read_ranges(offsets[there], lengths[there], ReadCounters(), crcs)
    except RangeMismatchError as error:
        vector, part = divmod(int(numbers[there][error.index]), PARTS)
        message = f"vector {vector}: part {part} of its values does not match its checksum"
        return CorruptionError(f'column "{column}", {message}', fragment.path)
    return None


def _check_dictionary(fragment: Fragment, column: str, reader: MappedReader) -> Iterator[CorruptionError]:
    try:
        fragment.read_dictionary(column, reader, ReadCounters())
    except CorruptionError as error:
        yield error


def _check_with_arrow(fragment: Fragment) -> Iterator[CorruptionError]:
    """The bytes are as written; that any Arrow reader understands them is what this asks."""
    try:
        with pa.OSFile(str(fragment.path), "rb") as file:
            schema: Any = pa.ipc.open_file(file).schema
            if not schema.equals(stored_schema(fragment.schema, fragment.layout), check_metadata=True):
                raise ValueError("it has another schema")
            narrowest = min(range(len(schema)), key=lambda i: fragment.layout.columns[i].values.length)
            options = pa.ipc.IpcReadOptions(included_fields=[narrowest])
            batches = pa.ipc.open_file(file, options=options)
            rows = fragment.vector_count if fragment.layout.is_encoded else fragment.rows
            if batches.num_record_batches != 1 or batches.get_batch(0).num_rows != rows:
                raise ValueError("it has other rows")
    except (pa.ArrowException, OSError, ValueError) as error:
        yield CorruptionError(f"Arrow cannot read it: {error}", fragment.path)


def _as_arrays(extent: Extent) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([extent.offset]), np.array([extent.length])
