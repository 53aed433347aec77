"""The seam between columns and devices: one file as an array of blocks.

Block readers count what they read, and nothing else does: `ReadCounters` are filled here only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery._native import BlockFile, HeldBlocks

Found = TypeVar("Found")


@dataclass(slots=True)
class ReadCounters:
    """What block readers did: commands completed, blocks they covered and bytes (blocks x block size).

    A block counts once a call, and again in the next call that reads it.
    """

    commands: int = 0
    blocks: int = 0
    bytes: int = 0

    def __iadd__(self, other: ReadCounters) -> ReadCounters:
        """Add another reader's counts."""
        self.commands += other.commands
        self.blocks += other.blocks
        self.bytes += other.bytes
        return self


class RangeMismatchError(Exception):
    """Range number `index` of a call does not have the checksum it should; readers of columns name it."""

    def __init__(self, index: int) -> None:
        super().__init__(f"range {index} does not match its checksum")
        self.index = index


class BlockReader(Protocol):
    """One file as an array of blocks; safe for use by many threads at once.

    Offsets, lengths and row ids are int64, ascending. All methods raise StorageError, naming the file, if it
    was truncated or cannot be read. Counters are not thread-safe: each thread brings its own.
    """

    @property
    def block_size(self) -> int:
        """Bytes of a block: what reading one byte costs."""
        ...

    @property
    def kind(self) -> str:
        """`mapped` or `direct`."""
        ...

    @property
    def io_path(self) -> str:
        """How the kernel is asked: `page cache`, `io_uring`, or `preadv: ` and why not io_uring."""
        ...

    def read_ranges(
        self,
        offsets: NDArray[np.int64],
        lengths: NDArray[np.int64],
        counters: ReadCounters,
        checksums: NDArray[np.uint32] | None = None,
    ) -> pa.Buffer:
        """Bytes of all ranges, concatenated; adjacent ranges become one large request.

        Raises:
            RangeMismatchError: the CRC-32C of a range is not the one in `checksums`.
        """
        ...

    def gather(  # noqa: PLR0917 - items, and what one call has of its own
        self,
        base: int,
        stride: int,
        width: int,
        rows: NDArray[np.int64],
        counters: ReadCounters,
        held: HeldBlocks | None = None,
    ) -> pa.Buffer:
        """`width` bytes at `base + row * stride` for each row; only the blocks that hold them are read.

        Blocks that are `held` by a call before are neither read nor counted again; all others are held by
        this one, which takes their bytes of memory. One thread uses them, with one reader.
        """
        ...

    def gather_bits(self, base: int, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Buffer:
        """Bits `row` of the bitmap at byte `base`, least significant first, packed; unused bits are zero."""
        ...

    def count_reads(
        self,
        read: Callable[[BlockFile], tuple[int, int, *tuple[Found, ...]]],
        begin: int,
        end: int,
        counters: ReadCounters,
    ) -> tuple[Found, ...]:
        """What `read` says of the native file, but for commands and blocks, which come first and are counted.

        It reads nothing but bytes from `begin` to `end`.
        """
        ...

    def close(self) -> None:
        """Give the file back; later reads raise StorageError."""
        ...
