"""Sorted rows in files, and their merge in bounded memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation, release_unused_memory
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.frame_sizing import append_constant, cut_to_size, spill_frame_bytes
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Literal
from bamquery.plan.nodes import Field, SortKey

PORTION_ROWS: Final = 1 << 19
"""Rows merged at once: a fraction of a second, after which a query can stop."""
_COPIES: Final = 10
"""Times that a run's block may be in memory: read, waiting, and in the portions of all threads."""
_MOST_RUNS: Final = 64
_ROOMS: Final = 6
"""Blocks are those of a limit of so many times the room for merging at most: two runs fit it twice then."""
_PROBES: Final = 512
_PLACE: Final = Field("place", pa.int64())


class SortedRuns(Closeable, Generic[Frame]):
    """Runs of sorted rows, each in a file, in the order in which their rows came; a context manager.

    Attributes:
        fields: columns of the rows.
        keys: their order.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        fields: Sequence[Field],
        keys: Sequence[SortKey],
        profile: OperatorProfile,
        room: int,
    ) -> None:
        """`room`: bytes that merging may take."""
        assert context.spill_folder is not None
        self._context = context
        self._folder = context.spill_folder
        self.fields = tuple(fields)
        self.keys = tuple(keys)
        self._profile = profile
        self._runs: list[SpillFile[Frame]] = []
        self._target = spill_frame_bytes(min(context.memory.limit, _ROOMS * room))
        self._block_bytes = 1  # of the largest

    def add(self, ordered: Iterable[Frame]) -> None:
        """One more run: sorted frames.

        Raises:
            StorageError: the folder has no room for it.
        """
        self._runs.append(self._write_run(ordered))
        release_unused_memory()
        self._profile.details["runs"] = self._profile.details.get("runs", 0) + 1

    def merge(self, memory: Reservation) -> Generator[Frame, None, None]:
        """All rows in order; rows that are equal in the order of their runs.

        Raises:
            MemoryLimitError: not even two runs can be merged.
        """
        at_once = min(max(memory.room // (2 * _COPIES * self._block_bytes), 2), _MOST_RUNS)
        while len(self._runs) > at_once:
            runs = self._runs
            self._runs = []
            self._profile.details["passes"] = self._profile.details.get("passes", 1) + 1
            groups = [runs[i : i + at_once] for i in range(0, len(runs), at_once)]
            with ExitStack() as stack:
                for run in runs:
                    stack.callback(run.close)
                for group in groups:
                    memory.resize(_COPIES * self._block_bytes * len(group))
                    with closing(self._merge(group)) as frames:
                        self._runs.append(self._write_run(frames))
                    for run in group:
                        run.close()
        memory.resize(_COPIES * self._block_bytes * len(self._runs))
        with closing(self._merge(self._runs)) as frames:
            yield from frames

    def close(self) -> None:
        """Let go of all files."""
        for run in self._runs:
            run.close()

    def _write_run(self, ordered: Iterable[Frame]) -> SpillFile[Frame]:
        device = self._context.device
        with ExitStack() as stack:
            run = stack.enter_context(SpillFile(device, self._folder, self.fields, self._profile))
            for frame in ordered:
                for block in cut_to_size(device, frame, self._target):
                    self._context.check_cancelled()
                    self._block_bytes = max(self._block_bytes, device.nbytes(block))
                    run.write(block)
            stack.pop_all()
        return run

    def _merge(self, runs: Sequence[SpillFile[Frame]]) -> Generator[Frame, None, None]:
        device = self._context.device

        def order(pieces: list[Frame]) -> Frame:
            return pieces[0] if len(pieces) == 1 else device.sort(device.concatenate(pieces), self.keys)

        with (
            closing(self._portions(runs)) as portions,
            closing(ordered_map(self._context, order, portions)) as ordered,
        ):
            yield from ordered

    def _portions(self, runs: Sequence[SpillFile[Frame]]) -> Generator[list[Frame], None, None]:
        """Sorted pieces of all runs that come before every row of the portions after."""
        with ExitStack() as stack:
            heads: list[_RunHead[Frame]] = []
            for run in runs:
                blocks = run.frames()
                stack.callback(blocks.close)
                heads.append(_RunHead(self._context.device, self.keys, run.rows, blocks))
            while True:
                self._context.check_cancelled()
                for head in heads:
                    head.fill()
                heads = [head for head in heads if head.count]
                if not heads:
                    return
                pieces = self._cut_heads(heads)
                if pieces:
                    yield pieces

    def _cut_heads(self, heads: Sequence[_RunHead[Frame]]) -> list[Frame]:
        """The first rows of each run, up to one that is not behind any row which is not in memory."""
        device = self._context.device
        most = max(PORTION_ROWS // len(heads), 1)
        candidates = [
            (number, min(head.count, most) - 1)
            for number, head in enumerate(heads)
            if head.waiting or head.count > most
        ]
        if not candidates:
            return [head.take(head.count) for head in heads]
        rows = [device.slice(heads[number].keys, row, 1) for number, row in candidates]
        first = self._first_run(rows)
        chosen, bound = candidates[first][0], rows[first]
        pieces = []
        for number, head in enumerate(heads):
            # Equal rows of earlier runs come before the bound, those of later ones after it.
            count = head.count_before(bound, or_equal=number <= chosen)
            if count:
                pieces.append(head.take(count))
        return pieces

    def _first_run(self, rows: Sequence[Frame]) -> int:
        """Which of several rows of keys comes first in the order."""
        if len(rows) == 1:
            return 0
        device = self._context.device
        numbered = [
            device.join_columns([row, device.evaluate([Literal(pa.scalar(i, _PLACE.type))], row)])
            for i, row in enumerate(rows)
        ]
        least = device.sort(device.concatenate(numbered), key_columns(self.keys), 1)
        batch = device.to_arrow(device.select(least, [len(self.keys)]), [_PLACE])
        found: int = batch.column(0)[0].as_py()
        return found


@dataclass
class _RunHead(Generic[Frame]):
    """The next rows of a run, in memory, and their keys.

    Attributes:
        waiting: rows that are still in the file.
    """

    device: Device[Frame]
    order: Sequence[SortKey]
    waiting: int
    blocks: Generator[Frame, None, None]
    _rows: Frame | None = None
    _keys: Frame | None = None
    count: int = 0
    _block: int = 0

    @property
    def keys(self) -> Frame:
        """Keys of the rows in memory."""
        assert self._keys is not None
        return self._keys

    def fill(self) -> None:
        """Read a block where fewer rows than half of one are left."""
        if not self.waiting or 2 * self.count > self._block:
            return
        device = self.device
        block = next(self.blocks)
        self._block = device.row_count(block)
        self.waiting -= self._block
        keys = device.evaluate([key.expression for key in self.order], block)
        if self.count and self._rows is not None:
            block = device.concatenate([self._rows, block])
            keys = device.concatenate([self.keys, keys])
        self._rows, self._keys = block, keys
        self.count = device.row_count(block)

    def take(self, count: int) -> Frame:
        """The first rows, which are no longer here."""
        assert self._rows is not None
        piece = self.device.slice(self._rows, 0, count)
        left = self.count - count
        self._rows = self.device.slice(self._rows, count, left) if left else None
        self._keys = self.device.slice(self.keys, count, left) if left else None
        self.count = left
        return piece

    def count_before(self, bound: Frame, *, or_equal: bool) -> int:
        """How many rows come before one of another run, whose keys are given, or are equal to it."""
        low, high = 0, self.count
        while low < high:
            places = np.arange(low, high, -(-(high - low) // _PROBES), dtype=np.int64)
            count = self._count_ranked(self.device.take(self.keys, places), bound, or_equal=or_equal)
            if count < len(places):
                high = int(places[count])
            if not count:
                return low
            low = int(places[count - 1]) + 1
        return low

    def _count_ranked(self, rows: Frame, bound: Frame, *, or_equal: bool) -> int:
        """How many of some sorted rows come before the bound."""
        device = self.device
        sides = [append_constant(device, rows, False), append_constant(device, bound, True)]
        # The sort is stable: what stands first comes first among equals.
        both = device.concatenate(sides if or_equal else sides[::-1])
        ordered = device.sort(both, key_columns(self.order))
        of_bound = device.matching_positions(ColumnRef(len(self.order), "bound", pa.bool_()), ordered)
        return int(device.read_positions(of_bound)[0])


def key_columns(keys: Sequence[SortKey]) -> list[SortKey]:
    """The same order over frames whose columns are the keys' values."""
    return [
        SortKey(ColumnRef(i, "key", key.expression.type), key.descending, key.nulls_first)
        for i, key in enumerate(keys)
    ]
