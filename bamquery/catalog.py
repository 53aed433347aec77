"""Names to sources: within a statement, a table has one version however often it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bamquery.engine.sources import FileSource, StoredTable
from bamquery.errors import BamQueryError, CatalogError, SqlError
from bamquery.naming import fold, unique_names
from bamquery.plan.nodes import Source
from bamquery.plan.statements import Query
from bamquery.sql_frontend.statements import bind
from bamquery.storage.ingest.options import NO_OPTIONS, FileOptions
from bamquery.views import View, renamed

if TYPE_CHECKING:
    from bamquery.storage.database import Database
    from bamquery.storage.evolution import ColumnRule
    from bamquery.storage.snapshot import Snapshot
    from bamquery.storage.stored_view import StoredView


class StatementCatalog:
    """The tables and files that statements name, opened when they do.

    A snapshot stays held as long as somebody has its source: the plan, and with it the relation.
    """

    def __init__(
        self,
        database: Database,
        relations: Mapping[str, Source],
        opened: Callable[[Snapshot], None],
        find: Callable[[str], Source | None] = lambda name: None,
    ) -> None:
        """Over a database.

        Args:
            database: whose tables and views there are.
            relations: names that only exist here, and hide tables.
            opened: hears of every snapshot.
            find: asked for a name that nothing has.
        """
        self._find = find
        self._database = database
        self._relations = {fold(name): source for name, source in relations.items()}
        self._tables: dict[str, Source] = {}
        self._opened = opened
        self._within: list[str] = []  # views that are being bound
        self._has_others = False

    def table(self, name: str) -> Source:
        """The table's latest version, held.

        Raises:
            CatalogError: there is none; suggests the nearest name.
        """
        folded = fold(name)
        if folded in self._relations and not self._within:
            self._has_others = True
            return self._relations[folded]
        if folded not in self._tables:
            self._tables[folded] = self._held(name) or self._not_held(name)
        return self._tables[folded]

    def stored_table(self, name: str) -> StoredTable | None:
        """The table's latest version, held; None where something else has the name, or nothing."""
        folded = fold(name)
        if folded in self._relations:
            return None
        if folded not in self._tables:
            held = self._held(name)
            if held is None:
                return None
            self._tables[folded] = held
        source = self._tables[folded]
        return source if isinstance(source, StoredTable) else None

    def only_tables(self) -> dict[str, StoredTable]:
        """All that the statement has named, by folded name, if these are stored tables; else nothing."""
        tables = {name: source for name, source in self._tables.items() if isinstance(source, StoredTable)}
        return {} if self._has_others or len(tables) < len(self._tables) else tables

    def _other(self, name: str) -> Source | None:
        """What else there is of that name; a view sees nothing of it."""
        return None if self._within else self._find(name)

    def rules(self, name: str) -> Sequence[ColumnRule]:
        """See `Catalog.rules`."""
        if fold(name) in self._relations:
            raise CatalogError(f'"{name}" is a Python object, not a table')
        source = self.table(name)
        if not isinstance(source, StoredTable):
            kind = "view" if isinstance(source, View) else "Python object"
            raise CatalogError(f'"{name}" is a {kind}, not a table')
        return source.snapshot.evolution.rules

    def stored(self) -> StatementCatalog:
        """See `Catalog.stored`."""
        return StatementCatalog(self._database, {}, self._opened)

    def _held(self, name: str) -> StoredTable | None:
        snapshot = self._database.hold(name)
        if snapshot is None:
            return None
        self._opened(snapshot)
        return StoredTable(snapshot)

    def _not_held(self, name: str) -> Source:
        """What has a name that no table has."""
        view = self._database.view(name)
        if view is not None:
            return self._view(name, view)
        other = self._other(name)
        if other is not None:
            return other
        # It says what there is instead; somebody may have made it since.
        snapshot = self._database.table(name).snapshot()
        self._opened(snapshot)
        return StoredTable(snapshot)

    def _view(self, name: str, view: StoredView) -> Source:
        """The view's query, bound over the tables of this moment."""
        folded = fold(name)
        if folded in self._within:
            raise SqlError(f'view "{name}" is defined by itself')
        self._within.append(folded)
        try:
            (statement,) = bind(view.sql, self)
        except BamQueryError as error:
            raise SqlError(f'view "{name}" cannot be used: {error}') from error
        finally:
            self._within.pop()
        assert isinstance(statement, Query)
        names = [*view.columns, *(field.name for field in statement.plan.fields[len(view.columns) :])]
        return View(name, renamed(statement.plan, unique_names(names)))

    def next_statement(self) -> None:
        """Look at the tables anew."""
        self._has_others = False
        self._tables.clear()

    def table_names(self) -> Sequence[str]:
        """All tables and views, as they were written."""
        return sorted([*self._database.table_names(), *self._database.view_names()], key=fold)

    def files(
        self, patterns: Sequence[str], file_format: str | None, options: FileOptions = NO_OPTIONS
    ) -> Source:
        """Files as one source; their metadata is read.

        Raises:
            IngestError: there are none, or they cannot be read as one table.
        """
        from bamquery.storage.ingest.opening import open_source  # noqa: PLC0415 (many queries name no file)

        self._has_others = True
        # One pattern is passed as it is: the source is called by it.
        what = patterns[0] if len(patterns) == 1 else list(patterns)
        return FileSource(open_source(what, format=file_format, options=options, by_need=True))
