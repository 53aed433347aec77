"""A column of a chunk whose vectors were loaded, and what is checked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead
from bamquery.engine.cuda.scan.reads.fsst.coded_vectors import CodedVectors
from bamquery.engine.cuda.scan.reads.load_vectors import LoadedVectors
from bamquery.engine.cuda.scan.reads.packed_payloads import Payloads
from bamquery.engine.cuda.scan.reads.string_vectors import LoadedOffsets


class Check(Protocol):
    """A check that was started."""

    def settle(self, chunk: ChunkMemory) -> None:
        """Raise CorruptionError if it failed, once the board was copied back."""
        ...


@dataclass
class StagedColumn:
    """A column whose vectors were loaded.

    Attributes:
        bits: of a value as it is stored.
        values: all of the chunk's; of strings the offsets.
        validity: bitmaps of those that have nulls and values; None: there is none.
        nulls: states; None: no row is null.
        offsets: of strings.
        payloads: of a packed column.
        coded: of compressed strings.
        read: what they are accounted for in.
    """

    bits: int
    values: LoadedVectors
    validity: LoadedVectors | None
    nulls: NullStates | None
    read: ColumnRead
    offsets: LoadedOffsets | None = None
    payloads: Payloads | None = None
    coded: CodedVectors | None = None
