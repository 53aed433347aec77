"""Values of groups in order, in a file, with how often each comes; and what is made of values at places."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Final, Generic, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.operators.base.row_changes import row_changes
from bamquery.engine.operators.sort.external_sort import sort_rows
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, SortKey
from bamquery.plan.nodes import Field

COUNT: Final = Field("count", pa.int64())
GROUP_BYTES: Final = 96
"""Of numbers about a group that are held at most, those that a call needs included."""

Numbers = NDArray[np.int64]


class CountBlock(NamedTuple):
    """Some rows of the file.

    Attributes:
        rows: keys, value and count; a frame.
        counts: how often each value comes.
        ends: values up to each row, it included, of all rows so far.
    """

    rows: Any
    counts: Numbers
    ends: Numbers


class SortedCounts(Generic[Frame]):
    """Rows of keys, value and count, sorted by keys and value; values are numbered in that order, from 0 on.

    Attributes:
        fields: the keys and the value.
        starts: the number of the first value of each group.
        totals: how many values each group has.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        fields: Sequence[Field],
        memory: Reservation,
        profile: OperatorProfile,
    ) -> None:
        """`memory`: for what is known of each group; others may hold some of it, too."""
        assert context.spill_folder is not None
        self.context = context
        self.memory = memory
        self.profile = profile
        self.fields = tuple(fields)
        self.starts: Numbers = np.zeros(0, np.int64)
        self.totals = self.starts
        self._file = SpillFile(context.device, context.spill_folder, [*fields, COUNT], profile)

    def fill(self, rows: Iterable[Frame], sorting: Reservation) -> None:
        """Take all rows: keys, value and count, of which some may be about the same value.

        Raises:
            MemoryLimitError: there are too many groups.
            StorageError: the folder has no room for the rows.
        """
        context, device = self.context, self.context.device
        columns = [*self.fields, COUNT]
        order = [SortKey(ColumnRef(i, field.name, field.type)) for i, field in enumerate(self.fields)]
        keys = [key.expression for key in order[:-1]]
        last: Frame | None = None
        starts: list[Numbers] = []
        values = 0
        with (
            closing(coalesce_frames(context, rows)) as chunks,
            closing(
                sort_rows(context, chunks, columns, order, memory=sorting, profile=self.profile)
            ) as ordered,
        ):
            for frame in ordered:
                context.check_cancelled()
                if not device.row_count(frame):
                    continue
                ends = values + np.cumsum(self._counts(frame))
                begins = np.concatenate([[values], ends[:-1]])
                values_of_keys = device.select(frame, range(len(keys)))
                changes = row_changes(device, keys, last, values_of_keys)
                starts.append(begins[changes if last is not None else np.concatenate([[0], changes])])
                last = device.slice(values_of_keys, len(ends) - 1, 1)
                values = int(ends[-1])
                self.memory.resize(self.memory.held + GROUP_BYTES * len(starts[-1]))
                self._file.write(frame)
        sorting.resize(0)
        self.starts = np.concatenate([self.starts, *starts])
        self.totals = np.diff(self.starts, append=values)

    def blocks(self) -> Generator[CountBlock, None, None]:
        """All rows, as often as one likes.

        Raises:
            StorageError: they cannot be read back.
        """
        values = 0
        for frame in self._file.frames():
            self.context.check_cancelled()
            counts = self._counts(frame)
            ends = values + np.cumsum(counts)
            values = int(ends[-1])
            yield CountBlock(frame, counts, ends)

    def rows_at(self, numbers: Numbers) -> Generator[Frame, None, None]:
        """The rows of the values of those numbers, which ascend; one may come twice."""
        done = 0
        for block in self.blocks():
            stop = int(np.searchsorted(numbers, block.ends[-1]))
            if stop > done:
                places = np.searchsorted(block.ends, numbers[done:stop], side="right")
                yield self.context.device.take(block.rows, places)
            done = stop

    def groups_of(self, block: CountBlock) -> Numbers:
        """The number of each row's group."""
        found: Numbers = np.searchsorted(self.starts, block.ends - block.counts, side="right") - 1
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        self.memory.resize(self.memory.held - GROUP_BYTES * len(self.starts))

    def _counts(self, frame: Frame) -> Numbers:
        device = self.context.device
        batch = device.to_arrow(device.select(frame, [len(self.fields)]), [COUNT])
        return np.asarray(batch.column(0))
