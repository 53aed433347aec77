"""A number of rows drawn at random: those with the least of random keys, in memory or in files."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final, Generic

import numpy as np

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation, release_unused_memory
from bamquery.engine.operators.base.frame_sizing import coalesce_frames, drain_list, slice_frame
from bamquery.engine.operators.sample.keyed_file import KeyedFile, Keys, LeastKeys
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field

_FEWEST_HELD: Final = 1 << 14
"""Rows beyond those wanted that are held before the least are let go."""


class Reservoir(Generic[Frame]):
    """Rows with random keys go in, those with the `count` least keys come out, in the order they went in.

    Any set of so many rows is as likely as another. Which ones they are depends on the keys alone, and
    not on whether they fit in memory.

    Attributes:
        limit: a row with a key that is not less need not be put in.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        count: int,
        fields: Sequence[Field],
        memory: Reservation,
        profile: OperatorProfile,
    ) -> None:
        self._context = context
        self._device = context.device
        self._count = count
        self._most = 2 * count + _FEWEST_HELD
        self._fields = fields
        self._memory = memory
        self._profile = profile
        self._held: list[Frame] = []
        self._keys: list[Keys] = []
        self._rows = self._bytes = 0  # in memory
        self._file: KeyedFile[Frame] | None = None
        self.limit = 1.0

    def add(self, frame: Frame, keys: Keys) -> None:
        """Put rows in, at least one.

        Raises:
            MemoryLimitError: they do not fit, and there is nowhere else to keep them.
            StorageError: the folder has no room for them.
        """
        if self._file is not None:
            self._file.write(frame, keys)
            if self._file.rows >= self._most:
                self._file, self.limit = self._file.keep_least(self._count)
            return
        self._held.append(frame)
        self._keys.append(keys)
        self._rows += len(keys)
        self._bytes += self._device.nbytes(frame) + keys.nbytes
        if self._rows >= self._most:
            self._keep_least()
        if not self._memory.fits(self._needed_bytes()):
            self._make_room()

    def frames(self) -> Generator[Frame, None, None]:
        """The rows drawn; none can be put in any more.

        Raises:
            StorageError: they cannot be read back.
        """
        if self._file is not None:
            with closing(self._file.draw(self._count)) as drawn:
                yield from drawn
        elif self._held:
            self._keep_least()
            for frame in drain_list(self._held):
                yield from slice_frame(self._device, frame)

    def close(self) -> None:
        """Let go of all rows."""
        if self._file is not None:
            self._file.close()
        self._held = []

    def _keep_least(self) -> None:
        """Of the rows in memory."""
        keys = np.concatenate(self._keys)
        if len(keys) < self._count:
            return
        least = LeastKeys.from_keys(keys, self._count)
        chosen: list[Keys] = []

        def kept_frames() -> Generator[Frame, None, None]:
            for frame, own in zip(drain_list(self._held), self._keys, strict=True):
                self._context.check_cancelled()
                positions = least.positions(own)
                if len(positions):
                    chosen.append(own[positions])
                    yield self._device.take(frame, positions)

        held = list(coalesce_frames(self._context, kept_frames()))
        ends = np.cumsum([self._device.row_count(frame) for frame in held])
        self._keys = np.split(np.concatenate(chosen), ends[:-1])
        self._held = held
        self._rows = self._count
        self._bytes = 8 * self._count + sum(map(self._device.nbytes, held))
        self.limit = least.bound

    def _needed_bytes(self) -> int:
        """Bytes for the rows, and for half of them, which may be there twice while the least are taken."""
        return self._bytes + self._bytes // 2

    def _make_room(self) -> None:
        """Only the rows that may be drawn stay in memory; if they take more than half of it, in files."""
        if self._rows > self._count:
            self._keep_least()
        needed = self._needed_bytes()
        folder = self._context.spill_folder
        if folder is None or 2 * needed <= self._memory.room:
            self._memory.resize(needed)
            return
        self._profile.details["peak_memory"] = self._memory.peak
        self._file = KeyedFile(self._context, folder, self._fields, self._profile, self.limit)
        for frame, keys in zip(drain_list(self._held), self._keys, strict=True):
            self._file.write(frame, keys)
        self._keys.clear()
        self._memory.resize(0)
        release_unused_memory()
