"""What a database holds, looked up for tables of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from bamquery.catalog.system_tables.facts import ColumnFacts, RelationFacts
from bamquery.engine.settings import Settings
from bamquery.errors import BamQueryError, CancelledError, CorruptionError
from bamquery.plan.nodes import Source
from bamquery.storage.database.database import Database
from bamquery.storage.ingest.sources.reject_log import RejectedFile
from bamquery.storage.tables.stored_view import StoredView
from bamquery.text.identifiers import fold_case


class DatabaseFacts:
    """The facts of one moment; see `CatalogFacts`."""

    def __init__(
        self,
        database: Database,
        name: str,
        settings: Settings,
        bound: Callable[[str], Source],
        rejected_files: Sequence[RejectedFile],
    ) -> None:
        """Over a database.

        Args:
            database: what holds tables and views.
            name: its name.
            settings: the connection's.
            bound: gives the columns of a view.
            rejected_files: what the connection's scans left out.
        """
        self._database = database
        self._bound = bound
        self.database = name
        self.path = None if database.is_temporary else str(database.path)
        self.settings = settings
        self.rejected_files = rejected_files

    def relations(self) -> Sequence[RelationFacts]:
        """See `CatalogFacts`."""
        names = [*self._database.table_names(), *self._database.view_names()]
        found = map(self.relation, sorted(names, key=fold_case))
        return [relation for relation in found if relation is not None]  # somebody may drop one meanwhile

    def relation(self, name: str) -> RelationFacts | None:
        """See `CatalogFacts`."""
        try:
            snapshot = self._database.hold(name)
            view = None if snapshot is not None else self._database.view(name)
        except CorruptionError:  # using it says what is wrong
            return RelationFacts(name, None)
        if snapshot is None:
            return None if view is None else self._view(name, view)
        with closing(snapshot):
            rules = snapshot.evolution.rule
            columns = tuple(
                ColumnFacts(field.name, field.type, rules(place).not_null, rules(place).default)
                for place, field in enumerate(snapshot.schema)
            )
            return RelationFacts(snapshot.name, columns, snapshot.rows)

    def _view(self, name: str, view: StoredView) -> RelationFacts:
        name = next((own for own in self._database.view_names() if fold_case(own) == fold_case(name)), name)
        try:
            schema = self._bound(name).schema
        except CancelledError:
            raise
        except BamQueryError:  # of tables that are gone, say
            return RelationFacts(name, None, view=view)
        columns = tuple(ColumnFacts(field.name, field.type) for field in schema)
        return RelationFacts(name, columns, view=view)
