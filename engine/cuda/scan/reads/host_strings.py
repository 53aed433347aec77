"""Strings that only the host decodes: it reads a selection's rows, and they go up as plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pylibcudf as plc
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlock
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.format.layout import VECTOR_ROWS

BY_HOST: Final = "decoded by the host"


@dataclass(frozen=True)
class HostStrings:
    """A column whose rows are known to the host once what was started before has ended.

    Attributes:
        name: of the column.
        selection: the rows.
        selected: they are those that the column has to look at; if not, that is all rows, which are counted.
        positions: of the rows, on their way to the host; None: they are all.
    """

    name: str
    selection: Selection
    selected: bool
    positions: HostBlock | None

    @classmethod
    def start(cls, chunk: ChunkMemory, name: str, selection: Selection, *, selected: bool) -> HostStrings:
        """Have the rows told to the host."""
        if selection.everything:
            return cls(name, selection, selected, None)
        size = 4 * selection.rows
        block = chunk.uploads.borrow(size)
        what = (block.host, selection.positions.ptr, size, chunk.state.stream)
        chunk.state.session.gpu.cuda("copy from the GPU", "cuMemcpyDtoHAsync", *what)
        return cls(name, selection, selected, block)

    def complete(self, chunk: ChunkMemory) -> plc.Column:
        """Read and decode them, and copy them to the GPU.

        Raises:
            StorageError: the file cannot be read, or is not what was written.
            MemoryLimitError: there is too little memory for them.
        """
        work = chunk.state.work
        found = []
        for piece, rows in self._rows_of_pieces(chunk):
            work.check()
            frame = work.reads.read(piece, self.name, rows, selected=self.selected)
            found.append(frame.columns[0])
        with work.profile.lock:
            work.profile.columns[self.name].paths[BY_HOST] += len(found)
        return libcudf_rows.concatenate(chunk.state.session, found)

    def _rows_of_pieces(self, chunk: ChunkMemory) -> Iterator[tuple[Piece, NDArray[np.int64] | None]]:
        """Pieces with their rows' numbers in the fragment; None: all of the piece's."""
        rows = chunk.rows
        if self.positions is None:
            yield from ((piece, None) for piece in rows.pieces)
            return
        positions = self.positions.view(0, np.uint32, self.selection.rows).astype(np.int64)
        edges = np.searchsorted(positions, rows.firsts.astype(np.int64) * VECTOR_ROWS)
        for number, piece in enumerate(rows.pieces):
            own = positions[edges[number] : edges[number + 1]]
            if len(own):
                vectors = own // VECTOR_ROWS - int(rows.firsts[number])
                yield piece, piece.vectors[vectors] * VECTOR_ROWS + own % VECTOR_ROWS
