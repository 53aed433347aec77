"""What each column of a table's version takes: for `bamquery columns`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.fragments.column_storage import ColumnStorage, table_column_storage, vector_forms
from bamquery.storage.tables.distinct_estimate import distinct_estimate
from bamquery.storage.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """One column.

    Attributes:
        name: as the table has it.
        type: of Arrow.
        storage: how it is stored, and what it takes.
        forms: of packed vectors, how many have which: `integer`, `decimal`, `float32`, `constant`, `raw`.
        statistics_bytes: zone maps and checksums.
        distinct: about how many values there are beside NULL, in the rows that are stored.
        distinct_exact: whether it is as many.
        nulls: rows that are NULL.
    """

    name: str
    type: Any
    storage: ColumnStorage
    forms: Counter[str]
    statistics_bytes: int
    distinct: int
    distinct_exact: bool
    nulls: int

    @property
    def ratio(self) -> float | None:
        """How many times smaller it is than in memory; None where it takes nothing."""
        stored = self.storage.stored_bytes
        return self.storage.plain_bytes / stored if stored else None


def column_reports(snapshot: Snapshot) -> Iterator[ColumnReport]:
    """Of all columns in order; a few vectors of each are read.

    Raises:
        CorruptionError, StorageError: a fragment cannot be read.
    """
    for field in snapshot.schema:
        check_cancelled()
        yield _report(snapshot, field)


def _report(snapshot: Snapshot, field: pa.Field[Any]) -> ColumnReport:
    stored = [fragment for fragment in snapshot.fragments if field.name in fragment.schema.names]
    found: Counter[str] = Counter()
    nulls = statistics = 0
    for fragment in stored:
        found += vector_forms(fragment, field.name)
        nulls += int(fragment.zone_map.null_counts(field.name).sum())
        statistics += fragment.statistics_bytes(field.name)
    position = snapshot.schema.get_field_index(field.name)
    initial = snapshot.evolution.rule(position).initial
    if initial is None or not initial.is_valid:
        nulls += snapshot.rows - sum(fragment.rows for fragment in stored)
    distinct, exact = distinct_estimate(stored, field.name)
    return ColumnReport(
        name=field.name,
        type=field.type,
        storage=table_column_storage(stored, field.name),
        forms=found,
        statistics_bytes=statistics,
        distinct=distinct,
        distinct_exact=exact,
        nulls=nulls,
    )
