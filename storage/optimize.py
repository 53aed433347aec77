"""OPTIMIZE: a new version of a table with the same rows in fewer fragments, or in another order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bamquery.errors import CatalogError
from bamquery.naming import fold, suggestion
from bamquery.storage.background import BackgroundTransaction
from bamquery.storage.clustering import rows_a_fragment, sort_order
from bamquery.storage.fragment import Fragment
from bamquery.storage.fragment_entry import FragmentEntry
from bamquery.storage.fragment_rows import ConcatenatedRows, PermutedRows, table_rows
from bamquery.storage.fragment_writer import RowSource
from bamquery.storage.snapshot import Snapshot
from bamquery.storage.transaction import Transaction

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


def optimize(
    snapshot: Snapshot, transaction: Transaction, cluster_by: Sequence[str], memory_limit: int | None
) -> OptimizeReport:
    """Rewrite the version that `transaction` is based on, which `snapshot` reads; see `Table.optimize`."""
    background = BackgroundTransaction(transaction, snapshot.schema)
    try:
        keys = [_column(snapshot, name) for name in cluster_by]
        limit = memory_limit or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        after: list[FragmentEntry] = []
        for part in _plan(snapshot, keys, limit, background.is_cancelled):
            if isinstance(part, FragmentEntry):
                after.append(part)
            else:
                background.write_now(part)
                after.append(background.entries[-1])
        version = snapshot.version
        if background.entries:
            version = background.publish(snapshot.name, "optimize", after)
        return OptimizeReport(
            version=version,
            fragments_before=len(snapshot.entries),
            fragments_after=len(after),
            rows_written=sum(entry.rows for entry in background.entries),
            bytes_written=sum(entry.data_bytes + entry.vectors_bytes for entry in background.entries),
        )
    finally:
        background.abort()


def _plan(
    snapshot: Snapshot, keys: Sequence[int], limit: int, cancelled: Callable[[], bool]
) -> Iterator[FragmentEntry | RowSource]:
    """The fragments of the new version in order: old ones that stay, and rows to be written."""
    if keys and snapshot.rows:
        order = sort_order(snapshot.fragments, keys, limit, cancelled)
        if np.any(order[1:] < order[:-1]):
            step = rows_a_fragment(snapshot.fragments, limit)
            for start in range(0, len(order), step):
                yield PermutedRows(snapshot.fragments, order[start : start + step], cancelled)
            return
    group: list[tuple[FragmentEntry, Fragment]] = []
    for entry, fragment in zip(snapshot.entries, snapshot.fragments, strict=True):
        if entry.rows < COMPACT_ROWS:
            group.append((entry, fragment))
            if sum(member.rows for member, _ in group) < COMPACT_ROWS:
                continue
            yield _merged(group, snapshot, cancelled)
        else:
            if group:
                yield _merged(group, snapshot, cancelled)
            yield _merged([(entry, fragment)], snapshot, cancelled)
        group = []
    if group:
        yield _merged(group, snapshot, cancelled)


def _merged(
    group: Sequence[tuple[FragmentEntry, Fragment]], snapshot: Snapshot, cancelled: Callable[[], bool]
) -> FragmentEntry | RowSource:
    """One fragment in place of these neighbours; one alone stays unless its columns are not the table's."""
    if len(group) == 1 and group[0][0].era is None:
        return group[0][0]
    return ConcatenatedRows(
        [table_rows(fragment, snapshot.schema, snapshot.evolution, cancelled) for _, fragment in group]
    )


def _column(snapshot: Snapshot, name: str) -> int:
    for index, other in enumerate(snapshot.schema.names):
        if fold(other) == fold(name):
            return index
    raise CatalogError(
        f'table "{snapshot.name}" has no column "{name}".{suggestion(name, snapshot.schema.names)}'
    )
