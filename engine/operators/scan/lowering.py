"""Logical scans to physical ones: which operator reads which kind of source."""

from __future__ import annotations

from bamquery.engine.device import Frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.project import Project
from bamquery.engine.operators.scan.evolved_scan import is_evolved, scan_schema_versions
from bamquery.engine.operators.scan.file_scan import FileScan
from bamquery.engine.operators.scan.recursive_table_scan import RecursiveTableScan
from bamquery.engine.operators.scan.series_scan import SeriesScan
from bamquery.engine.operators.scan.stored_scan import StoredScan
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_sources import (
    FileSource,
    NumberedTable,
    RecursiveTableSource,
    StoredTable,
    reads_row_number,
)
from bamquery.plan.nodes import Scan
from bamquery.plan.series import Series
from bamquery.storage.tables.snapshot import Snapshot


def lower_scan(scan: Scan, settings: Settings) -> Operator[Frame]:
    """The operator that reads the scan's kind of source."""
    match scan.source:
        case StoredTable(snapshot=Snapshot() as snapshot) if is_evolved(scan, snapshot):
            return _lower_evolved_scan(scan, snapshot, settings)
        case NumberedTable() as table if not reads_row_number(scan):
            return StoredScan(scan, StoredTable(table.snapshot), settings)
        case StoredTable() as table:
            return StoredScan(scan, table, settings)
        case FileSource() as files:
            return FileScan(scan, files)
        case RecursiveTableSource() as rows:
            return RecursiveTableScan(scan, rows)
        case Series() as series:
            return SeriesScan(scan, series)
        case other:
            raise AssertionError(f"no operator scans {type(other).__name__}")


def _lower_evolved_scan(scan: Scan, snapshot: Snapshot, settings: Settings) -> Operator[Frame]:
    children: list[Operator[Frame]] = []
    for evolved in scan_schema_versions(scan, snapshot):
        child: Operator[Frame] = lower_scan(evolved.scan, settings)
        if evolved.columns is not None:
            child = Project(child, evolved.columns, scan.fields)
        children.append(child)
    if len(children) == 1:
        return children[0]
    from bamquery.engine.operators.union import Union  # noqa: PLC0415 (few tables were altered)

    return Union(children, scan.fields, "Fragments of several ages")
