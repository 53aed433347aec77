"""The scan of a table whose columns were changed: fragments of one kind together, the others apart.

What has one schema version is scanned as a table of its own, which has the columns that its fragments have.
What they lack is one value throughout, put into conditions before the scan and into columns behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa

from bamquery.engine.sources.scan_sources import NumberedTable, StoredTable
from bamquery.plan.expressions import ColumnRef, Expression, Literal, referenced_columns, transform
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.plan.nodes import ROW_NUMBER, Scan
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.schema_evolution import Evolution
from bamquery.storage.tables.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class SchemaVersionFragments:
    """Fragments of a version that have the same columns; what a scan asks of a `Snapshot`."""

    name: str
    version: int
    schema: pa.Schema
    fragments: tuple[Fragment, ...]
    evolution: Evolution = Evolution()  # noqa: RUF009 (immutable)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Of these fragments."""
        return sum(fragment.rows for fragment in self.fragments)


@dataclass(frozen=True, eq=False)
class SchemaVersionScan:
    """One schema version's scan, and the table's columns made of its own; None where it has them all."""

    scan: Scan
    columns: tuple[Expression, ...] | None


def is_evolved(scan: Scan, snapshot: Snapshot) -> bool:
    """Whether some fragment lacks a column that the scan reads."""
    if all(entry.schema_version is None for entry in snapshot.entries):
        return False
    names = scan.source.schema.names
    wanted = {names[i] for i in (*scan.columns, *referenced_columns(*scan.predicates))}
    wanted -= set(names[len(snapshot.schema) :])  # a row's number, which is of no fragment
    return not all(wanted <= set(fragment.schema.names) for fragment in snapshot.fragments)


def scan_schema_versions(scan: Scan, snapshot: Snapshot) -> list[SchemaVersionScan]:
    """Scans of runs of fragments that have the same columns, in row order; runs without matches left out."""
    found = []
    before = 0
    for _, run in groupby(snapshot.fragments, lambda fragment: tuple(fragment.schema.names)):
        fragments = list(run)
        evolved = _scan_schema_version(scan, snapshot, fragments, before)
        before += sum(fragment.rows for fragment in fragments)
        if evolved is not None:
            found.append(evolved)
    return found


def _scan_schema_version(
    scan: Scan, snapshot: Snapshot, fragments: Sequence[Fragment], before: int
) -> SchemaVersionScan | None:
    """Of fragments behind so many rows; None where no row of theirs can match."""
    schema = fragments[0].schema
    known = {name: position for position, name in enumerate(schema.names)}

    def present(column: int) -> Expression:
        """The column of the table as the schema version has it: a reference, or its one value."""
        if column == len(snapshot.schema):
            return ColumnRef(len(schema), ROW_NUMBER, pa.int64())
        field = snapshot.schema.field(column)
        if field.name in known:
            return ColumnRef(known[field.name], field.name, field.type)
        initial = snapshot.evolution.rule(column).initial
        value: pa.Scalar[Any] = pa.scalar(None, field.type) if initial is None else initial
        return Literal(value)

    predicates = []
    for predicate in scan.predicates:
        moved = fold_expression(
            transform(predicate, lambda e: present(e.index) if isinstance(e, ColumnRef) else e)
        )
        if isinstance(moved, Literal):
            if not (moved.value.is_valid and moved.value.as_py()):
                return None
            continue
        predicates.append(moved)
    outputs = [present(column) for column in scan.columns]
    read = list(dict.fromkeys(output.index for output in outputs if isinstance(output, ColumnRef)))
    rows = SchemaVersionFragments(snapshot.name, snapshot.version, schema, tuple(fragments))
    is_numbered = isinstance(scan.source, NumberedTable)
    source = NumberedTable(rows, before) if is_numbered else StoredTable(rows)
    inner = Scan(source, tuple(read), tuple(predicates))
    if len(read) == len(outputs):
        return SchemaVersionScan(inner, None)
    columns = tuple(
        ColumnRef(read.index(output.index), output.name, output.type)
        if isinstance(output, ColumnRef)
        else output
        for output in outputs
    )
    return SchemaVersionScan(inner, columns)
