"""Reads files through the page cache, by copying out of a memory map."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery._native import BlockFile, HeldBlocks
from bamquery.errors import StorageError
from bamquery.storage.files.mapped_files import MAPPED_FILES, MappedFile
from bamquery.storage.readers.block_reader import Found, ReadCounters
from bamquery.storage.readers.native_reader import NativeReader

Answer = TypeVar("Answer")


class MappedReader(NativeReader):
    """A `BlockReader` over a memory map. A file truncated while in use is a StorageError, never SIGBUS."""

    kind: Final = "mapped"

    def __init__(self, path: Path, expected_size: int, block_size: int = 512) -> None:
        """`block_size` is what counts as a block: the page cache itself reads pages.

        Raises:
            CorruptionError: the file is missing or does not have `expected_size` bytes.
            StorageError: it cannot be opened.
        """
        self._path = path
        self._mapped: MappedFile | None = MAPPED_FILES.open(path, expected_size, block_size)
        super().__init__(self._mapped.file)

    def read_ranges(
        self,
        offsets: NDArray[np.int64],
        lengths: NDArray[np.int64],
        counters: ReadCounters,
        checksums: NDArray[np.uint32] | None = None,
    ) -> pa.Buffer:
        """See `BlockReader.read_ranges`."""
        self._open().note_ranges(offsets)
        return super().read_ranges(offsets, lengths, counters, checksums)

    def gather(  # noqa: PLR0917 - as the protocol has it
        self,
        base: int,
        stride: int,
        width: int,
        rows: NDArray[np.int64],
        counters: ReadCounters,
        held: HeldBlocks | None = None,
    ) -> pa.Buffer:
        """See `BlockReader.gather`."""
        mapped = self._open()
        if len(rows):
            mapped.note_span(base + stride * int(rows[0]), base + stride * int(rows[-1]))
        return super().gather(base, stride, width, rows, counters, held)

    def gather_bits(self, base: int, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Buffer:
        """See `BlockReader.gather_bits`."""
        self._open()
        return super().gather_bits(base, rows, counters)

    def count_reads(
        self,
        read: Callable[[BlockFile], tuple[int, int, *tuple[Found, ...]]],
        begin: int,
        end: int,
        counters: ReadCounters,
    ) -> tuple[Found, ...]:
        """See `BlockReader.count_reads`."""
        self._open().note_span(begin, end)
        return super().count_reads(read, begin, end, counters)

    def read_together(self, read: Callable[[BlockFile], Answer], spans: Iterable[tuple[int, int]]) -> Answer:
        """What `read` says of the native file, of which it reads nothing but bytes from begins to ends.

        It says itself what that took; `counters` are of that.
        """
        mapped = self._open()
        for begin, end in spans:
            mapped.note_span(begin, end)
        return read(self._file)

    def _open(self) -> MappedFile:
        mapped = self._mapped
        if mapped is None:
            raise StorageError("the reader is closed", self._path)
        return mapped

    def close(self) -> None:
        """See `BlockReader.close`; the map stays for the next reader of the file."""
        if self._mapped is not None:
            mapped, self._mapped = self._mapped, None
            MAPPED_FILES.close(mapped)
