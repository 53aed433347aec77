"""How far a statement that writes a table is, for the bar on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa

from bamquery.engine.profile import ScanProfile
from bamquery.engine.settings import Settings
from bamquery.engine.sources import FileSource, StoredTable
from bamquery.plan.nodes import Plan, Scan, Source
from bamquery.plan.rewriting import children
from bamquery.result import Result
from bamquery.storage.ingest import Progress


def progress_bar(settings: Settings) -> Progress:
    """A bar where standard error is a terminal, unless the setting says no."""
    if settings.progress is False:
        from rich.console import Console  # noqa: PLC0415 (most statements have no bar)

        return Progress(Console(file=io.StringIO()))
    return Progress()


def watched(result: Result, plan: Plan, description: str, bar: Progress) -> Iterator[pa.RecordBatch]:
    """The result's batches; the bar shows how much of what the plan scans they account for."""
    match _scanned(plan):
        case FileSource(source=files):
            with bar.show(description, files.total_rows, files.total_bytes) as report:
                rows = 0
                for batch in result:
                    yield batch
                    rows += batch.num_rows
                    report(rows, files.bytes_read)
        case StoredTable(snapshot=snapshot):
            scans = [p for p in result.profile.root.walk() if isinstance(p, ScanProfile)]
            with bar.show(description, snapshot.rows) as report:
                for batch in result:
                    yield batch
                    rows = sum(scan.rows_scanned for scan in scans)
                    report(rows, sum(scan.counters.bytes for scan in scans))
        case _:
            yield from result


def _scanned(plan: Plan) -> Source | None:
    """What the plan reads, if that is one thing only."""
    if isinstance(plan, Scan):
        return plan.source
    below = children(plan)
    return _scanned(below[0]) if len(below) == 1 else None
