"""OPTIMIZE as a session runs it: where sorting takes more than fits in memory, the engine does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from bamquery.engine.execution.memory_budget import MemoryBudget
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.plan.expressions import SortKey
from bamquery.plan.nodes import Scan, Sort
from bamquery.plan.rewriting import columns_of

if TYPE_CHECKING:
    from bamquery.session.session import Session
    from bamquery.storage.tables.optimize import OptimizeReport
    from bamquery.storage.tables.snapshot import Snapshot


def optimize_table(session: Session, name: str, cluster_by: Sequence[str]) -> OptimizeReport:
    """Merge a table's small fragments, or put its rows in order; within the session's `memory_limit`.

    Raises:
        CatalogError: there is no such table or column.
        ConflictError: another writer committed meanwhile; nothing was changed.
        StorageError: the folder has no room for rows that are being sorted, or for the new ones.
    """

    def sorted_rows(snapshot: Snapshot, keys: Sequence[int]) -> Iterator[pa.RecordBatch]:
        scan = Scan(StoredTable(snapshot), tuple(range(len(snapshot.schema))))
        columns = columns_of(scan)
        with session.run(Sort(scan, tuple(SortKey(columns[key]) for key in keys))) as result:
            for batch in result:
                columns_now = [
                    column if column.type == kind else column.cast(kind)
                    for column, kind in zip(batch.columns, snapshot.schema.types, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns_now, schema=snapshot.schema)

    limit = session.settings.effective_memory_limit
    relieve = MemoryBudget(limit).relieve
    return session.database.table(name).optimize(cluster_by, limit, sorted_rows, relieve=relieve)
