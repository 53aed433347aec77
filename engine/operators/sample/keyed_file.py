"""Rows in a file, and beside them the random keys by which some of them are drawn."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.closeable import Closeable
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.spill_files import BatchFile, SpillFile
from bamquery.engine.operators.base.frame_sizing import cut_to_size, spill_frame_bytes
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.nodes import Field

Keys = NDArray[np.float64]

_BUCKETS: Final = 4096
"""Parts of the keys' range, in each of which keys are counted: those of one part are sorted in the end."""


class LeastKeys:
    """Picks the rows with the least keys, of equal keys the first ones.

    Attributes:
        bound: the greatest key among them.
    """

    def __init__(self, bound: float, equal: int) -> None:
        """`equal`: how many rows that have the bound are picked."""
        self.bound = bound
        self._equal = equal

    @staticmethod
    def from_keys(keys: Keys, count: int) -> LeastKeys:
        """For the `count` least of some keys, as many at least."""
        bound = np.partition(keys, count - 1)[count - 1]
        return LeastKeys(float(bound), count - int(np.count_nonzero(keys < bound)))

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Those of the next rows' keys, ascending."""
        equal = np.flatnonzero(keys == self.bound)[: self._equal]
        self._equal -= len(equal)
        less = np.flatnonzero(keys < self.bound)
        return np.sort(np.concatenate([less, equal])) if len(equal) else less


class KeyedFile(Closeable, Generic[Frame]):
    """Frames and a key for each row, from 0 to `top` and evenly spread; a context manager.

    Attributes:
        rows: how many were written.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        folder: Path,
        fields: Sequence[Field],
        profile: OperatorProfile,
        top: float,
    ) -> None:
        self._context = context
        self._device = context.device
        self._folder = folder
        self._fields = fields
        self._profile = profile
        self._top = top
        self._block = spill_frame_bytes(context.memory.limit)
        self._counts = np.zeros(_BUCKETS, np.int64)
        self._frames = SpillFile(context.device, folder, fields, profile)
        self._keys = BatchFile(folder, profile)
        self._small: list[tuple[Frame, Keys]] = []  # to be written together
        self._small_bytes = 0
        self.rows = 0

    def write(self, frame: Frame, keys: Keys) -> None:
        """Put rows behind those that are there.

        Raises:
            StorageError: the folder has no room for them.
        """
        self._small.append((frame, keys))
        self._small_bytes += self._device.nbytes(frame)
        self.rows += len(keys)
        self._counts += np.bincount(self._bucket(keys), minlength=_BUCKETS)
        if self._small_bytes >= self._block:
            self._write_small()

    def keep_least(self, count: int) -> tuple[KeyedFile[Frame], float]:
        """Another file of the rows with the `count` least keys and few more, and the greatest key there.

        There are as many rows; this file is closed.

        Raises:
            StorageError: the folder has no room for them.
        """
        last, _ = self._place(count)
        greatest = 0.0
        with ExitStack() as stack:
            stack.callback(self.close)
            top = self._top * (last + 1) / _BUCKETS
            other = KeyedFile(self._context, self._folder, self._fields, self._profile, top)
            failed = stack.enter_context(ExitStack())
            failed.enter_context(other)
            with closing(self._pairs()) as pairs:
                for frame, keys in pairs:
                    positions = np.flatnonzero(self._bucket(keys) <= last)
                    if len(positions):
                        greatest = max(greatest, float(keys[positions].max()))
                        other.write(self._device.take(frame, positions), keys[positions])
            failed.pop_all()
        return other, greatest

    def draw(self, count: int) -> Generator[Frame, None, None]:
        """The rows with the `count` least keys, or all; of equal keys the first ones.

        Raises:
            StorageError: they cannot be read back.
        """
        least = self._least_keys(count) if count < self.rows else LeastKeys(np.inf, 0)
        with closing(self._pairs()) as pairs:
            for frame, keys in pairs:
                positions = least.positions(keys)
                if len(positions):
                    yield self._device.take(frame, positions)

    def close(self) -> None:
        """Let go of the files."""
        self._small = []
        self._frames.close()
        self._keys.close()

    def _least_keys(self, count: int) -> LeastKeys:
        bucket, before = self._place(count)
        within = [keys[self._bucket(keys) == bucket] for keys in self._all_keys()]
        return LeastKeys.from_keys(np.concatenate(within), count - before)

    def _place(self, count: int) -> tuple[int, int]:
        """The bucket of the key that is the `count`th least, and how many keys are in those before."""
        ends = np.cumsum(self._counts)
        bucket = int(np.searchsorted(ends, count))
        return bucket, int(ends[bucket] - self._counts[bucket])

    def _bucket(self, keys: Keys) -> NDArray[np.int64]:
        """Ascends with the keys, however these are rounded."""
        return np.minimum(keys * (_BUCKETS / self._top), _BUCKETS - 1).astype(np.int64)

    def _write_small(self) -> None:
        if not self._small:
            return
        frame = self._device.concatenate([frame for frame, _ in self._small])
        keys = np.concatenate([keys for _, keys in self._small])
        self._small = []
        self._small_bytes = 0
        start = 0
        for block in cut_to_size(self._device, frame, self._block):
            self._context.check_cancelled()
            stop = start + self._device.row_count(block)
            self._frames.write(block)
            self._keys.write_batch(pa.record_batch({"key": pa.array(keys[start:stop])}))
            start = stop

    def _all_keys(self) -> Generator[Keys, None, None]:
        """Those of each frame."""
        self._write_small()
        for batch in self._keys.batches():
            self._context.check_cancelled()
            column: Any = batch.column(0)
            yield column.to_numpy()

    def _pairs(self) -> Generator[tuple[Frame, Keys], None, None]:
        self._write_small()
        with closing(self._frames.frames()) as frames, closing(self._all_keys()) as all_keys:
            yield from zip(frames, all_keys, strict=True)
