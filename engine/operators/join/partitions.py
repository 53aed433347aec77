"""One side of a join in partitions by its keys, each in a file."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Final, Generic

from bamquery.closeable import Closeable
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import release_unused_memory
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.frame_sizing import gather_frames
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Field

PARTITIONS: Final = 32
MOST_LEVELS: Final = 5
"""Times that a partition is split again: more than any number of rows needs, unless they have one key."""


class HashPartitions(Closeable, Generic[Frame]):
    """Rows by the hash of their keys: equal keys of both sides are in the part of one number."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        fields: Sequence[Field],
        keys: Sequence[Expression],
        level: int,
        profile: OperatorProfile,
    ) -> None:
        """`level`: how often what comes in was split before; `profile`: whose rows they are."""
        assert context.spill_folder is not None
        self._context = context
        self._keys = tuple(keys)
        self._level = level
        self._files = [
            SpillFile(context.device, context.spill_folder, fields, profile) for _ in range(PARTITIONS)
        ]

    def fill(self, frames: Iterable[Frame]) -> None:
        """Take all frames.

        Raises:
            StorageError: the database's folder has no room for them.
            ExecutionError: a key cannot be computed.
        """
        device = self._context.device

        def split(gathered: Sequence[Frame]) -> Sequence[Frame]:
            frame = device.concatenate(gathered)
            return device.partition(frame, device.evaluate(self._keys, frame), PARTITIONS, self._level)

        with (
            closing(gather_frames(self._context, frames)) as chunks,
            closing(ordered_map(self._context, split, chunks)) as pieces,
        ):
            for partitions in pieces:
                for file, partition in zip(self._files, partitions, strict=True):
                    file.write(partition)
        release_unused_memory()

    def rows(self, partition: int) -> int:
        """Rows of a partition."""
        return self._files[partition].rows

    def reread(self, partition: int) -> Generator[Frame, None, None]:
        """A partition's rows so far; they stay there, and more may come."""
        return self._files[partition].frames()

    def frames(self, partition: int) -> Generator[Frame, None, None]:
        """A partition's rows, once; its file is gone afterwards."""
        with self._files[partition] as file:
            yield from file.frames()

    def close(self) -> None:
        """Let go of all files."""
        with ExitStack() as stack:
            for file in self._files:
                stack.callback(file.close)
