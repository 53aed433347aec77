"""What kernels have to know of a table's vectors, kept in the GPU's memory from query to query.

Vectors are numbered through all fragments of a run (`ResidentVectors`): a table's, or some of a long one's.
A vector takes 24 bytes for each column that is pruned by, 128 more if its parts are, 4 for each checksum, 32
for those of parts, and one where a column has nulls. Where that is packed, it takes 16 for parameters, and of
its parts 16 for bounds and 36 for checksums; of compressed strings 48 for parameters, and each fragment takes
2,304 for symbols.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.scan.kernel_tables.packed_requests import (
    PACKED,
    PayloadRanges,
    payload_ranges,
    scales,
)
from bamquery.engine.cuda.scan.kernel_tables.requests import PLACE, VECTOR, null_states
from bamquery.engine.cuda.scan.kernel_tables.zones import packed_bounds_of, part_zones_of, zones_of
from bamquery.engine.cuda.scan.resources.counter_board import Uploads
from bamquery.engine.cuda.scan.resources.fragment_runs import RUN_VECTORS, way_stored
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlocks
from bamquery.engine.cuda.scan.resources.row_bytes import RowBytes
from bamquery.engine.cuda.session import CudaSession
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape
from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.stored_buffers import StoredBuffers, stored_buffers
from bamquery.storage.statistics.zone_map import Zones

_UNIT: Final = 16
"""Of payloads, see engine/kernels/packed/scan_packed.hpp."""
_SAMPLED: Final = 4096
"""Vectors of which zone maps are asked what share of all vectors passes, about."""


class ResidentVectors:
    """A run of fragments as kernels see it; thread-safe.

    Attributes:
        fragments: at least one.
        firsts: number of each fragment's first vector, and how many vectors there are.
        count: vectors.
        rows: of each fragment, words on the GPU.
        firsts_address: `firsts` on the GPU.
    """

    def __init__(
        self, session: CudaSession, blocks: HostBlocks, launcher: Launcher, fragments: tuple[Fragment, ...]
    ) -> None:
        self.fragments: Final = fragments
        counts = [fragment.vector_count for fragment in fragments]
        self.firsts: Final[NDArray[np.uint32]] = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
        self.count: Final = int(self.firsts[-1])
        self._session = session
        self._blocks = blocks
        self._launcher = launcher
        self._lock = threading.RLock()
        self._memory: dict[object, rmm.DeviceBuffer] = {}
        self._buffers: dict[str, list[StoredBuffers]] = {}
        self._stored: dict[tuple[str, str], list[tuple[Fragment, Extent | None]]] = {}
        self._addresses: dict[object, NDArray[np.uint64]] = {}
        self._uniform: dict[str, bool] = {}
        self._nullable: dict[str, NDArray[np.bool_]] = {}
        self._offsets: dict[tuple[str, str], NDArray[np.uint64]] = {}
        self._states: dict[str, NDArray[np.uint8] | None] = {}
        self._payloads: dict[str, list[PayloadRanges]] = {}
        self._payload_sums: dict[str, NDArray[np.int64]] = {}
        self._payload_sizes: dict[str, NDArray[np.int32]] = {}
        self._payload_begins: dict[str, NDArray[np.int64]] = {}
        self._payload_breaks: dict[str, NDArray[np.int64]] = {}
        self._shapes: dict[str, tuple[float, bool]] = {}
        self._string_shapes: dict[str, ColumnShape] = {}
        self._row_bytes: dict[str, RowBytes] = {}
        self._zones: dict[str, Zones] = {}
        self._samples: dict[str, Zones] = {}
        self.rows: Final = self._keep("rows", lambda: np.array([f.rows for f in fragments], np.uint32))
        self.firsts_address: Final = self._keep("firsts", lambda: self.firsts)

    def close(self) -> None:
        """Give the memory back; nothing uses it any more."""
        with self._lock:
            self._memory.clear()

    @property
    def nbytes(self) -> int:
        """Memory that it takes on the GPU now."""
        return sum(memory.size for memory in list(self._memory.values()))

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Of each vector in its fragment."""
        counts = [fragment.vector_count for fragment in self.fragments]
        return np.arange(self.count) - np.repeat(self.firsts[:-1].astype(np.int64), counts)

    def vectors(self) -> int:
        """A ScanVector for each vector, on the GPU."""
        return self._keep("vectors", self._vectors)

    def vector_rows(self) -> int:
        """Rows of each vector, half words on the GPU."""
        return self._keep("vector rows", self._vector_rows)

    def zones(self, column: str) -> int:
        """A ScanZone for each vector of a column that `zones_of` knows, on the GPU."""

        def make() -> NDArray[Any]:
            return np.concatenate([zones_of(fragment, column) for fragment in self.fragments])

        return self._keep(("zones", column), make)

    def column_zones(self, column: str) -> Zones:
        """The same for the host, of any column."""
        with self._lock:
            found = self._zones.get(column)
            if found is None:
                found = Zones.concatenate([fragment.zone_map.column(column) for fragment in self.fragments])
                self._zones[column] = found
            return found

    def sampled_zones(self, column: str) -> Zones:
        """Those of about `_SAMPLED` vectors, as far from each other as can be; of all where there are few."""
        zones = self.column_zones(column)
        with self._lock:
            found = self._samples.get(column)
            if found is None:
                found = self._samples[column] = zones.every(max(1, self.count // _SAMPLED))
            return found

    def has_parts(self, column: str) -> bool:
        """Whether the column's vectors have parts in all fragments; if not, in none."""
        return self.fragments[0].has_parts(column)

    def part_zones(self, column: str) -> int:
        """A ScanParts for each vector of a plain column that has parts, on the GPU."""

        def make() -> NDArray[Any]:
            return np.concatenate([part_zones_of(fragment, column) for fragment in self.fragments])

        return self._keep(("part zones", column), make)

    def packed_bounds(self, column: str) -> int:
        """A PackedPartBounds for each vector of a packed column that has parts, on the GPU."""

        def make() -> NDArray[Any]:
            return np.concatenate([packed_bounds_of(fragment, column) for fragment in self.fragments])

        return self._keep(("packed bounds", column), make)

    def part_checksums(self, column: str) -> int:
        """CRC-32C of the parts of each vector of a column that has some, words on the GPU.

        Of a packed column, a word for what is behind the codes follows on each vector's eight.
        """

        def checksums_of(fragment: Fragment) -> NDArray[np.uint32]:
            packed = fragment.packed_parts(column)
            if packed is not None:
                return np.column_stack([packed.checksums, packed.escape_checksums]).reshape(-1)
            parts = fragment.parts(column)
            assert parts is not None
            return parts.checksums

        return self._keep(
            ("part checksums", column),
            lambda: np.concatenate([checksums_of(fragment) for fragment in self.fragments]),
        )

    def checksums(self, column: str, buffer: str) -> int:
        """CRC-32C of each vector's part of a column's `values`, `validity` or `offsets`, words on the GPU."""

        def make() -> NDArray[np.uint32]:
            found = []
            for fragment, buffers in zip(self.fragments, self.buffers(column), strict=True):
                stored = getattr(buffers.checksums, buffer)
                found.append(np.zeros(fragment.vector_count, np.uint32) if stored is None else stored)
            return np.concatenate(found)

        return self._keep((buffer, column), make)

    def states(self, column: str) -> NDArray[np.uint8] | None:
        """A null state for each vector, see `StoredBuffers.null_states`; None where no row is null."""
        with self._lock:
            if column not in self._states:
                every = [np.arange(fragment.vector_count) for fragment in self.fragments]
                self._states[column] = null_states(every, self.buffers(column))
            return self._states[column]

    def states_address(self, column: str) -> int:
        """`states` of a column that has nulls, on the GPU."""
        states = self.states(column)
        assert states is not None
        return self._keep(("states", column), lambda: states)

    def is_packed(self, column: str) -> bool:
        """Whether the column is packed in all fragments; if not, it is in none."""
        return self.buffers(column)[0].packing is not None

    def is_compressed(self, column: str) -> bool:
        """Whether the column are compressed strings; in all fragments, or in none."""
        return self.buffers(column)[0].compression is not None

    def parameters(self, column: str) -> int:
        """A PackedVector for each vector of a packed column, a StringVector of strings, on the GPU."""

        def make() -> NDArray[Any]:
            found = [buffers.packing or buffers.compression for buffers in self.buffers(column)]
            return np.concatenate([of.parameters for of in found if of is not None])

        return self._keep(("parameters", column), make)

    def scales(self, column: str) -> int:
        """A PackedScale for each fragment of a packed column, on the GPU."""
        return self._keep(("scales", column), lambda: scales(self.buffers(column)))

    def symbols(self, column: str) -> int:
        """A StringSymbols for each fragment of a column of compressed strings, on the GPU.

        Raises:
            CorruptionError: they cannot be symbols.
        """

        def make() -> NDArray[Any]:
            compressions = [buffers.compression for buffers in self.buffers(column)]
            return np.concatenate([of.column.symbols_by_code() for of in compressions if of is not None])

        return self._keep(("symbols", column), make)

    def packed_vectors(self, column: str) -> bytes:
        """The ScanPacked of a packed column, without payloads."""
        return PACKED.pack(
            *(self.parameters(column), 0, 0, self.vectors(), self.scales(column), self.vector_rows())
        )

    def payloads(self, column: str) -> list[PayloadRanges]:
        """Where the vectors of a packed or compressed column are in each fragment's buffer."""
        with self._lock:
            found = self._payloads.get(column)
            if found is None:
                found = [payload_ranges(buffers) for buffers in self.buffers(column)]
                self._payloads[column] = found
            return found

    def payload_sums(self, column: str) -> NDArray[np.int64]:
        """Bytes of the payloads before each vector of a packed column, and of all behind the last."""
        with self._lock:
            found = self._payload_sums.get(column)
            if found is None:
                found = np.zeros(self.count + 1, np.int64)
                np.cumsum(self.payload_sizes(column), out=found[1:])
                self._payload_sums[column] = found
            return found

    def payload_slots(self, column: str) -> int:
        """`payload_sums` in units of 16 bytes, words on the GPU: where each payload is among all of them."""

        def make() -> NDArray[Any]:
            sums = self.payload_sums(column) // _UNIT
            assert sums[-1] < 1 << 32, "runs are shorter"
            return sums.astype(np.uint32)

        return self._keep(("slots", column), make)

    def payload_sizes(self, column: str) -> NDArray[np.int32]:
        """Bytes of the payload of each vector of a packed column."""
        with self._lock:
            found = self._payload_sizes.get(column)
            if found is None:
                sizes = [payloads.sizes for payloads in self.payloads(column)]
                found = self._payload_sizes[column] = np.concatenate(sizes).astype(np.int32)
            return found

    def payload_begins(self, column: str) -> NDArray[np.int64]:
        """Where the payload of each vector of a packed column begins in its fragment's file, in bytes."""
        with self._lock:
            found = self._payload_begins.get(column)
            if found is None:
                pairs = zip(self.payloads(column), self.offsets(column, "values").tolist(), strict=True)
                found = np.concatenate([payloads.begins + offset for payloads, offset in pairs])
                self._payload_begins[column] = found
            return found

    def payload_breaks(self, column: str) -> NDArray[np.int64]:
        """Vectors of a packed column whose payloads do not follow on those of the one before, ascending."""
        with self._lock:
            found = self._payload_breaks.get(column)
            if found is None:
                begins = self.payload_begins(column)
                apart = begins[1:] != begins[:-1] + self.payload_sizes(column)[:-1]
                apart[self.firsts[1:-1].astype(np.int64) - 1] = True
                found = self._payload_breaks[column] = np.flatnonzero(apart) + 1
            return found

    def packed_shape(self, column: str) -> tuple[float, bool]:
        """Bits of a row of a packed column on average, and whether codes of some vector ask for more."""
        with self._lock:
            found = self._shapes.get(column)
            if found is None:
                rows = sum(fragment.rows for fragment in self.fragments)
                bits = 8 * int(self.payload_sums(column)[-1]) / max(rows, 1)
                found = bits, any(payloads.has_more for payloads in self.payloads(column))
                self._shapes[column] = found
            return found

    def string_shape(self, column: str) -> ColumnShape:
        """How rows of a column of compressed strings lie in blocks, on average over all fragments."""
        with self._lock:
            found = self._string_shapes.get(column)
            if found is None:
                bits, rows = np.zeros(2), 0
                for fragment, buffers in zip(self.fragments, self.buffers(column), strict=True):
                    assert buffers.compression is not None
                    shape = buffers.compression.column.shape(np.arange(fragment.vector_count))
                    bits += fragment.rows * np.array([buffer.bits for buffer in shape.buffers])
                    rows += fragment.rows
                ends, size = (bits / max(rows, 1)).tolist()
                shapes = BufferShape(ends, width=2 * ends / 8 + 1), BufferShape(size, width=size / 8)
                found = self._string_shapes[column] = ColumnShape(shapes, rounds=2, form="fsst")
            return found

    def row_bytes(self, columns: Sequence[str]) -> RowBytes:
        """What a row of the widest of the columns weighs."""
        with self._lock:
            for column in columns:
                if column not in self._row_bytes:
                    self._row_bytes[column] = RowBytes.of_column(self.fragments, column)
            return RowBytes.widest(self._row_bytes[column] for column in columns)

    def buffers(self, column: str) -> list[StoredBuffers]:
        """Where a column's bytes are, in each fragment."""
        with self._lock:
            found = self._buffers.get(column)
            if found is None:
                found = [stored_buffers(fragment, column) for fragment in self.fragments]
                self._buffers[column] = found
            return found

    def stored(self, column: str, buffer: str) -> list[tuple[Fragment, Extent | None]]:
        """Each fragment with the `values`, `validity` or `offsets` of a column, if it has some with bytes."""
        with self._lock:
            found = self._stored.get((column, buffer))
            if found is None:
                extents = [getattr(buffers, buffer) for buffers in self.buffers(column)]
                found = self._stored[column, buffer] = [
                    (fragment, extent if extent is not None and extent.length else None)
                    for fragment, extent in zip(self.fragments, extents, strict=True)
                ]
            return found

    def nullable(self, column: str) -> NDArray[np.bool_]:
        """Whether each fragment's part of the column has nulls."""
        with self._lock:
            found = self._nullable.get(column)
            if found is None:
                layouts = [
                    fragment.layout.columns[fragment.column_index(column)] for fragment in self.fragments
                ]
                found = self._nullable[column] = np.array([layout.has_nulls for layout in layouts])
            return found

    def offsets(self, column: str, buffer: str) -> NDArray[np.uint64]:
        """Where `values`, `validity` or `offsets` of a column begin in each fragment's file; 0 without."""
        with self._lock:
            found = self._offsets.get((column, buffer))
            if found is None:
                extents = [getattr(buffers, buffer) for buffers in self.buffers(column)]
                found = np.array([0 if e is None else e.offset for e in extents], np.uint64)
                self._offsets[column, buffer] = found
            return found

    def mapped_places(self, column: str, buffer: str, addresses: NDArray[np.uint64]) -> int:
        """A ScanPlace for each fragment whose file is seen there, on the GPU: until others are asked for.

        These come with pins that no scan uses any more.
        """
        key = ("places", column, buffer)

        def make() -> NDArray[Any]:
            found = np.zeros(len(self.fragments), PLACE)
            found["offset"], found["map"] = self.offsets(column, buffer), addresses
            return found

        with self._lock:
            if self._addresses.get(key) is not addresses:
                self._memory.pop(key, None)
                self._addresses[key] = addresses
            return self._keep(key, make)

    def has_fragments(self, fragments: Sequence[Fragment]) -> bool:
        """Whether these are the fragments, and not others that were opened later."""
        return len(fragments) == len(self.fragments) and all(map(operator.is_, fragments, self.fragments))

    def is_run(self, columns: Sequence[str]) -> bool:
        """Whether `runs` would leave the fragments together for these columns."""
        if self.count > RUN_VECTORS and len(self.fragments) > 1:
            return False
        with self._lock:
            for column in columns:
                if column not in self._uniform:
                    self._uniform[column] = len({way_stored(f, column) for f in self.fragments}) == 1
            return all(self._uniform[column] for column in columns)

    def _keep(self, key: object, make: Callable[[], NDArray[Any]]) -> int:
        with self._lock:
            found = self._memory.get(key)
            if found is None:
                array = np.ascontiguousarray(make())
                memory = self._session.allocate(max(array.nbytes, 16), "describing a table")
                uploads = Uploads(self._session, self._blocks, self._launcher)
                uploads.fill(memory, array, self._session.driver_stream)
                try:
                    self._session.synchronize()  # once: all streams may use it from here on
                except BaseException:  # Ctrl-C: the GPU still reads what is uploaded
                    self._session.gpu.abandon((uploads, memory))
                    raise
                uploads.close()
                found = self._memory[key] = memory
            return int(found.ptr)

    def _vectors(self) -> NDArray[Any]:
        found = np.zeros(self.count, VECTOR)
        counts = [fragment.vector_count for fragment in self.fragments]
        found["piece"] = np.repeat(np.arange(len(counts)), counts)
        found["number"] = self.numbers
        return found

    def _vector_rows(self) -> NDArray[np.uint16]:
        found = np.full(self.count, VECTOR_ROWS, np.uint16)
        for last, fragment in zip(self.firsts[1:].tolist(), self.fragments, strict=True):
            if fragment.vector_count:
                found[last - 1] = fragment.rows - (fragment.vector_count - 1) * VECTOR_ROWS
        return found
