"""Reads one column of a chunk for the rows that are alive, in the way that costs least."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import (
    PassedRows,
    Selection,
    filter_loaded,
    filter_packed,
)
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, DeviceStrings, row_bits
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn
from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate
from bamquery.engine.cuda.scan.kernel_tables.string_requests import OFFSET_BYTES
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead, KernelTime
from bamquery.engine.cuda.scan.reads.checksums import check_parts, check_picked, check_vectors
from bamquery.engine.cuda.scan.reads.dictionary_codes import count_string_bytes, decode, prepare
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn, Fetches
from bamquery.engine.cuda.scan.reads.fetch_vectors import PickedVectors, fetch_vectors, picked_bytes
from bamquery.engine.cuda.scan.reads.fsst.coded_blocks import CodedBlocks
from bamquery.engine.cuda.scan.reads.fsst.coded_vectors import FetchedVectors, load_coded_vectors
from bamquery.engine.cuda.scan.reads.fsst.decode import DecodedStrings
from bamquery.engine.cuda.scan.reads.gather_rows import gather_column, gather_validity
from bamquery.engine.cuda.scan.reads.load_vectors import COPY_ENGINE, QUEUE_PAIRS, ZERO_COPY, load_vectors
from bamquery.engine.cuda.scan.reads.mapped_rows import MappedRows, PackedRows
from bamquery.engine.cuda.scan.reads.packed_blocks import PackedBlocks
from bamquery.engine.cuda.scan.reads.packed_payloads import (
    Payloads,
    check_payloads,
    fetch_payloads,
    load_payloads,
)
from bamquery.engine.cuda.scan.reads.packed_rows import gather_packed
from bamquery.engine.cuda.scan.reads.read_plan import plan_columns
from bamquery.engine.cuda.scan.reads.staged_column import Check, StagedColumn
from bamquery.engine.cuda.scan.reads.string_blocks import BlockStrings, fetch_listed
from bamquery.engine.cuda.scan.reads.string_checks import check_strings
from bamquery.engine.cuda.scan.reads.string_reads import StringOffsets, WaitingStrings
from bamquery.engine.cuda.scan.reads.string_vectors import (
    LoadedOffsets,
    VectorStrings,
    load_offsets,
    vector_strings,
)
from bamquery.engine.cuda.scan.reads.vector_recording import touched_vectors
from bamquery.storage.read_planner.hit_pyramid import HitPyramid
from bamquery.storage.read_planner.planner import Choice, Strategy
from bamquery.storage.readers.block_reader import ReadCounters

ReadColumn: TypeAlias = "DeviceColumn | WaitingStrings"
"""A column; of strings what `ColumnLoads.complete` makes one of."""
Fetching: TypeAlias = "FetchedColumn | PackedBlocks | PackedRows | CodedBlocks"
"""A column of which blocks are being fetched."""


class ColumnLoads:
    """One chunk's reads; one thread uses it.

    Attributes:
        reads: what they are to be accounted for.
        kernels: that drove queue pairs.
        checks: of vectors that were read whole, and of what kernels looked at.
        planned: columns whose way was chosen, and what that should take.
    """

    def __init__(self, chunk: ChunkMemory) -> None:
        self.chunk = chunk
        self.reads: list[ColumnRead] = []
        self.kernels: list[KernelTime] = []
        self.checks: list[Check] = []
        self.planned: list[tuple[str, Choice]] = []

    def check(
        self, name: str, staged: StagedColumn, stream: Any, wanted: NDArray[np.bool_] | None = None
    ) -> None:
        """Start to compare a column that was staged with its checksums, where that is asked for."""
        chunk = self.chunk
        if not chunk.state.verifies:
            return
        if staged.payloads is not None:
            self.checks.append(check_payloads(chunk, name, staged.payloads, stream))
            return
        if staged.coded is not None:
            self.checks.append(staged.coded.check(chunk, name, stream))
            return
        used = None
        if wanted is not None:
            used = chunk.uploads.put(wanted.astype(np.uint32), stream)
        values = staged.values.memory
        if staged.offsets is not None:
            self._check_offsets(name, staged.offsets)
        elif staged.values.parts is not None:
            parts = staged.values.parts
            self.checks.append(check_parts(chunk, name, staged.bits, values, parts, stream))
        else:
            self.checks.append(check_vectors(chunk, name, "values", staged.bits, values, stream, used=used))
        if staged.validity is not None:
            bitmap = staged.validity.memory
            self.checks.append(
                check_vectors(chunk, name, "validity", 1, bitmap, stream, nulls=staged.nulls, used=used)
            )

    def stage(
        self,
        column: ScanColumn,
        stream: Any,
        *,
        described: Selection | None = None,
        wanted: NDArray[np.bool_] | None = None,
        in_parts: bool = False,
    ) -> StagedColumn:
        """Start to load a column's vectors; `wanted`: only those, for the rows `described`.

        `in_parts`: of its values only those are needed that pass the scan's first conditions.
        """
        chunk, name = self.chunk, column.name
        bits = self.bits(name)
        offsets = payloads = coded = None
        if chunk.is_packed(name):
            values, payloads = load_payloads(chunk, name, stream, wanted, in_parts=in_parts)
        elif chunk.is_compressed(name):
            coded = load_coded_vectors(chunk, name, stream, wanted)
            values = coded.loaded
        elif column.form is Form.STRINGS:
            offsets = load_offsets(chunk, name, stream, wanted)
            assert offsets.loaded is not None
            values = offsets.loaded
        else:
            values = load_vectors(chunk, name, "values", bits, stream, wanted, in_parts=in_parts)
        nulls = chunk.nulls(name)
        loads = [values]
        in_codes = payloads is not None or coded is not None
        if not in_codes and nulls is not None and (nulls.states == 1).any():
            mixed = nulls.states == 1
            loads.append(
                load_vectors(chunk, name, "validity", 1, stream, mixed if wanted is None else mixed & wanted)
            )
        counters = ReadCounters()
        for load in loads:
            counters += load.counters
            if load.seconds is not None:
                self.kernels.append(KernelTime(load.seconds, (name,), load.path == QUEUE_PAIRS))
        read = ColumnRead(
            *(name, Strategy.STREAM, values.path, counters),
            [load.tally for load in loads if load.tally is not None and load.path == QUEUE_PAIRS],
            copied=[load.tally for load in loads if load.tally is not None and load.path != QUEUE_PAIRS],
            described=None if described is None else described.described,
            vectors=chunk.rows.count if wanted is None else int(wanted.sum()),
            in_parts=values.parts is not None,
            touched=None if wanted is None else lambda: wanted,
        )
        self.reads.append(read)
        validity = loads[1] if len(loads) > 1 else None
        return StagedColumn(bits, values, validity, nulls, read, offsets, payloads, coded)

    def start_filter(self, predicate: FusedPredicate, staged: StagedColumn, stream: Any) -> PassedRows:
        """Start to compare a column that was staged and is there for `stream`."""
        if staged.payloads is not None:
            packed = staged.payloads.pack(self.chunk, staged.read.name)
            return filter_packed(self.chunk, predicate, packed, stream, parts=staged.payloads.parts)
        validity = None if staged.validity is None else staged.validity.memory
        nulls = None if staged.nulls is None else staged.nulls.address
        values = staged.values
        return filter_loaded(
            self.chunk, predicate, values.memory, validity, nulls, stream, parts=values.parts
        )

    def gather_staged(
        self,
        column: ScanColumn,
        staged: StagedColumn,
        selection: Selection,
        wanted: NDArray[np.bool_] | None = None,
    ) -> ReadColumn:
        """The selection's rows of a column that was staged; `wanted`: as `read` has it."""
        if staged.payloads is not None:
            return self._gather_packed(column, staged.payloads, selection, wanted, staged.read)
        if staged.coded is not None:
            codes = staged.coded.codes
            what = (self.chunk, column.name, column.kind, selection, staged.read, codes, None, self.checks)
            return DecodedStrings.start(*what)
        validity = None if staged.validity is None else staged.validity.memory
        if staged.offsets is not None:
            bitmap = None
            if staged.nulls is not None:
                bitmap = gather_validity(self.chunk, validity, staged.nulls, selection)
            return self._vector_strings(column, selection, staged.read, staged.offsets, bitmap)
        found = gather_column(
            *(self.chunk, column.stored_kind, staged.bits, staged.values.memory, validity, staged.nulls),
            selection,
        )
        return self._decode_codes(column, found, selection, wanted)

    def drop(self, staged: StagedColumn) -> None:
        """Nobody gathers from it any more."""
        for loaded in (staged.values, staged.validity):
            if loaded is not None:
                self.chunk.release(loaded.memory)

    def read(
        self,
        columns: Sequence[ScanColumn],
        selection: Selection,
        hits: HitPyramid,
        wanted: NDArray[np.bool_] | None,
    ) -> list[ReadColumn]:
        """The selection's rows of columns; those of which blocks are fetched share one kernel.

        `hits`: how these rows lie. `wanted`: vectors of the pieces that have selected rows, as far as the
        host knows.
        """
        stream = self.chunk.state.stream
        choices = plan_columns(self.chunk, columns, hits, wanted)
        cold = [column.name for column in columns if self.chunk.is_cold(column.name)]
        if not cold:
            self.planned += zip((column.name for column in columns), choices, strict=True)
        for column, choice in zip(columns, choices, strict=True):
            if column.name in cold and choice.strategy is Strategy.STREAM:
                self.chunk.ask_ahead(column.name)
                self.chunk.state.note_streamed_cold(column.name)
        found: dict[ScanColumn, ReadColumn] = {}
        of_blocks: list[ScanColumn] = []
        begun = time.perf_counter()
        for column, choice in zip(columns, choices, strict=True):
            if choice.strategy is Strategy.FETCH_BLOCKS:
                of_blocks.append(column)
                continue
            if choice.strategy is Strategy.STREAM:
                staged = self.stage(column, stream, described=selection, wanted=wanted)
                self.check(column.name, staged, stream, wanted)
                found[column] = self.gather_staged(column, staged, selection, wanted)
                if column.form is not Form.STRINGS or staged.payloads:  # strings are looked at once more
                    self.drop(staged)
            else:
                found[column] = self._fetch_vectors(column, selection, wanted)
            begun = self._note_host_time([choice], begun, cold=bool(cold))
        if of_blocks:
            found |= zip(of_blocks, self._read_blocks(of_blocks, selection, wanted), strict=True)
            picked = [choice for choice in choices if choice.strategy is Strategy.FETCH_BLOCKS]
            self._note_host_time(picked, begun, cold=bool(cold))
        return [found[column] for column in columns]

    def _read_blocks(
        self, columns: Sequence[ScanColumn], selection: Selection, wanted: NDArray[np.bool_] | None
    ) -> list[ReadColumn]:
        """The selection's rows of columns of which only their blocks are fetched, or only they are loaded."""
        fetches, more = Fetches(self.chunk, selection), Fetches(self.chunk, selection)
        mapped = MappedRows(self.chunk, selection)
        fetched = []
        for column in columns:
            if self.chunk.stored_column(column).form is Form.DICTIONARY:
                prepare(self.chunk, column, wanted)
            fetched.append(self._fetch(fetches, mapped, column, selection))
        self._start(fetches)
        seconds = mapped.start()
        if seconds is not None:
            self.kernels.append(KernelTime(seconds, tuple(mapped.names), through_queues=False))
        for one, _ in fetched:
            if isinstance(one, PackedBlocks):
                one.decode(more)
        self._start(more)
        return [
            self._finish_fetch(column, one, read, selection, wanted)
            for column, (one, read) in zip(columns, fetched, strict=True)
        ]

    def _note_host_time(self, choices: Sequence[Choice], begun: float, *, cold: bool) -> float:
        """Reads were started since `begun`; the time now. Cold ones waited for a drive."""
        now = time.perf_counter()
        if not cold:
            for choice in choices:
                self.chunk.state.resources.host_times.add(choice.demand.path, (now - begun) / len(choices))
        return now

    def complete(self, waiting: Sequence[WaitingStrings]) -> list[DeviceStrings | WaitingStrings]:
        """The columns of strings, once the board was copied back, or what they wait for next.

        Those of blocks share one kernel.
        """
        kernel = fetch_listed(self.chunk, [one for one in waiting if isinstance(one, BlockStrings)])
        if kernel is not None:
            self.kernels.append(kernel)
        return [one.complete(self.chunk) for one in waiting]

    def bits(self, name: str) -> int:
        """Of a value of the column as it is stored."""
        return self.chunk.buffers(name)[0].bits

    def _start(self, fetches: Fetches) -> None:
        seconds = fetches.start()
        if seconds is not None:
            self.kernels.append(KernelTime(seconds, tuple(fetches.names)))

    def _fetch(
        self, fetches: Fetches, mapped: MappedRows, column: ScanColumn, selection: Selection
    ) -> tuple[Fetching, ColumnRead]:
        """Have blocks fetched that hold the selection's rows; of strings those of the offsets."""
        name = column.name
        nulls = self.chunk.nulls(name)
        one: Fetching
        if self._sees_rows(column, selection.rows):
            if self.chunk.is_packed(name):
                kind = self.chunk.stored_column(column).stored_kind
                one = mapped.add_packed(name, kind)
                tallies = [one.tally]
            else:
                one = mapped.add(name, self.bits(name), nulls)
                tallies = one.tallies
            read = ColumnRead(
                *(name, Strategy.FETCH_BLOCKS, ZERO_COPY, ReadCounters()),
                sectors=tallies,
                described=selection.described,
                touched=touched_vectors(self.chunk, selection),
            )
            self.reads.append(read)
            return one, read
        if self.chunk.is_packed(name):
            one = PackedBlocks(self.chunk, name, self.chunk.stored_column(column).stored_kind, selection)
            one.start(fetches)
            fetched = one.fetched
        elif self.chunk.is_compressed(name):
            one = CodedBlocks(self.chunk, name, column.kind, selection)
            one.start(fetches)
            fetched = one.fetched
        elif column.form is Form.STRINGS:
            one = fetched = fetches.add_offsets(name, nulls)
        else:
            one = fetched = fetches.add(name, self.bits(name), nulls)
        read = ColumnRead(
            *(name, Strategy.FETCH_BLOCKS, QUEUE_PAIRS, ReadCounters(), fetched.tallies),
            described=selection.described,
            expected=fetched.blocks,
            touched=touched_vectors(self.chunk, selection),
        )
        self.reads.append(read)
        return one, read

    def _sees_rows(self, column: ScanColumn, rows: int) -> bool:
        """Whether the GPU sees the column's rows in the page cache, and nobody wants commands for them."""
        chunk, name = self.chunk, column.name
        if chunk.state.queues or chunk.stored_column(column).form is Form.STRINGS:
            return False
        return all(chunk.sees_rows(name, buffer, rows) for buffer in ("values", "validity"))

    def _finish_fetch(
        self,
        column: ScanColumn,
        one: Fetching,
        read: ColumnRead,
        selection: Selection,
        wanted: NDArray[np.bool_] | None,
    ) -> ReadColumn:
        """The column of what is being fetched."""
        if isinstance(one, (PackedRows, PackedBlocks)):
            return self._decode_codes(column, one.finish(), selection, wanted, read)
        if isinstance(one, CodedBlocks):
            return one.finish(read, self.checks)
        if column.form is Form.STRINGS:
            offsets = StringOffsets(pairs=one.data)
            strings = offsets.pack(self.chunk, column.name, selection)
            started = BlockStrings(
                *(column.name, column.kind, selection, read, offsets, strings, one.validity, self.checks)
            )
            started.start(self.chunk)
            return started
        found = DeviceColumn(column.stored_kind, row_bits(self.bits(column.name)), selection.rows, one.data)
        if one.validity is not None:
            found.validity, found.nulls = one.validity
        return self._decode_codes(column, found, selection, wanted)

    def _fetch_vectors(
        self, column: ScanColumn, selection: Selection, wanted: NDArray[np.bool_] | None
    ) -> ReadColumn:
        chunk, name = self.chunk, column.name
        bits, nulls = self.bits(name), chunk.nulls(name)
        payloads = None
        if chunk.is_compressed(name):
            return self._fetch_coded_vectors(column, selection)
        if chunk.is_packed(name):
            values, payloads = fetch_payloads(chunk, name, selection)
        elif column.form is Form.STRINGS:
            values = fetch_vectors(chunk, name, "offsets", bits, selection, None, OFFSET_BYTES)
        else:
            values = fetch_vectors(chunk, name, "values", bits, selection, None)
        picks = [values]
        if payloads is None and nulls is not None and (nulls.states == 1).any():
            picks.append(fetch_vectors(chunk, name, "validity", 1, selection, nulls))
        read = ColumnRead(
            *(name, Strategy.FETCH_VECTORS, values.path),
            described=selection.described,
            touched=touched_vectors(chunk, selection),
        )
        for pick in picks:
            (read.tallies if pick.path == QUEUE_PAIRS else read.copied).append(pick.tally)
            self.kernels.append(KernelTime(pick.seconds, (name,), pick.path == QUEUE_PAIRS))
        self.reads.append(read)
        if payloads is not None:
            if chunk.state.verifies:
                self.checks.append(check_payloads(chunk, name, payloads, chunk.state.stream))
            return self._gather_packed(column, payloads, selection, wanted, read)
        validity = picks[1] if len(picks) > 1 else None
        if column.form is Form.STRINGS:
            return self._fetch_string_vectors(column, selection, read, values, validity, nulls)
        if chunk.state.verifies:
            self.checks.append(check_picked(chunk, name, "values", bits, values))
            if validity is not None:
                self.checks.append(check_picked(chunk, name, "validity", 1, validity, nulls))
        found = gather_column(
            *(chunk, column.stored_kind, bits, values.memory),
            *(None if validity is None else validity.memory, nulls, selection, values.slots.ptr),
            None if validity is None else validity.slots.ptr,
        )
        return self._decode_codes(column, found, selection, wanted)

    def _fetch_coded_vectors(self, column: ScanColumn, selection: Selection) -> FetchedVectors:
        chunk = self.chunk
        read = ColumnRead(
            *(column.name, Strategy.FETCH_VECTORS, COPY_ENGINE),
            described=selection.described,
            touched=touched_vectors(chunk, selection),
        )
        self.reads.append(read)
        what = (chunk, column.name, column.kind, selection, read, self.kernels, self.checks)
        return FetchedVectors.start(*what)

    def _gather_packed(
        self,
        column: ScanColumn,
        payloads: Payloads,
        selection: Selection,
        wanted: NDArray[np.bool_] | None,
        read: ColumnRead,
    ) -> DeviceColumn:
        packed = payloads.pack(self.chunk, column.name)
        kind = self.chunk.stored_column(column).stored_kind
        found = gather_packed(self.chunk, column.name, kind, packed, selection)
        return self._decode_codes(column, found, selection, wanted, read)

    def _fetch_string_vectors(  # noqa: PLR0917 - one read of one column
        self,
        column: ScanColumn,
        selection: Selection,
        read: ColumnRead,
        values: PickedVectors,
        validity: PickedVectors | None,
        nulls: NullStates | None,
    ) -> VectorStrings:
        unit = picked_bytes(self.bits(column.name), OFFSET_BYTES)
        offsets = StringOffsets(vectors=values.memory, slots=values.slots.ptr, unit=unit)
        found = LoadedOffsets(None, offsets, values.used.ptr)
        if self.chunk.state.verifies:
            self._check_offsets(column.name, found)
            if validity is not None:
                self.checks.append(check_picked(self.chunk, column.name, "validity", 1, validity, nulls))
        bitmap = None
        if nulls is not None:
            memory, slots = (None, None) if validity is None else (validity.memory, validity.slots.ptr)
            bitmap = gather_validity(self.chunk, memory, nulls, selection, slots)
        return self._vector_strings(column, selection, read, found, bitmap)

    def _vector_strings(
        self,
        column: ScanColumn,
        selection: Selection,
        read: ColumnRead,
        found: LoadedOffsets,
        validity: Any,
    ) -> VectorStrings:
        return vector_strings(
            *(self.chunk, column.name, column.kind, selection, read, found, validity),
            *(self.kernels, self.checks),
        )

    def _decode_codes(
        self,
        column: ScanColumn,
        found: DeviceColumn,
        selection: Selection,
        wanted: NDArray[np.bool_] | None = None,
        read: ColumnRead | None = None,
    ) -> DeviceColumn:
        """The column; of a dictionary's codes the places of its values."""
        strings = column.form is Form.STRINGS
        column = self.chunk.stored_column(column)
        if column.form is not Form.DICTIONARY:
            return found
        places, check = decode(self.chunk, column, found, selection, wanted)
        self.checks.append(check)
        if strings and read is not None and read.described is not None:
            read.coded_bytes = count_string_bytes(self.chunk, column, places, wanted)
        return places

    def _check_offsets(self, name: str, found: LoadedOffsets) -> None:
        strings = found.offsets.pack(self.chunk, name, None)
        self.checks.append(check_strings(self.chunk, name, "offsets", strings, found.used))
