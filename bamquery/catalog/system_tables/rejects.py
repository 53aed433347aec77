"""reject_errors and reject_scans: lines that `store_rejects` kept, as DuckDB names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bamquery.catalog.system_tables.facts import CatalogFacts
from bamquery.catalog.system_tables.rows import BIGINT, VARCHAR, SystemTable, columns


def _errors(facts: CatalogFacts) -> Iterator[tuple[int, int, int, str, str, str]]:
    for file in facts.rejected_files:
        for reject in file.rejects:
            yield file.scan, file.number, reject.line, reject.kind, reject.text, reject.reason


def _scans(facts: CatalogFacts) -> Iterator[tuple[int, int, str]]:
    for file in facts.rejected_files:
        yield file.scan, file.number, str(file.path)


REJECT_ERRORS: Final = SystemTable(
    columns(
        scan_id=BIGINT,
        file_id=BIGINT,
        line=BIGINT,
        error_type=VARCHAR,
        csv_line=VARCHAR,
        error_message=VARCHAR,
    ),
    _errors,
)
REJECT_SCANS: Final = SystemTable(columns(scan_id=BIGINT, file_id=BIGINT, file_path=VARCHAR), _scans)
