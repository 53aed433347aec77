"""Names to sources: within a statement, a table has one version however often it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bamquery.engine.sources import FileSource, StoredTable
from bamquery.naming import fold
from bamquery.plan.nodes import Source
from bamquery.storage.database import Database
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.snapshot import Snapshot


class StatementCatalog:
    """The tables and files that statements name, opened when they do.

    A snapshot stays held as long as somebody has its source: the plan, and with it the relation.
    """

    def __init__(
        self, database: Database, relations: Mapping[str, Source], opened: Callable[[Snapshot], None]
    ) -> None:
        """`relations` are names that only exist here, and hide tables; `opened` hears of every snapshot."""
        self._database = database
        self._relations = {fold(name): source for name, source in relations.items()}
        self._tables: dict[str, Source] = {}
        self._opened = opened

    def table(self, name: str) -> Source:
        """The table's latest version, held.

        Raises:
            CatalogError: there is none; suggests the nearest name.
        """
        folded = fold(name)
        if folded in self._relations:
            return self._relations[folded]
        if folded not in self._tables:
            snapshot = self._database.table(name).snapshot()
            self._opened(snapshot)
            self._tables[folded] = StoredTable(snapshot)
        return self._tables[folded]

    def next_statement(self) -> None:
        """Look at the tables anew."""
        self._tables.clear()

    def table_names(self) -> Sequence[str]:
        """All tables, as they were written."""
        return self._database.table_names()

    def files(self, patterns: Sequence[str], file_format: str | None) -> Source:
        """Files as one source; their metadata is read.

        Raises:
            IngestError: there are none, or they cannot be read as one table.
        """
        # One pattern is passed as it is: the source is called by it.
        what = patterns[0] if len(patterns) == 1 else list(patterns)
        return FileSource(open_source(what, format=file_format))
