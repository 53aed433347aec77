"""What a report says: one run of a relation, with all that its page shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from bamquery import __version__
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.settings import Settings
from bamquery.output.html_table import ShownColumn, shown_columns
from bamquery.relations.relation import Relation

ROWS: int = 20
"""Most rows of the answer that a page shows."""


@dataclass(frozen=True)
class ReportContent:
    """All that is shown.

    Attributes:
        sql: the statement.
        profile: of the run.
        answer: the first rows, by column.
        rows: of the whole answer.
        settings: under which it ran.
        made: when, in UTC.
        version: BamQuery's.
    """

    sql: str
    profile: QueryProfile
    answer: tuple[ShownColumn, ...]
    rows: int
    settings: Settings
    made: datetime
    version: str = __version__

    @property
    def shown_rows(self) -> int:
        """Rows of the answer that are there."""
        return min(self.rows, ROWS)


def run_for_report(relation: Relation, sql: str, settings: Settings) -> ReportContent:
    """Run it to its end; only the first rows are kept.

    Raises:
        BamQueryError: the query failed.
    """
    first: list[pa.RecordBatch] = []
    rows = 0
    with relation.run() as result:
        for batch in result:
            if rows < ROWS:
                first.append(batch.slice(0, ROWS - rows))
            rows += batch.num_rows
    made = datetime.now(UTC).replace(microsecond=0)
    return ReportContent(sql, result.profile, shown_columns(result.schema, first), rows, settings, made)
