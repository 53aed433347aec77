"""Rows told from those that came before: in memory as long as these fit, then by partitions in files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.closeable import Closeable
from bamquery.engine.device import Frame, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, drain_list, slice_frame
from bamquery.engine.operators.join.build_side import build_side_bytes, collect_blocks
from bamquery.engine.operators.join.partitions import PARTITIONS, HashPartitions
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression
from bamquery.plan.nodes import Field

_WHAT: Final = "WITH RECURSIVE ... UNION"
_LEVEL: Final = 0
"""Of the hashes that partitions are split by."""
_MANY_ROWS: Final = 1 << 20
"""Rows, of a table or of those that wait, of which to make one takes a fraction of a second."""


class DistinctSet(Closeable, Generic[Frame]):
    """All rows so far, each once; a context manager that gives back what it holds.

    They lie in tables of which each has at least twice as many rows as the next one, so that a row is put
    into a new table a logarithm of all rows' number of times, unless it is one of many. Where memory ends,
    tables are emptied into files by the hash of the rows, and begun anew. From then on, rows that no table
    knows wait for the end of a step, to be looked for in the files all at once; if they are many, they wait
    in files by the same hash, and are looked for partition by partition.

    Args:
        context: of the query; the rows count for its `memory_limit`.
        keys: what makes rows equal, nulls too.
        fields: of the rows.
        profile: whose rows they are.
    """

    reservations: Final = 2

    def __init__(
        self,
        context: ExecutionContext[Frame],
        keys: Sequence[Expression],
        fields: Sequence[Field],
        profile: OperatorProfile,
    ) -> None:
        self._context = context
        self._device = context.device
        self._keys = tuple(keys)
        self._fields = fields
        self._profile = profile
        self._many = _MANY_ROWS * context.device.task_size
        self._tables: list[tuple[Frame, JoinTable[Frame]]] = []
        self._spilled: HashPartitions[Frame] | None = None
        self._deferred: list[Frame] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._deferred_partitions: HashPartitions[Frame] | None = None
        self._stack = ExitStack()
        self._memory = context.memory.reservation(_WHAT)
        self._waiting_memory = context.memory.reservation(_WHAT)

    def distinct_frames(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """Of a step's frames the rows that have not been seen; see `new` and `deferred_rows`."""
        for frame in frames:
            new = self.add(frame)
            if self._device.row_count(new):
                yield new
        with closing(self.deferred_rows()) as rest:
            yield from rest

    def add(self, frame: Frame) -> Frame:
        """The frame's rows that have not been seen, the first of several equal ones; seen from now on.

        Once there are files there are none: those that may be new `deferred_rows` gives.

        Raises:
            MemoryLimitError: there is nowhere else to keep rows.
            StorageError: the folder has no room for them.
        """
        frame, keys = self._drop_known(frame)
        if not self._device.row_count(frame):
            return frame
        if self._spilled is None:
            self._keep(keys)
            return frame
        self._defer(frame)
        return self._device.slice(frame, 0, 0)

    def deferred_rows(self) -> Generator[Frame, None, None]:
        """At the end of a step, its rows that have not been seen, as far as they have not been given yet.

        Raises:
            MemoryLimitError: not even one row can be looked for.
            StorageError: files cannot be written or read back.
        """
        if self._deferred_partitions is None:
            if self._deferred:
                frame = self._device.concatenate(self._deferred)
                self._deferred.clear()
                yield from self._drop_spilled(frame)
        else:
            self._defer_to_files(self._deferred_partitions)
            with self._deferred_partitions as waiting, closing(self._new_by_partition(waiting)) as frames:
                # A block is of few partitions that follow each other; equal rows may be in two of them.
                for block in collect_blocks(self._device, frames, self._waiting_memory):
                    if block:
                        frame = self._device.concatenate(block)
                        block.clear()
                        yield from self._drop_spilled(frame)
            self._deferred_partitions = None
        self._waiting_rows = self._waiting_bytes = 0
        self._waiting_memory.resize(0)

    def _new_by_partition(self, waiting: HashPartitions[Frame]) -> Generator[Frame, None, None]:
        for partition in range(PARTITIONS):
            self._context.check_cancelled()
            with closing(waiting.frames(partition)) as frames:
                yield from frames

    def _drop_spilled(self, frame: Frame) -> Generator[Frame, None, None]:
        """The frame's rows that neither a table nor a file has."""
        device = self._device
        frame, keys = self._drop_known(frame)
        rows = device.row_count(frame)
        if not rows:
            return
        known = np.zeros(rows, np.bool_)
        table = device.join_table(keys, [True] * len(self._keys))

        def places(rows: Frame) -> NDArray[np.int64]:
            return np.concatenate([found for _, _, found in table.matches(rows)])

        with (
            closing(self._spilled_candidates(keys)) as older,
            closing(coalesce_frames(self._context, older)) as chunks,
            closing(ordered_map(self._context, places, chunks)) as found,
        ):
            for positions in found:
                known[positions] = True
        if known.any():
            frame, keys = self._drop_marked(known, frame, keys)
        if device.row_count(frame):
            self._keep(keys)
            yield frame

    def _spilled_candidates(self, keys: Frame) -> Generator[Frame, None, None]:
        """Rows in files, of those partitions that the keys are of."""
        assert self._spilled is not None
        device = self._device
        for partition, own in enumerate(device.partition(keys, keys, PARTITIONS, _LEVEL)):
            if device.row_count(own):
                with closing(self._spilled.reread(partition)) as frames:
                    yield from frames

    def _drop_known(self, frame: Frame) -> tuple[Frame, Frame]:
        """The rows that no table has, each once, and their keys."""
        device = self._device
        frame = self._first_of_each(frame)
        keys = device.evaluate(self._keys, frame)
        for _, table in self._tables:
            self._context.check_cancelled()
            known = np.zeros(device.row_count(frame), np.bool_)
            for _, positions, _ in table.matches(keys):
                known[positions] = True
            if known.any():
                frame, keys = self._drop_marked(known, frame, keys)
        return frame, keys

    def _drop_marked(self, known: NDArray[np.bool_], frame: Frame, keys: Frame) -> tuple[Frame, Frame]:
        rest = np.flatnonzero(~known)
        return self._device.take(frame, rest), self._device.take(keys, rest)

    def _first_of_each(self, frame: Frame) -> Frame:
        device = self._device
        columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(self._fields)]
        firsts = [AggregateCall("first", (column,), column.type) for column in columns]
        grouping = device.aggregation(self._keys, firsts)
        groups = grouping.final(grouping.partial(frame))
        return device.select(groups, range(len(self._keys), len(self._keys) + len(columns)))

    def _keep(self, keys: Frame) -> None:
        """Put new rows into a table of their own, with those of smaller tables."""
        device = self._device
        rows, size = device.row_count(keys), device.nbytes(keys)
        joined = [keys]
        while self._tables:
            last, _ = self._tables[-1]
            more = device.row_count(last)
            if more >= 2 * rows or more + rows > self._many:
                break
            self._tables.pop()
            joined.insert(0, last)
            rows, size = rows + more, size + device.nbytes(last)
        if not self._fits(build_side_bytes(rows, size)):
            self._empty_tables(joined)
            return
        keys = device.concatenate(joined)
        self._tables.append((keys, device.join_table(keys, [True] * len(self._keys))))
        self._memory.fits(self._held_bytes())

    def _held_bytes(self) -> int:
        return sum(self._device.nbytes(keys) + table.nbytes for keys, table in self._tables)

    def _fits(self, more: int) -> bool:
        """Reserve memory for another table; with files, half of what there is is left to others."""
        needed = self._held_bytes() + more
        if self._context.spill_folder is None:
            self._memory.resize(needed)
            return True
        return (self._spilled is None or 2 * needed <= self._memory.room) and self._memory.fits(needed)

    def _empty_tables(self, beside: list[Frame]) -> None:
        """All tables' rows, and some beside, to the files."""
        if self._spilled is None:
            fields = [Field("key", key.type) for key in self._keys]
            columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(fields)]
            self._spilled = self._stack.enter_context(
                HashPartitions(self._context, fields, columns, _LEVEL, self._profile)
            )
            self._profile.details["partitions"] = PARTITIONS
        self._profile.details["peak_memory"] = max(
            self._memory.peak, self._profile.details.get("peak_memory", 0)
        )
        held = [*(keys for keys, _ in self._tables), *beside]
        self._tables.clear()
        beside.clear()
        self._spilled.fill(self._pieces(held))
        self._memory.resize(0)

    def _pieces(self, frames: list[Frame]) -> Generator[Frame, None, None]:
        for frame in drain_list(frames):
            yield from slice_frame(self._device, frame)

    def _defer(self, frame: Frame) -> None:
        """Put rows that may be new beside others of the step."""
        device = self._device
        self._deferred.append(frame)
        self._waiting_rows += device.row_count(frame)
        self._waiting_bytes += device.nbytes(frame)
        needed = build_side_bytes(self._waiting_rows, self._waiting_bytes)
        if self._waiting_rows <= self._many and self._waiting_memory.fits(needed):
            return
        if self._deferred_partitions is None:
            self._deferred_partitions = self._stack.enter_context(
                HashPartitions(self._context, self._fields, self._keys, _LEVEL, self._profile)
            )
        self._defer_to_files(self._deferred_partitions)

    def _defer_to_files(self, partitions: HashPartitions[Frame]) -> None:
        partitions.fill(drain_list(self._deferred))
        self._waiting_rows = self._waiting_bytes = 0
        self._waiting_memory.resize(0)

    def close(self) -> None:
        """Let go of all rows and files."""
        self._tables = []
        self._deferred = []
        self._stack.close()
        self._memory.close()
        self._waiting_memory.close()
