"""The rows of one step of a recursive query: in memory as long as they fit, then in a file."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final, Generic

from bamquery.closeable import Closeable
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import release_unused_memory
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.base.frame_sizing import (
    coalesce_frames,
    cut_to_size,
    drain_list,
    spill_frame_bytes,
)
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field


class RecursiveTable(Closeable, Generic[Frame]):
    """Frames put in one by one, then read as often as they are wanted; a context manager.

    Once they do not fit, all of them go to the file: the memory is for the operators of the step that reads
    them.

    Attributes:
        rows: how many there are.
    """

    reservations: Final = 1

    def __init__(
        self, context: ExecutionContext[Frame], fields: Sequence[Field], profile: OperatorProfile
    ) -> None:
        self._context = context
        self._device = context.device
        self._fields = fields
        self._profile = profile
        self._memory = context.memory.reservation("WITH RECURSIVE")
        self._block = spill_frame_bytes(context.memory.limit)
        self._held: list[Frame] = []  # in memory, or to be written
        self._held_bytes = 0
        self._joined = False
        self._file: SpillFile[Frame] | None = None
        self.rows = 0

    def add(self, frame: Frame) -> None:
        """Put rows behind those that are there.

        Raises:
            MemoryLimitError: they do not fit, and there is nowhere else to keep them.
            StorageError: the folder has no room for them.
        """
        self._held.append(frame)
        self._joined = False
        self._held_bytes += self._device.nbytes(frame)
        self.rows += self._device.row_count(frame)
        if self._file is None and not self._memory.fits(self._held_bytes):
            self._begin_file()
        if self._file is not None and self._held_bytes >= self._block:
            self._write(self._file)

    def frames(self) -> Generator[Frame, None, None]:
        """All rows, in chunks of a good size; any number of readers at once, while nothing is added.

        Raises:
            StorageError: they cannot be read back.
        """
        if self._file is None:
            if not self._joined:
                self._held = list(coalesce_frames(self._context, drain_list(self._held), self._block))
                self._joined = True  # another reader takes the same chunks
            yield from self._held
            return
        self._write(self._file)
        with (
            closing(self._file.frames()) as frames,
            closing(coalesce_frames(self._context, frames, self._block)) as chunks,
        ):
            for chunk in chunks:
                self._context.check_cancelled()
                yield chunk

    def clear(self) -> None:
        """Let go of all rows; others may be put in then."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._held = []
        self._held_bytes = self.rows = 0
        self._memory.resize(0)

    def _begin_file(self) -> None:
        folder = self._context.spill_folder
        if folder is None:
            self._memory.resize(self._held_bytes)
            return
        self._profile.details["peak_memory"] = max(
            self._memory.peak, self._profile.details.get("peak_memory", 0)
        )
        self._file = SpillFile(self._device, folder, self._fields, self._profile)
        self._write(self._file)
        self._memory.resize(0)
        release_unused_memory()

    def _write(self, file: SpillFile[Frame]) -> None:
        with closing(coalesce_frames(self._context, drain_list(self._held), self._block)) as chunks:
            for chunk in chunks:
                for block in cut_to_size(self._device, chunk, self._block):
                    self._context.check_cancelled()
                    file.write(block)
        self._held_bytes = 0

    def close(self) -> None:
        """Let go of all rows for good."""
        self.clear()
        self._memory.close()
