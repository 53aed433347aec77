"""Rows that do not fit in memory, in files without a name: the kernel removes them with the process."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Generic

import pyarrow as pa
import pyarrow.ipc

from bamquery.closeable import Closeable
from bamquery.data_types.type_groups import value_type
from bamquery.engine.device import Aggregation, Device, Frame, GroupState
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import StorageError
from bamquery.plan.nodes import Field

_ipc: Any = pyarrow.ipc  # its stubs know no streams over Python's files


def spilled_fields(fields: Sequence[Field]) -> list[Field]:
    """Columns as they come back: with values in the place of dictionaries."""
    return [Field(field.name, value_type(field.type)) for field in fields]


class BatchFile(Closeable):
    """Record batches of one schema written one after another, and read back in that order; a context manager.

    Any number of readers may be at work at once, and more be written meanwhile, which they do not see. Bytes
    written are added to the profile of the operator whose rows they are.

    Attributes:
        rows: in all batches.
        bytes: that they take in the file.
    """

    def __init__(self, folder: Path, profile: OperatorProfile) -> None:
        self._folder = folder
        self._profile = profile
        self._writer: Any = None
        self._file: Any = None
        self.rows = 0
        self.bytes = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Put a batch behind those that are there; one without rows is left out.

        Raises:
            StorageError: the disk is full, or the folder cannot be written to.
        """
        if not batch.num_rows:
            return
        with self._failures():
            before = 0
            if self._writer is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed by `close`)
                self._writer = _ipc.new_stream(self._file, batch.schema)
            else:
                before = self._file.tell()
            self._writer.write_batch(batch)
            written = self._file.tell() - before
        self.rows += batch.num_rows
        self.bytes += written
        self._profile.details["spilled"] = self._profile.details.get("spilled", 0) + written

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """What has been written when the first one is asked for.

        Raises:
            StorageError: it cannot be read back.
        """
        if self._writer is None:
            return
        with self._failures():
            self._file.flush()
            reader = _ipc.open_stream(io.BufferedReader(_Cursor(self._file.fileno(), self._file.tell())))
        found: Iterator[pa.RecordBatch] = iter(reader)
        while True:
            with self._failures():
                batch = next(found, None)
            if batch is None:
                return
            yield batch

    def close(self) -> None:
        """Let go of the file, and so of its space."""
        if self._file is not None:
            with suppress(OSError):  # what a full disk had no room for is not wanted any more
                self._file.close()
            self._file = self._writer = None

    @contextmanager
    def _failures(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            advice = ""
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                advice = ". Free some space there, or raise memory_limit with SET memory_limit = '...'"
            raise StorageError(
                f"rows that do not fit memory_limit cannot be kept in {self._folder}: {error}{advice}"
            ) from error


class _Cursor(io.RawIOBase):
    """Reads an open file from its begin to an end, from a place of its own; the file stays open."""

    def __init__(self, descriptor: int, end: int) -> None:
        self._descriptor = descriptor
        self._place = 0
        self._end = end

    def readable(self) -> bool:
        """It is for that."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes, as many as there are room for and are left."""
        wanted = memoryview(buffer)[: self._end - self._place]
        count = os.preadv(self._descriptor, [wanted], self._place)
        self._place += count
        return count


class SpillFile(BatchFile, Generic[Frame]):
    """Frames written one after another, and read back in that order.

    Columns come back as `spilled_fields` says.
    """

    def __init__(
        self, device: Device[Frame], folder: Path, fields: Sequence[Field], profile: OperatorProfile
    ) -> None:
        super().__init__(folder, profile)
        self._device = device
        self._fields: Final = spilled_fields(fields)

    def write(self, frame: Frame) -> None:
        """Put a frame behind those that are there.

        Raises:
            StorageError: the disk is full, or the folder cannot be written to.
        """
        if not self._device.row_count(frame):
            return
        batch = self._device.to_arrow(frame, self._fields)
        if batch.num_columns:  # two of one name would not be read back
            names = [str(i) for i in range(batch.num_columns)]
            batch = pa.RecordBatch.from_arrays(batch.columns, names=names)
        self.write_batch(batch)

    def frames(self) -> Generator[Frame, None, None]:
        """What has been written when the first one is asked for.

        Raises:
            StorageError: it cannot be read back.
        """
        for batch in self.batches():
            yield self._device.from_arrow(batch)


class StateFile(BatchFile):
    """Aggregates in the making written one after another, and read back in that order, some joined."""

    def __init__(self, aggregation: Aggregation[Any, Any], folder: Path, profile: OperatorProfile) -> None:
        super().__init__(folder, profile)
        self._aggregation = aggregation

    def write(self, states: Sequence[GroupState]) -> None:
        """Put states behind those that are there; they come back as one, which may have keys repeatedly.

        Raises:
            StorageError: the disk is full, or the folder cannot be written to.
        """
        batches = [self._aggregation.to_arrow(state) for state in states if state.groups]
        if batches:
            for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
                self.write_batch(batch)

    def states(self) -> Generator[GroupState, None, None]:
        """What has been written when the first one is asked for.

        Raises:
            StorageError: it cannot be read back.
        """
        for batch in self.batches():
            yield self._aggregation.from_arrow(batch)
