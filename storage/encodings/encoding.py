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
class BufferShape:
    """One buffer of a column, as far as it decides in which blocks rows lie.

    Attributes:
        bits: of a row as it is stored, on average over the vectors in question.
        share: of these vectors that have anything in the buffer.
        width: bytes that reading one row takes, which may reach into a second block.
    """

    bits: float
    share: float = 1.0
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """A column for the read planner: plain or packed, on any device.

    Attributes:
        buffers: that a row has a part in.
        rounds: of reads, each of which needs the answer of the one before.
        form: what decoding is measured as; `plain` values need none.
        refers: what is read of a single row may ask for more, and so for another round.
        referring: share of the rows that do, where it is known.
    """

    buffers: tuple[BufferShape, ...]
    rounds: int = 1
    form: str = "plain"
    refers: bool = False
    referring: float = 0.0

    @property
    def block_rounds(self) -> int:
        """Rounds of reads of single rows."""
        return self.rounds + 1 if self.refers else self.rounds


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
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """What `read_rows` takes, of rows that all are in `vectors`."""
        ...

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        """How rows of these vectors lie in blocks."""
        ...
