"""What a plan can scan: a version of a stored table, or files that stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.plan.expressions import Expression

if TYPE_CHECKING:
    from bamquery.engine.operators.evolved_scan import SnapshotPart
    from bamquery.engine.table_statistics import TableStatistics
    from bamquery.storage.ingest.source import IngestSource
    from bamquery.storage.snapshot import Snapshot


class StoredTable:
    """A version of a table; the snapshot's owner closes it."""

    def __init__(self, snapshot: Snapshot | SnapshotPart) -> None:
        self.snapshot = snapshot
        self._statistics: TableStatistics | None = None

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
        return self._known.share(predicate)

    def span(self, column: int) -> float | None:
        """How many values there are from a column's least to its greatest; None where that is not known."""
        return self._known.span(column)

    @property
    def _known(self) -> TableStatistics:
        if self._statistics is None:
            from bamquery.engine.table_statistics import TableStatistics  # noqa: PLC0415 (for guesses only)

            self._statistics = TableStatistics(self.snapshot.fragments, self.schema)
        return self._statistics


class WorkingRows(Generic[Frame]):
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
