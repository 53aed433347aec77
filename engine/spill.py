"""Rows that do not fit in memory, in files without a name: the kernel removes them with the process."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic

import pyarrow as pa
import pyarrow.ipc

from bamquery.engine.device import Device, Frame
from bamquery.errors import StorageError
from bamquery.plan.nodes import Field
from bamquery.plan.types import value_type

_ipc: Any = pyarrow.ipc  # its stubs know no streams over Python's files


def spilled(fields: Sequence[Field]) -> list[Field]:
    """Columns as they come back: with values in the place of dictionaries."""
    return [Field(field.name, value_type(field.type)) for field in fields]


class SpillFile(Generic[Frame]):
    """Frames written one after another and read back in that order, as an Arrow stream; a context manager.

    Columns come back as `spilled` says.
    """

    def __init__(self, device: Device[Frame], folder: Path, fields: Sequence[Field]) -> None:
        self._device = device
        self._folder = folder
        self._fields: Final = spilled(fields)
        self._writer: Any = None
        self._file: Any = None
        self.rows = 0

    def write(self, frame: Frame) -> None:
        """Put a frame behind those that are there.

        Raises:
            StorageError: the disk is full, or the folder cannot be written to.
        """
        rows = self._device.row_count(frame)
        if not rows:
            return
        batch = self._device.to_arrow(frame, self._fields)
        named = pa.RecordBatch.from_arrays(batch.columns, names=[str(i) for i in range(batch.num_columns)])
        with self._failures():
            if self._writer is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed by `close`)
                self._writer = _ipc.new_stream(self._file, named.schema)
            self._writer.write_batch(named)
        self.rows += rows

    def frames(self) -> Generator[Frame, None, None]:
        """What was written; nothing can be written any more.

        Raises:
            StorageError: it cannot be read back.
        """
        if self._writer is None:
            return
        with self._failures():
            self._writer.close()
            self._file.seek(0)
            reader = _ipc.open_stream(self._file)
        batches: Iterator[pa.RecordBatch] = iter(reader)
        while True:
            with self._failures():
                batch = next(batches, None)
            if batch is None:
                return
            yield self._device.from_arrow(batch)

    def close(self) -> None:
        """Let go of the file, and so of its space."""
        if self._file is not None:
            self._file.close()
            self._file = self._writer = None

    def __enter__(self) -> SpillFile[Frame]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _failures(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"rows that do not fit memory_limit cannot be kept in {self._folder}: {error}"
            ) from error
