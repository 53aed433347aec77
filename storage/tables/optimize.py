"""OPTIMIZE: a new version of a table with the same rows in fewer fragments, or in another order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from bamquery.errors import CatalogError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.rows import ConcatenatedRows, PermutedRows, table_rows
from bamquery.storage.fragments.writer import RowSource
from bamquery.storage.tables.background import BackgroundTransaction
from bamquery.storage.tables.clustering import gathered_bytes, rows_a_fragment, sort_bytes, sort_order
from bamquery.storage.tables.snapshot import Snapshot
from bamquery.storage.tables.transaction import Transaction
from bamquery.storage.tables.writer import TableWriter
from bamquery.text.identifiers import fold_case, suggestion

_SORTING: Final = 2
"""Part of the limit that is sorted in here, where others can sort more: pieces and copies come on top."""
COMPACT_ROWS: Final = 4 << 20
"""Fragments of fewer rows are merged with their neighbours until they have as many."""


@dataclass(frozen=True)
class OptimizeReport:
    """What OPTIMIZE did; the version is the old one where there was nothing to do."""

    version: int
    fragments_before: int
    fragments_after: int
    rows_written: int
    bytes_written: int


SortedRows: TypeAlias = Callable[[Snapshot, Sequence[int]], Iterator[pa.RecordBatch]]
"""Gives all rows of a version in ascending order of some columns, equal ones as they were, nulls last."""


def optimize(
    snapshot: Snapshot,
    transaction: Transaction,
    cluster_by: Sequence[str],
    memory_limit: int | None,
    sorted_rows: SortedRows | None = None,
    *,
    relieve: Callable[[], None] = lambda: None,
) -> OptimizeReport:
    """Rewrite the version that `transaction` is based on, which `snapshot` reads; see `Table.optimize`."""

    def is_cancelled() -> bool:  # asked before each piece, which is when to look at memory, too
        relieve()
        return background.is_cancelled()

    limit = memory_limit or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    background = BackgroundTransaction(transaction, snapshot.schema)
    try:
        keys = [_column(snapshot, name) for name in cluster_by]
        after: list[FragmentEntry] = []
        if keys and sorted_rows is not None:
            if sort_bytes(snapshot.fragments, keys) > limit // _SORTING:
                return _write_sorted(snapshot, transaction, sorted_rows(snapshot, keys), limit)
            limit //= _SORTING
        for step in _plan(snapshot, keys, limit, is_cancelled):
            if isinstance(step, FragmentEntry):
                after.append(step)
            else:
                background.write_now(step)
                del step  # it would be held beside the next one
                after.append(background.entries[-1])
        version = snapshot.version
        if background.entries:
            version = background.publish(snapshot.name, "optimize", after)
        return _report(snapshot, version, after, background.entries)
    finally:
        background.abort()


def _write_sorted(
    snapshot: Snapshot, transaction: Transaction, batches: Iterator[pa.RecordBatch], limit: int
) -> OptimizeReport:
    """Rows that come in order, in fragments of which few may wait: sorting takes most of the memory."""
    with TableWriter(transaction, snapshot.name, "optimize", snapshot.schema) as writer:
        writer.limit_memory(limit)
        for batch in batches:
            writer.write(batch)
        version = writer.commit()
        return _report(snapshot, version, writer.fragments, writer.fragments)


def _report(
    snapshot: Snapshot, version: int, after: Sequence[FragmentEntry], written: Sequence[FragmentEntry]
) -> OptimizeReport:
    return OptimizeReport(
        version=version,
        fragments_before=len(snapshot.entries),
        fragments_after=len(after),
        rows_written=sum(entry.rows for entry in written),
        bytes_written=sum(entry.data_bytes + entry.vectors_bytes for entry in written),
    )


def _plan(
    snapshot: Snapshot, keys: Sequence[int], limit: int, cancelled: Callable[[], bool]
) -> Iterator[FragmentEntry | RowSource]:
    """The fragments of the new version in order: old ones that stay, and rows to be written."""
    if keys and snapshot.rows:
        order = sort_order(snapshot.fragments, keys, limit, cancelled)
        if np.any(order[1:] < order[:-1]):
            step = min(rows_a_fragment(snapshot.fragments, limit), len(order))
            most = gathered_bytes(snapshot.fragments, step, limit)
            for start in range(0, len(order), step):
                yield PermutedRows(snapshot.fragments, order[start : start + step], cancelled, most)
            return
    group: list[tuple[FragmentEntry, Fragment]] = []
    for entry, fragment in zip(snapshot.entries, snapshot.fragments, strict=True):
        if entry.rows < COMPACT_ROWS:
            group.append((entry, fragment))
            if sum(member.rows for member, _ in group) < COMPACT_ROWS:
                continue
            yield _merge_fragments(group, snapshot, cancelled)
        else:
            if group:
                yield _merge_fragments(group, snapshot, cancelled)
            yield _merge_fragments([(entry, fragment)], snapshot, cancelled)
        group = []
    if group:
        yield _merge_fragments(group, snapshot, cancelled)


def _merge_fragments(
    group: Sequence[tuple[FragmentEntry, Fragment]], snapshot: Snapshot, cancelled: Callable[[], bool]
) -> FragmentEntry | RowSource:
    """One fragment in place of these neighbours; one alone stays if it is what would be written today."""
    if len(group) == 1:
        (entry, fragment) = group[0]
        if entry.schema_version is None and fragment.layout.encoding == snapshot.encoding:
            return entry
    return ConcatenatedRows(
        [table_rows(fragment, snapshot.schema, snapshot.evolution, cancelled) for _, fragment in group]
    )


def _column(snapshot: Snapshot, name: str) -> int:
    for index, other in enumerate(snapshot.schema.names):
        if fold_case(other) == fold_case(name):
            return index
    raise CatalogError(
        f'table "{snapshot.name}" has no column "{name}".{suggestion(name, snapshot.schema.names)}'
    )
