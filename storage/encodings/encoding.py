"""The seam between readers of columns and the ways in which columns are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.readers.block_reader import BlockReader, ReadCounters


@dataclass(frozen=True, slots=True)
class Footprint:
    """What reading something takes: runs of consecutive blocks, and blocks."""

    runs: int
    blocks: int

    def __add__(self, other: Footprint) -> Footprint:
        """Both, one after the other."""
        return Footprint(self.runs + other.runs, self.blocks + other.blocks)


@dataclass(frozen=True, slots=True)
class VectorChecksums:
    """CRC-32C of what each vector stores; None for what the column does not have."""

    values: NDArray[np.uint32]
    validity: NDArray[np.uint32] | None
    offsets: NDArray[np.uint32] | None


class StoredColumn(Protocol):
    """One column of one fragment, as it is stored. Values of dictionary columns are their indexes here.

    `vectors` and `rows` are ascending, unique and within the fragment. Readers may be shared by threads.
    """

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """All rows of `vectors`.

        Raises:
            CorruptionError: bytes do not match their checksum, or cannot be a column; names file, column
                and vector.
        """
        ...

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Array[Any]:
        """The values at `rows`, from only the blocks that hold them; checksums cannot be verified.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        ...

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """What `read_vectors` takes; estimated where only the data tell (strings)."""
        ...

    def rows_footprint(
        self, rows: NDArray[np.int64] | int, vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """What `read_rows` takes; for a number of rows, what so many anywhere in `vectors` should take."""
        ...
