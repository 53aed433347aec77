"""Reads files past the page cache: by NVMe commands to a controller in this process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from bamquery import _native
from bamquery.storage.files.regular_file import regular_size
from bamquery.storage.readers.native_reader import NativeReader

IoPath: TypeAlias = Literal["auto", "io_uring", "preadv"]


class QueueReader(NativeReader):
    """A `BlockReader` over O_DIRECT. Reads are commands in queue pairs that all files of the process share.

    Scattered blocks are read `depth` at a time, runs in large requests.
    """

    kind: Final = "direct"

    def __init__(
        self,
        path: Path,
        expected_size: int,
        block_size: int | None = None,
        depth: int = 128,
        *,
        io: IoPath = "auto",
        patience: float = 30.0,
    ) -> None:
        """`block_size` None takes the smallest that the device reads.

        Args:
            path: the file.
            expected_size: bytes it must have.
            block_size: what reads are counted in.
            depth: reads in flight.
            io: how the kernel is asked; `auto` takes io_uring where the machine allows it, and `io_path` says
                why where it does not.
            patience: seconds that a read may take before it fails.

        Raises:
            CorruptionError: the file is missing or does not have `expected_size` bytes.
            StorageError: it cannot be opened, its file system has no direct reads, or its device needs larger
                blocks; names the way out.
        """
        self.path: Final = path
        with suppress(FileNotFoundError):  # opening it says so
            regular_size(path)
        super().__init__(_native.open_queue(path, expected_size, block_size or 0, depth, io, patience))

    @property
    def controller(self) -> _native.SoftwareController:
        """Who carries out the reads of this file and of all others that are opened so."""
        controller = self._file.controller
        assert controller is not None
        return controller
