"""Fragments as readers see them: opened, immutable, their zone map in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.encoding import StoredColumn, VectorChecksums
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.plain import ColumnPlace, PlainColumn
from bamquery.storage.encodings.plain_strings import PlainStrings
from bamquery.storage.files.regular_file import regular_size
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import FragmentLayout, vector_count
from bamquery.storage.format.lazy_sequence import LazySequence
from bamquery.storage.format.storable_types import is_string_like, stored_index
from bamquery.storage.fragments.check import check_fragment
from bamquery.storage.fragments.column_kind import ColumnKind
from bamquery.storage.fragments.plain_size import ColumnSizes
from bamquery.storage.fragments.schema_evolution import FragmentColumns
from bamquery.storage.readers.block_reader import BlockReader, RangeMismatchError, ReadCounters
from bamquery.storage.statistics.packed_parts import PackedParts
from bamquery.storage.statistics.parts import Parts, has_parts
from bamquery.storage.statistics.vector_statistics import VectorStatistics
from bamquery.storage.statistics.zone_map import ZoneMap


class Fragment:
    """An immutable slice of a table's rows. Thread-safe.

    Attributes:
        entry: what the manifest says of it.
        id: unique among all fragments of the table.
        rows: number of rows.
        vector_count: number of vectors; the last may have fewer than 1,024 rows.
        path: file one, the columns.
        schema: its columns, which are the table's but for those that are younger than it.
        layout: where their buffers are.
        zone_map: statistics of its vectors.
    """

    def __init__(
        self,
        path: Path,
        entry: FragmentEntry,
        schema: pa.Schema,
        layout: FragmentLayout,
        statistics: VectorStatistics,
        *,
        positions: Sequence[int],
    ) -> None:
        """See `open`."""
        self.path = path
        self.entry = entry
        self.id: Final = entry.id
        self.rows: Final = entry.rows
        self.vector_count: Final = vector_count(entry.rows)
        self.schema = schema
        self.layout = layout
        self.zone_map = ZoneMap(self._column_statistics, entry.rows)
        self._statistics = statistics
        self._indexes = {field.name: index for index, field in enumerate(schema)}
        self._positions = dict(zip(schema.names, positions, strict=True))
        self._columns: dict[str, StoredColumn] = {}
        self._sizes: dict[str, ColumnSizes] = {}
        self._kinds: dict[str, ColumnKind] = {}
        self._dictionaries: dict[str, pa.Array[Any]] = {}
        self._string_lengths: dict[str, NDArray[np.int64]] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls, folder: Path, entry: FragmentEntry, schema: pa.Schema, columns: FragmentColumns | None = None
    ) -> Fragment:
        """Read what the vectors file says of all columns, and see that the columns' file is there.

        What the files have of each column is read, and checked, when it is wanted.

        `schema` is that of its files; with `columns`, it offers only those, under their names there.

        Raises:
            CorruptionError: a file is missing, or is not the one that was written.
            StorageError: a file cannot be read.
        """
        statistics = VectorStatistics(folder / entry.vectors_name, entry, schema)
        layout, positions = statistics.layout, list(range(len(schema)))
        path = folder / entry.data_name
        try:
            size = regular_size(path)
        except FileNotFoundError as error:
            raise CorruptionError("the file is missing", path) from error
        if size != entry.data_bytes:
            raise CorruptionError(f"{size} bytes instead of {entry.data_bytes}", path)
        if columns is not None and columns.schema != schema:
            positions, stored = list(columns.positions), layout.columns
            chosen = LazySequence(len(positions), lambda place: stored[positions[place]])
            layout = replace(layout, columns=chosen)
            schema = columns.schema
        return cls(path, entry, schema, layout, statistics, positions=positions)

    @property
    def data_bytes(self) -> int:
        """Size of the file at `path`."""
        return self.entry.data_bytes

    def ask_ahead(self, columns: Iterable[str], *, parts: bool = False) -> None:
        """Have the system read statistics of columns, also of their `parts`; see `VectorStatistics`."""
        self._statistics.ask_ahead((self._positions[column] for column in columns), parts=parts)

    def column_index(self, column: str) -> int:
        """Position of a column, by its exact name."""
        return self._indexes[column]

    def stored_position(self, column: str) -> int:
        """Its position in the files, which stays while the table's other columns come and go."""
        return self._positions[column]

    def column(self, column: str) -> StoredColumn:
        """How a column is stored."""
        stored = self._columns.get(column)
        if stored is None:
            place = self._place(column)
            if place.layout.encoding is not None:
                packing = self._statistics.packing_parameters(self._positions[column])
                is_compressed = place.layout.encoding.symbols is not None
                stored = FsstColumn(place, packing) if is_compressed else PackedColumn(place, packing)
            else:
                stored = PlainStrings(place) if is_string_like(place.type) else PlainColumn(place)
            self._columns[column] = stored
        return stored

    def sizes(self, column: str) -> ColumnSizes:
        """What a column weighs."""
        found = self._sizes.get(column)
        if found is None:
            index = self._indexes[column]
            found = ColumnSizes.of_column(
                self.schema.field(index).type, self.layout.columns[index], self.rows
            )
            self._sizes[column] = found
        return found

    def kind(self, column: str) -> ColumnKind:
        """How a column is stored."""
        found = self._kinds.get(column)
        if found is None:
            found = self._kinds[column] = ColumnKind.of_column(self.column(column), self.sizes(column))
        return found

    def dictionary(self, column: str, reader: BlockReader, counters: ReadCounters) -> pa.Array[Any]:
        """The values of a dictionary column; read and verified at first use, kept from then on.

        Raises:
            CorruptionError: they are not what was written.
            StorageError: they cannot be read.
        """
        with self._lock:
            values = self._dictionaries.get(column)
            if values is None:
                values = self._dictionaries[column] = self.read_dictionary(column, reader, counters)
            return values

    def string_lengths(self, column: str, reader: BlockReader, counters: ReadCounters) -> NDArray[np.int64]:
        """Bytes of each value of a dictionary column, 0 of what is no string; raises as `dictionary` does."""
        with self._lock:
            lengths = self._string_lengths.get(column)
        if lengths is None:
            values: Any = self.dictionary(column, reader, counters)
            if is_string_like(values.type):
                found: Any = pc.fill_null(pc.binary_length(values), 0)
                lengths = found.to_numpy(zero_copy_only=False).astype(np.int64)
            else:
                lengths = np.zeros(len(values), np.int64)
            with self._lock:
                self._string_lengths[column] = lengths
        return lengths

    def check(self) -> list[CorruptionError]:
        """Read everything back: what is wrong with the files, nothing if they are as they were written.

        Raises:
            StorageError: a file cannot be read at all.
        """
        return check_fragment(self)

    def checksums(self, column: str) -> VectorChecksums:
        """CRC-32C of what the column's vectors store."""
        statistics = self._column_statistics(column)

        def field(name: str) -> NDArray[np.uint32] | None:
            if statistics.type.get_field_index(name) < 0:
                return None
            crcs: NDArray[np.uint32] = statistics.field(name).to_numpy()
            return crcs

        values = field("values_crc")
        assert values is not None
        return VectorChecksums(values, field("validity_crc"), field("offsets_crc"))

    def has_parts(self, column: str) -> bool:
        """Whether the column's vectors have parts."""
        index = self._indexes[column]
        if self.layout.columns[index].encoding is not None:
            return self._statistics.has_packed_parts(self._positions[column])
        return has_parts(self.schema.field(index).type)

    def parts(self, column: str) -> Parts | None:
        """The parts of the column's vectors; None if it has none, or is packed."""
        return self._statistics.parts(self._positions[column])

    def packed_parts(self, column: str) -> PackedParts | None:
        """The parts of a packed column's vectors; None if it has none, or is plain."""
        return self._statistics.packed_parts(self._positions[column])

    def statistics_bytes(self, column: str) -> int:
        """What zone map and checksums of the column take on disk, decode parameters aside."""
        return self._statistics.column_bytes(self._positions[column])

    def _column_statistics(self, column: str) -> Any:
        return self._statistics.column(self._positions[column])

    def _place(self, column: str) -> ColumnPlace:
        index = self._indexes[column]
        type_, layout = self.schema.field(index).type, self.layout.columns[index]
        return ColumnPlace(
            path=self.path,
            name=column,
            type=stored_index(type_, has_dictionary=layout.dictionary is not None),
            rows=self.rows,
            layout=layout,
            checksums=self.checksums(column),
            null_counts=self.zone_map.null_counts(column),
        )

    def read_dictionary(self, column: str, reader: BlockReader, counters: ReadCounters) -> pa.Array[Any]:
        """As `dictionary`, but from the file each time."""
        index = self._indexes[column]
        type_: Any = self.schema.field(index).type
        layout = self.layout.columns[index].dictionary
        assert layout is not None
        buffers: list[pa.Buffer | None] = [None]
        for extent, crc in ((layout.offsets, layout.offsets_crc), (layout.values, layout.values_crc)):
            if extent is None:
                continue
            try:
                buffers.append(
                    reader.read_ranges(
                        np.array([extent.offset]),
                        np.array([extent.length]),
                        counters,
                        np.array([crc], np.uint32),
                    )
                )
            except RangeMismatchError as error:
                raise CorruptionError(
                    f'column "{column}": its dictionary does not match its checksum', self.path
                ) from error
        value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
        return pa.Array.from_buffers(value_type, layout.size, buffers, 0)
