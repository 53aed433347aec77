"""A vectors file as readers see it: columns are read, and compared with their checksums, when wanted."""

from __future__ import annotations

import base64
import mmap
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.buffers import view
from bamquery.storage.files.regular_file import open_regular
from bamquery.storage.format.array_validation import validate
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import VECTOR_ROWS, ColumnLayout, FragmentLayout, vector_count
from bamquery.storage.format.layout_check import require_layout
from bamquery.storage.statistics.packed_parts import (
    PackedParts,
    may_have_packed_parts,
    packed_part_types,
)
from bamquery.storage.statistics.parts import Parts, has_parts, is_of_parts, part_types, part_values
from bamquery.storage.statistics.vectors_file import (
    FORMAT_KEY,
    KNOWN_FORMATS,
    LAYOUT_KEY,
    PACKING,
    SCHEMA_KEY,
    SECTIONS_KEY,
    Section,
    column_extents,
    column_members,
    stored_sections,
)

_WHOLE: Final = 256 << 10
"""Of files that are not larger all columns are read at once."""


class VectorStatistics:
    """Layout and statistics of a fragment. Thread-safe.

    Memory of the file's size is laid out at once and filled section by section: what nobody asks for takes
    none.

    Attributes:
        layout: of the fragment's other file.
    """

    def __init__(self, path: Path, entry: FragmentEntry, schema: pa.Schema) -> None:
        """Read what is not statistics, and compare it with what the manifest says before it is parsed.

        Raises:
            CorruptionError: the file is not the one that was written.
            StorageError: it cannot be read.
        """
        self._path = path
        self._size = entry.vectors_bytes
        self._rows = entry.rows
        self._lock = threading.Lock()
        if not 0 < entry.vectors_head <= entry.vectors_head + entry.vectors_tail <= self._size:
            raise CorruptionError("the manifest's sizes of it cannot be", path)
        end = self._size - entry.vectors_tail
        with self._open_file() as descriptor:
            self._memory = mmap.mmap(-1, self._size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._fill(descriptor, Section(0, entry.vectors_head))
            self._fill(descriptor, Section(end, self._size))
        with memoryview(self._memory) as contents:
            found = _native.crc32c(contents[end:], _native.crc32c(contents[: entry.vectors_head]))
        if found != entry.vectors_crc:
            raise CorruptionError(
                f"its checksum is {found:08x} instead of {entry.vectors_crc:08x}: the file is damaged", path
            )
        try:
            self._parse(entry, schema, Section(entry.vectors_head, end))
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            raise CorruptionError(f"it cannot be read: {error}", path) from error
        self._schema = schema
        self._ready: set[int] = set()
        self._asked: set[int] = set()
        self._members: dict[int, dict[str, Any]] = {}
        self._columns: dict[int, Any] = {}
        self._in_memory = self._size <= _WHOLE
        if self._in_memory:
            with self._open_file() as descriptor:
                self._fill(descriptor, Section(entry.vectors_head, end))

    def column(self, position: int) -> Any:
        """The statistics of a column's vectors: an array of structs, one a vector.

        Raises:
            CorruptionError: they are not as they were written.
            StorageError: they cannot be read.
        """
        known = self._columns.get(position)
        if known is not None:
            return known
        own = {
            name: member
            for name, member in self._column(position).items()
            if not is_of_parts(name) and name != PACKING
        }
        with self._lock:
            unseen = self._load_section(2 * position)
            if unseen:
                for member in own.values():
                    self._validate(position, member)
            if unseen and not _plausible(own, self.layout.columns[position], self._rows):
                raise self._damaged_statistics(position)
            column: Any = pa.StructArray.from_arrays(list(own.values()), names=list(own))
            self._ready.add(2 * position)
            self._columns[position] = column
        return column

    def packing_parameters(self, position: int) -> NDArray[np.uint8]:
        """Decode parameters of an encoded column's vectors, a row of bytes each. Raises as `column` does."""
        self.column(position)
        cells = self._column(position)[PACKING]
        if cells.null_count:
            raise self._damaged_statistics(position)
        width = cells.type.byte_width
        data = np.frombuffer(view(cells.buffers()[1]), np.uint8, len(cells) * width)
        return data.reshape(-1, width)

    def parts(self, position: int) -> Parts | None:
        """The parts of a plain column's vectors; None if it has none. Raises as `column` does."""
        column = self._load_parts(position, "part_min")
        return None if column is None else Parts.from_statistics(column)

    def packed_parts(self, position: int) -> PackedParts | None:
        """The same of a packed column."""
        column = self._load_parts(position, "part_low")
        return None if column is None else PackedParts.from_statistics(column)

    def has_packed_parts(self, position: int) -> bool:
        """Whether a column is packed and its vectors have parts; nothing is read."""
        return "part_low" in self._column(position)

    def _load_parts(self, position: int, member: str) -> Any:
        """The column's statistics with those of its parts in memory; None if it has no such member."""
        members = self._column(position)
        if member not in members:
            return None
        column: Any = self._batch.column(position)
        with self._lock:
            if self._load_section(2 * position + 1):
                for name in filter(is_of_parts, members):
                    found = members[name]
                    self._validate(position, found)
                    lists = pa.types.is_fixed_size_list(found.type)
                    missing = found.null_count or (lists and part_values(column, name).null_count)
                    if name not in ("part_min", "part_max") and missing:
                        raise self._damaged_statistics(position)
                self._ready.add(2 * position + 1)
        return column

    def ask_ahead(self, positions: Iterable[int], *, parts: bool) -> None:
        """Have the system read those columns' statistics, also of their `parts`, before they are wanted.

        Does not wait for them, and asks for nothing twice.

        Raises:
            CorruptionError: the file is missing, or has another size; StorageError: it cannot be opened.
        """
        wanted = [2 * position + part for position in positions for part in range(1 + parts)]
        missing = [index for index in wanted if index not in self._ready]
        if self._in_memory or not self._crcs or self._asked.issuperset(missing):
            return
        self._asked.update(missing)
        with self._open_file() as descriptor, suppress(OSError):  # advice, where a file system takes any
            for place in map(self._section, missing):
                os.posix_fadvise(descriptor, place.begin, place.end - place.begin, os.POSIX_FADV_WILLNEED)

    def column_bytes(self, position: int) -> int:
        """What the file has of a column, decode parameters aside."""
        if not self._crcs:
            return 0
        encoding = self.layout.columns[position].encoding
        parameters = 0 if encoding is None else encoding.parameter_bytes * self._batch.num_rows
        return self._ends[2 * position + 2] - self._ends[2 * position] - parameters

    def require_all(self) -> None:
        """Read all that has not been read; raises as `column` does."""
        for position in range(len(self._schema)):
            self.column(position)
            self.parts(position)
            self.packed_parts(position)

    @contextmanager
    def _open_file(self) -> Iterator[int]:
        """A descriptor of the file, which has the size that it should have."""
        try:
            with open_regular(self._path) as descriptor:
                size = os.fstat(descriptor).st_size
                if size != self._size:
                    raise CorruptionError(f"{size} bytes instead of {self._size}", self._path)
                yield descriptor
        except FileNotFoundError as error:
            raise CorruptionError("the file is missing", self._path) from error
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror or error}", self._path) from error

    def _fill(self, descriptor: int, section: Section) -> None:
        at = section.begin
        with memoryview(self._memory) as contents:
            while at < section.end:
                count = os.preadv(descriptor, [contents[at : section.end]], at)
                if not count:
                    raise CorruptionError(f"{at} bytes instead of {self._size}", self._path)
                at += count

    def _parse(self, entry: FragmentEntry, schema: pa.Schema, body: Section) -> None:
        data = pa.py_buffer(self._memory)
        with pa.ipc.open_file(data) as reader:
            metadata = reader.schema.metadata or {}
            if metadata.get(FORMAT_KEY) not in KNOWN_FORMATS:
                raise ValueError("it is not a vectors file of this version of BamQuery")
            written = _schema(metadata[SCHEMA_KEY])
            layout = FragmentLayout.from_json(metadata[LAYOUT_KEY], self._path)
            self._batch = reader.get_batch(0)
        if not written.equals(schema):
            raise ValueError("it describes columns of another schema")
        self.layout = require_layout(layout, schema, entry, self._path)
        if self._batch.num_rows != vector_count(entry.rows) or self._batch.schema.names != schema.names:
            raise ValueError("it describes another fragment")
        self._ends, self._crcs = stored_sections(metadata[SECTIONS_KEY], len(schema), body)
        self._address = data.address

    def _column(self, position: int) -> dict[str, Any]:
        """A column's members, of the types and at the places that they should have; nothing of them is read.

        Of hundreds of columns a query names a few: others are not looked at.
        """
        members = self._members.get(position)
        if members is None:
            try:
                members = self._members[position] = self._require_column(position)
            except (pa.ArrowException, ValueError, TypeError) as error:
                raise CorruptionError(f"it cannot be read: {error}", self._path) from error
        return members

    def _require_column(self, position: int) -> dict[str, Any]:
        field, column = self._schema.field(position), self._batch.column(position)
        if self._in_memory and self._crcs:  # first and last offsets of texts are about to be looked at
            self._compare(2 * position)
        members = column_members(column)
        extents = column_extents(column, members, self._address)
        types = {name: member.type for name, member in members.items()}
        if column.null_count or types not in _possible_types(field, self.layout.columns[position]):
            raise ValueError(f'the statistics of column "{field.name}" are not as they should be')
        for part, extent in enumerate(extents):
            place = self._section(2 * position + part) if self._crcs else Section(0, 0)
            if extent is not None and not place.begin <= extent.begin <= extent.end <= place.end:
                raise ValueError(f'the statistics of column "{field.name}" are not where they should be')
        return members

    def _load_section(self, index: int) -> bool:
        """Have a section in memory; True where it must be looked through."""
        if index in self._ready:
            return False
        if not self._crcs:
            return True
        if not self._in_memory:
            with self._open_file() as descriptor:
                self._fill(descriptor, self._section(index))
        self._compare(index)
        return True

    def _section(self, index: int) -> Section:
        return Section(self._ends[index], self._ends[index + 1])

    def _compare(self, index: int) -> None:
        section = self._section(index)
        with memoryview(self._memory) as contents:
            found = _native.crc32c(contents[section.begin : section.end])
        if found != self._crcs[index]:
            name = self._schema.names[index // 2]
            raise CorruptionError(
                f'the statistics of column "{name}" have the checksum {found:08x} instead of '
                f"{self._crcs[index]:08x}: the file is damaged",
                self._path,
            )

    def _validate(self, position: int, found: Any) -> None:
        try:
            validate(found)
        except pa.ArrowException as error:
            name = self._schema.names[position]
            raise CorruptionError(
                f'the statistics of column "{name}" cannot be read: {error}', self._path
            ) from error

    def _damaged_statistics(self, position: int) -> CorruptionError:
        name = self._schema.names[position]
        return CorruptionError(f'the statistics of column "{name}" are not as they should be', self._path)


@lru_cache(maxsize=8)  # a table's fragments were written with one schema, or few
def _schema(text: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _possible_types(field: Any, place: ColumnLayout) -> list[dict[str, Any]]:
    """Of the members of a column's statistics; a packed column may have parts, and may not."""
    kind: Any = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    wanted: dict[str, Any]
    wanted = {"min": kind, "max": kind, "null_count": pa.uint16(), "values_crc": pa.uint32()}
    if pa.types.is_floating(kind):
        wanted["nan_count"] = pa.uint16()
    if place.validity is not None:
        wanted["validity_crc"] = pa.uint32()
    if place.offsets is not None:
        wanted["offsets_crc"] = pa.uint32()
    if place.encoding is not None:
        wanted |= {PACKING: pa.binary(place.encoding.parameter_bytes)}
        in_parts = may_have_packed_parts(field.type) and place.dictionary is None
        return [wanted, wanted | packed_part_types()] if in_parts else [wanted]
    return [wanted | (part_types(field.type) if has_parts(field.type) else {})]


def _plausible(members: Mapping[str, Any], place: ColumnLayout, rows: int) -> bool:
    """False where counts or checksums are missing, or a vector claims more nulls or NaNs than it has rows.

    Readers hand these counts to Arrow.
    """
    if any(member.null_count for name, member in members.items() if name not in ("min", "max")):
        return False
    missing = members["null_count"].to_numpy()
    if not place.has_nulls and missing.any():
        return False
    if "nan_count" in members:
        missing = missing.astype(np.int64) + members["nan_count"].to_numpy()
    last = rows - VECTOR_ROWS * (len(missing) - 1)
    return not len(missing) or bool(missing.max() <= VECTOR_ROWS and missing[-1] <= last)
