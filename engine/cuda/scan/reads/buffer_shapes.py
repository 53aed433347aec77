"""What reading a column of a chunk costs by: the shapes of its buffers."""

from __future__ import annotations

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn
from bamquery.engine.cuda.scan.read_strategy import BufferShape
from bamquery.engine.cuda.scan.reads.string_reads import row_bytes


def buffer_shapes(chunk: ChunkMemory, column: ScanColumn) -> tuple[BufferShape, ...]:
    """Of all that has to be read for a row."""
    name, vectors, block_bytes = column.name, chunk.rows.count, chunk.state.block_bytes
    if chunk.is_packed(name):
        bits = 8 * chunk.payload_bytes(name) / max(chunk.rows.rows, 1)
        # Of a code that is not of whole bytes some lie in two blocks.
        return (BufferShape(vectors, bits, 1 + max(bits - 1, 0) / (8 * block_bytes)),)
    shapes = [BufferShape(vectors, chunk.buffers(name)[0].bits)]
    if column.form is Form.STRINGS:
        stored = [piece.fragment.rows for piece in chunk.rows.pieces]
        size = row_bytes(chunk.extents(name, "values"), stored)
        shapes.append(BufferShape.for_strings(vectors, size, block_bytes))
    nulls = chunk.nulls(name)
    if nulls is not None:
        shapes.append(BufferShape(int((nulls.states == 1).sum()), 1))
    return tuple(shapes)
