"""What a plan can scan: a version of a stored table, or files that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.plan import nodes
from bamquery.plan.expressions import Expression, referenced_columns
from bamquery.plan.nodes import ROW_NUMBER
from bamquery.plan.rewriting import children, fact_of_node
from bamquery.plan.working_table import WorkingTable

if TYPE_CHECKING:
    from bamquery.engine.operators.scan.evolved_scan import SchemaVersionFragments
    from bamquery.engine.sources.table_statistics import TableStatistics
    from bamquery.plan.nodes import Plan, Scan
    from bamquery.storage.ingest.sources.source import IngestSource
    from bamquery.storage.tables.snapshot import Snapshot


_STATISTICS: Final = f"{__name__}.statistics"


class StoredTable:
    """A version of a table; the snapshot's owner closes it."""

    def __init__(self, snapshot: Snapshot | SchemaVersionFragments) -> None:
        self.snapshot = snapshot
        self._statistics: TableStatistics | None = None
        self._numbered: NumberedTable | None = None

    def with_row_numbers(self) -> NumberedTable:
        """The same with a column of its rows' numbers; one object, so that plans are seen to be equal."""
        if self._numbered is None:
            self._numbered = NumberedTable(self.snapshot)
        return self._numbered

    @property
    def name(self) -> str:
        """As its creator wrote it."""
        return self.snapshot.name

    @property
    def schema(self) -> pa.Schema:
        """The version's columns."""
        return self.snapshot.schema

    @property
    def rows(self) -> int:
        """The version's rows."""
        return self.snapshot.rows

    def share(self, predicate: Expression) -> float | None:
        """About which share of the rows fulfils a condition; None where that is not known."""
        return self._loaded_statistics.share(predicate)

    def span(self, column: int) -> float | None:
        """How many values there are from a column's least to its greatest; None where that is not known."""
        return self._loaded_statistics.span(column)

    @property
    def _loaded_statistics(self) -> TableStatistics:
        if self._statistics is None:
            from bamquery.engine.sources.table_statistics import TableStatistics  # noqa: PLC0415 (for guesses only)

            facts = self.snapshot.facts
            key = f"{_STATISTICS} {len(self.schema)}"  # with or without the rows' numbers
            made = TableStatistics(self.snapshot.fragments, self.schema)
            self._statistics = facts.setdefault(key, made)
        return self._statistics


class NumberedTable(StoredTable):
    """A version of a table with one column more, the last: each row's number in the table, from 0."""

    def __init__(self, snapshot: Snapshot | SchemaVersionFragments, before: int = 0) -> None:
        """`before`: rows of the table that come before those of the snapshot's fragments."""
        super().__init__(snapshot)
        self._before = before
        self._schema = snapshot.schema.append(pa.field(ROW_NUMBER, pa.int64()))

    @property
    def schema(self) -> pa.Schema:
        """The version's columns and the number."""
        return self._schema

    @property
    def row_number(self) -> int:
        """The number's place among them."""
        return len(self._schema) - 1

    @property
    def first_rows(self) -> list[int]:
        """Of each fragment the number of its first row."""
        counts = (fragment.rows for fragment in self.snapshot.fragments)
        return list(accumulate(counts, initial=self._before))[:-1]


class RecursiveTableSource(Generic[Frame]):
    """What the last step of a recursive query gave; its operator puts it here.

    Attributes:
        count: how many rows.
        frames: their iterator, of which there may be several at once.
    """

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.name = name
        self.schema = schema
        self.count = 0
        self.frames: Callable[[], Generator[Frame, None, None]]


@fact_of_node
def reads_step(plan: Plan) -> bool:
    """Whether it reads what a step of a recursive query gave, so that it has other rows each time."""
    if isinstance(plan, nodes.Scan):
        return isinstance(plan.source, RecursiveTableSource | WorkingTable)
    return any(map(reads_step, children(plan)))


class FileSource:
    """Files, read from end to end by their format's own reader with the columns that are wanted."""

    def __init__(self, source: IngestSource) -> None:
        self.source = source

    @property
    def name(self) -> str:
        """As the statement names them."""
        return self.source.name

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files, under stored types."""
        return self.source.schema

    @property
    def rows(self) -> int | None:
        """All files' rows, where that is known before they are read."""
        return self.source.total_rows

    @property
    def virtual_columns(self) -> tuple[int, int]:
        """How many columns come from paths and places: those shown, and the last ones, hidden."""
        return len(self.source.virtual_columns), len(self.source.hidden_columns)


def reads_row_number(scan: Scan) -> bool:
    """Whether a scan gives out its rows' numbers, or looks at them."""
    source = scan.source
    if not isinstance(source, NumberedTable):
        return False
    return source.row_number in scan.columns or source.row_number in referenced_columns(*scan.predicates)
