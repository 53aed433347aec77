"""Reads one column of a chunk for the rows that are alive, in the way that costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.accounting import ColumnRead, KernelTime
from bamquery.engine.cuda.scan.checking import VectorCheck, check_vectors
from bamquery.engine.cuda.scan.choice import BufferShape, choose_strategy
from bamquery.engine.cuda.scan.chunk_memory import ChunkMemory, Nulls
from bamquery.engine.cuda.scan.device_columns import DeviceColumn
from bamquery.engine.cuda.scan.fetching import Fetches
from bamquery.engine.cuda.scan.gathering import gather_column
from bamquery.engine.cuda.scan.loading import QUEUE_PAIRS, Loaded, load_vectors
from bamquery.engine.cuda.scan.picking import fetch_vectors
from bamquery.engine.cuda.scan.predicate import FusedPredicate
from bamquery.engine.cuda.scan.scan_column import ScanColumn
from bamquery.engine.cuda.scan.selection import Passed, Selection, filter_loaded
from bamquery.storage.block_reader import ReadCounters
from bamquery.storage.read_planner import Strategy


@dataclass
class StagedColumn:
    """A column whose vectors were loaded.

    Attributes:
        values: all of the chunk's.
        validity: bitmaps of those that have nulls and values; None: there is none.
        nulls: states; None: no row is null.
    """

    bits: int
    values: Loaded
    validity: Loaded | None
    nulls: Nulls | None


class ColumnLoads:
    """One chunk's reads; one thread uses it.

    Attributes:
        reads: what they are to be accounted for.
        kernels: that drove queue pairs.
        checks: of vectors that were read whole.
    """

    def __init__(self, chunk: ChunkMemory) -> None:
        self.chunk = chunk
        self.reads: list[ColumnRead] = []
        self.kernels: list[KernelTime] = []
        self.checks: list[VectorCheck] = []

    def check(
        self, name: str, staged: StagedColumn, stream: Any, wanted: NDArray[np.bool_] | None = None
    ) -> None:
        """Start to compare a column that was staged with its checksums, where that is asked for."""
        chunk = self.chunk
        if not chunk.state.verifies:
            return
        used = None
        if wanted is not None:
            used = chunk.uploads.put(wanted.astype(np.uint32), stream)
        values = staged.values.memory
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
    ) -> StagedColumn:
        """Start to load a column's vectors; `wanted`: only those, for the rows `described`."""
        chunk, name = self.chunk, column.name
        bits = self.bits(name)
        values = load_vectors(chunk, name, "values", bits, stream, wanted)
        nulls = chunk.nulls(name)
        loads = [values]
        if nulls is not None and (nulls.states == 1).any():
            mixed = nulls.states == 1
            loads.append(
                load_vectors(chunk, name, "validity", 1, stream, mixed if wanted is None else mixed & wanted)
            )
        counters = ReadCounters()
        for load in loads:
            counters += load.counters
            if load.seconds is not None:
                self.kernels.append(KernelTime(load.seconds, (name,), load.path == QUEUE_PAIRS))
        self.reads.append(
            ColumnRead(
                name,
                Strategy.STREAM,
                values.path,
                counters,
                [load.tally for load in loads if load.tally is not None],
                through_queues=values.path == QUEUE_PAIRS,
                described=None if described is None else described.described,
                vectors=chunk.rows.count if wanted is None else int(wanted.sum()),
            )
        )
        return StagedColumn(bits, values, loads[1] if len(loads) > 1 else None, nulls)

    def filtered(self, predicate: FusedPredicate, staged: StagedColumn, stream: Any) -> Passed:
        """Start to compare a column that was staged and is there for `stream`."""
        validity = None if staged.validity is None else staged.validity.memory
        nulls = None if staged.nulls is None else staged.nulls.address
        return filter_loaded(self.chunk, predicate, staged.values.memory, validity, nulls, stream)

    def gathered(self, column: ScanColumn, staged: StagedColumn, selection: Selection) -> DeviceColumn:
        """The selection's rows of a column that was staged."""
        validity = None if staged.validity is None else staged.validity.memory
        return gather_column(
            self.chunk, column.kind, staged.bits, staged.values.memory, validity, staged.nulls, selection
        )

    def drop(self, staged: StagedColumn) -> None:
        """Nobody gathers from it any more."""
        for loaded in (staged.values, staged.validity):
            if loaded is not None:
                self.chunk.release(loaded.memory)

    def read(
        self, columns: Sequence[ScanColumn], selection: Selection, wanted: NDArray[np.bool_] | None
    ) -> list[DeviceColumn]:
        """The selection's rows of columns; those of which blocks are fetched share one kernel.

        `wanted`: vectors of the pieces that have selected rows, as far as the host knows.
        """
        chunk, stream = self.chunk, self.chunk.state.stream
        fetches = Fetches(chunk, selection)
        found: list[DeviceColumn] = []
        fetched: list[str] = []
        for column in columns:
            strategy = self.strategy(column, selection.rows)[0]
            if strategy is Strategy.STREAM:
                staged = self.stage(column, stream, described=selection, wanted=wanted)
                self.check(column.name, staged, stream, wanted)
                found.append(self.gathered(column, staged, selection))
                self.drop(staged)
            elif strategy is Strategy.FETCH_VECTORS:
                found.append(self._picked(column, selection))
            else:
                name = column.name
                one = fetches.add(name, column.kind, self.bits(name), chunk.nulls(name))
                self.reads.append(
                    ColumnRead(
                        *(name, strategy, QUEUE_PAIRS, ReadCounters(), one.tallies),
                        through_queues=True,
                        described=selection.described,
                        expected=one.blocks,
                    )
                )
                fetched.append(name)
                found.append(one.column)
        seconds = fetches.start()
        if seconds is not None:
            self.kernels.append(KernelTime(seconds, tuple(fetched)))
        return found

    def strategy(self, column: ScanColumn, rows: int) -> tuple[Strategy, float]:
        """How to read a column for so many rows, and what that should take."""
        chunk, state = self.chunk, self.chunk.state
        nulls = chunk.nulls(column.name)
        shapes = [BufferShape(chunk.rows.count, self.bits(column.name))]
        if nulls is not None:
            shapes.append(BufferShape(int((nulls.states == 1).sum()), 1))
        strategy, seconds = choose_strategy(
            tuple(shapes), rows, chunk.rows.count, state.block_bytes, state.rates
        )
        return (strategy if state.forced is None else state.forced), seconds

    def bits(self, name: str) -> int:
        """Of a value of the column as it is stored."""
        return self.chunk.buffers(name)[0].bits

    def _picked(self, column: ScanColumn, selection: Selection) -> DeviceColumn:
        chunk, name = self.chunk, column.name
        bits, nulls = self.bits(name), chunk.nulls(name)
        values = fetch_vectors(chunk, name, "values", bits, selection, None)
        picks = [values]
        if nulls is not None and (nulls.states == 1).any():
            picks.append(fetch_vectors(chunk, name, "validity", 1, selection, nulls))
        for pick in picks:
            if pick.seconds is not None:
                self.kernels.append(KernelTime(pick.seconds, (name,)))
        self.reads.append(
            ColumnRead(
                *(name, Strategy.FETCH_VECTORS, values.path, ReadCounters(), [p.tally for p in picks]),
                through_queues=values.path == QUEUE_PAIRS,
                described=selection.described,
            )
        )
        if chunk.state.verifies:
            for pick, part, width in zip(picks, ("values", "validity"), (bits, 1), strict=False):
                self.checks.append(
                    check_vectors(
                        *(chunk, name, part, width, pick.memory, chunk.state.stream),
                        nulls=nulls if part == "validity" else None,
                        slots=pick.slots.ptr,
                        used=pick.used.ptr,
                    )
                )
        validity = picks[1] if len(picks) > 1 else None
        return gather_column(
            *(chunk, column.kind, bits, values.memory, None if validity is None else validity.memory),
            *(nulls, selection, values.slots.ptr, None if validity is None else validity.slots.ptr),
        )
