"""A chunk on its way into the GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import PassedRows
from bamquery.engine.cuda.scan.reads.column_reads import ColumnLoads
from bamquery.engine.cuda.scan.reads.staged_column import StagedColumn
from bamquery.engine.operators.scan.chunks import Chunk
from bamquery.engine.operators.scan.filter_order import FilterStep


@dataclass
class LoadingChunk:
    """A chunk whose first columns are on their way.

    Attributes:
        memory: what it has on the GPU; None where zone maps left nothing of it.
        first: the step it begins with; None where there is none.
        loads: its reads.
        staged: columns that are being loaded, by position in the schema.
        passed: which rows pass the first step, where a kernel finds out while the next chunk is loaded.
        looked: the event behind all of that.
    """

    chunk: Chunk
    memory: ChunkMemory | None
    first: FilterStep | None
    loads: ColumnLoads | None = None
    staged: dict[int, StagedColumn] = field(default_factory=dict)
    passed: PassedRows | None = None
    looked: Any = None
