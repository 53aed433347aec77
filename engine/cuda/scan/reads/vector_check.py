"""What a kernel found wrong with a chunk's vectors, and the error for it."""

from __future__ import annotations

from dataclasses import dataclass

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.errors import CorruptionError


@dataclass(frozen=True)
class VectorCheck:
    """A check that was started; `bad` gets how many vectors there are from the first wrong one on."""

    column: str
    bad: Slot
    problem: str

    def settle(self, chunk: ChunkMemory) -> None:
        """Look at what it found, once the board was copied back.

        Raises:
            CorruptionError: names file, column and vector.
        """
        found = chunk.board.word(self.bad)
        if found:
            raise self.corrupt(chunk, chunk.rows.count - found)

    def corrupt(self, chunk: ChunkMemory, vector: int) -> CorruptionError:
        """The error for one of the chunk's vectors."""
        fragment, number = chunk.rows.place(vector)
        return CorruptionError(f'column "{self.column}", vector {number}: {self.problem}', fragment.path)


def checksum_check(column: str, bad: Slot, buffer: str) -> VectorCheck:
    """Of a part of the vectors, compared with its checksums."""
    return VectorCheck(column, bad, f"its {buffer} do not match their checksum")
