"""What the block readers share: native files that count, and memory for what they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.readers.block_reader import Found, RangeMismatchError, ReadCounters


class NativeReader:
    """A `BlockReader` over a native file."""

    def __init__(self, file: _native.BlockFile) -> None:
        self._file = file
        self.block_size: Final = file.block_size
        self.io_path: Final = file.io_path

    def read_ranges(
        self,
        offsets: NDArray[np.int64],
        lengths: NDArray[np.int64],
        counters: ReadCounters,
        checksums: NDArray[np.uint32] | None = None,
    ) -> pa.Buffer:
        """See `BlockReader.read_ranges`."""
        buffer, target = _allocate(int(lengths.sum()))
        commands, blocks, mismatch = self._file.read_ranges(offsets, lengths, target, checksums)
        self._count(counters, commands, blocks)
        if mismatch >= 0:
            raise RangeMismatchError(mismatch)
        return buffer

    def gather(  # noqa: PLR0917 - as the protocol has it
        self,
        base: int,
        stride: int,
        width: int,
        rows: NDArray[np.int64],
        counters: ReadCounters,
        held: _native.HeldBlocks | None = None,
    ) -> pa.Buffer:
        """See `BlockReader.gather`."""
        buffer, target = _allocate(len(rows) * width)
        self._count(counters, *self._file.gather(base, stride, width, rows, target, held))
        return buffer

    def gather_bits(self, base: int, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Buffer:
        """See `BlockReader.gather_bits`."""
        buffer, target = _allocate(-(-len(rows) // 8))
        self._count(counters, *self._file.gather_bits(base, rows, target))
        return buffer

    def count_reads(
        self,
        read: Callable[[_native.BlockFile], tuple[int, int, *tuple[Found, ...]]],
        begin: int,
        end: int,
        counters: ReadCounters,
    ) -> tuple[Found, ...]:
        """See `BlockReader.count_reads`."""
        commands, blocks, *found = read(self._file)
        self._count(counters, commands, blocks)
        return tuple(found)

    def close(self) -> None:
        """See `BlockReader.close`."""
        self._file.close()

    def counters(self, commands: int, blocks: int) -> ReadCounters:
        """What so many commands and blocks are."""
        return ReadCounters(commands, blocks, blocks * self.block_size)

    def _count(self, counters: ReadCounters, commands: int, blocks: int) -> None:
        counters.commands += commands
        counters.blocks += blocks
        counters.bytes += blocks * self.block_size


def _allocate(size: int) -> tuple[pa.Buffer, memoryview]:
    """A new buffer, and its bytes to be written to."""
    buffer = pa.allocate_buffer(size)
    return buffer, memoryview(buffer)
