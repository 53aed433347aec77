"""Names to sources: within a statement, a table has one version however often it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bamquery import __version__
from bamquery.catalog.views import View, rename_columns
from bamquery.engine.constant_folding import fold_expression
from bamquery.engine.sources.scan_sources import FileSource, StoredTable
from bamquery.errors import BamQueryError, CancelledError, CatalogError, SqlError
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Source, Values
from bamquery.sql_frontend.statement_binder import bind_view
from bamquery.sql_frontend.system_names import SYSTEM_VIEWS
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions
from bamquery.storage.ingest.sources.reject_log import RejectLog
from bamquery.text.identifiers import fold_case, unique_names
from bamquery.text.statement_text import StatementText

if TYPE_CHECKING:
    from bamquery.engine.settings import Settings
    from bamquery.storage.database.database import Database
    from bamquery.storage.fragments.schema_evolution import ColumnRule
    from bamquery.storage.tables.snapshot import Snapshot
    from bamquery.storage.tables.stored_view import StoredView


@dataclass(slots=True)
class _Named:
    """What a statement has named so far, under this and the narrower names of its catalogs.

    Attributes:
        tables: stored tables and views by folded name.
        within: views that are being bound.
        has_others: whether it has named what no version of a table tells.
    """

    tables: dict[str, Source] = field(default_factory=dict)
    within: list[str] = field(default_factory=list)
    has_others: bool = False


class StatementCatalog:
    """The tables and files that statements name, opened when they do.

    A snapshot stays held as long as somebody has its source: the plan, and with it the relation.
    """

    def __init__(
        self,
        database: Database,
        relations: Mapping[str, Source],
        opened: Callable[[Snapshot], None],
        settings: Callable[[], Settings],
        find: Callable[[str], Source | None] = lambda name: None,
        *,
        variables: Callable[[], Mapping[str, pa.Scalar[Any]]] = dict,
        rejects: RejectLog | None = None,
    ) -> None:
        """Over a database.

        Args:
            database: whose tables and views there are.
            relations: names that only exist here, and hide tables.
            opened: hears of every snapshot.
            settings: the connection's of the moment.
            find: asked for a name that nothing has.
            variables: the connection's of the moment, by folded name.
            rejects: where readers of files note what they leave out; by default nobody asks for it.
        """
        self._find = find
        self._database = database
        self._relations = {fold_case(name): source for name, source in relations.items()}
        self._found: dict[str, Source] = {}
        self._opened = opened
        self._settings = settings
        self._variables = variables
        self._rejects = RejectLog() if rejects is None else rejects
        self._named = _Named()
        self._shapes_only = False  # tables of the catalogue have no rows: only columns are wanted
        self.objects: set[str] = set()
        """Folded names that stood for what only this connection knows."""

    def table(self, name: str) -> Source:
        """The table's latest version, held.

        Raises:
            CatalogError: there is none; suggests the nearest name.
        """
        folded = fold_case(name)
        other = self._relations.get(folded, self._found.get(folded))
        if other is not None and not self._named.within:
            self._named.has_others = True
            self.objects.add(folded)
            return other
        tables = self._named.tables
        if folded not in tables:
            source = self._open_stored_table(name) or self._find_other_source(name)
            if folded in self._found:
                return source
            tables[folded] = source
        return tables[folded]

    def table_without_variables(self, name: str) -> Source:
        """As `table`, but no variable of the caller.

        Raises:
            CatalogError: there is none; suggests the nearest name.
        """
        find, self._find = self._find, lambda name: None
        try:
            return self.table(name)
        finally:
            self._find = find

    def fold_constants(self, expression: Expression) -> Expression:
        """See `Catalog.fold_constants`: as the CPU computes them."""
        return fold_expression(expression)

    def with_row_numbers(self, source: Source) -> Source | None:
        """See `Catalog.with_row_numbers`."""
        return source.with_row_numbers() if isinstance(source, StoredTable) else None

    @property
    def keeps_plans(self) -> bool:
        """Whether the connection's queries are planned once; see `plan_cache`."""
        return self._settings().plan_cache

    def stored_table(self, name: str) -> StoredTable | None:
        """The table's latest version, held; None where something else has the name, or nothing."""
        folded = fold_case(name)
        if folded in self._relations:
            return None
        tables = self._named.tables
        if folded not in tables:
            held = self._open_stored_table(name)
            if held is None:
                return None
            tables[folded] = held
        source = tables[folded]
        return source if isinstance(source, StoredTable) else None

    def only_tables(self) -> dict[str, StoredTable]:
        """All that the statement has named, by folded name, if these are stored tables; else nothing."""
        named = self._named
        tables = {name: source for name, source in named.tables.items() if isinstance(source, StoredTable)}
        return {} if named.has_others or len(tables) < len(named.tables) else tables

    def rules(self, name: str) -> Sequence[ColumnRule]:
        """See `Catalog.rules`."""
        if fold_case(name) in self._relations:
            raise CatalogError(f'"{name}" is a Python object, not a table')
        source = self.table(name)
        if not isinstance(source, StoredTable):
            kind = "view" if isinstance(source, View) else "Python object"
            raise CatalogError(f'"{name}" is a {kind}, not a table')
        return source.snapshot.evolution.rules

    def stored_tables_only(self) -> StatementCatalog:
        """See `Catalog.stored_tables_only`."""
        stored = StatementCatalog(
            self._database,
            {},
            self._opened,
            self._settings,
            variables=self._variables,
            rejects=self._rejects,
        )
        stored.objects = self.objects
        stored._named = self._named
        stored._shapes_only = self._shapes_only
        return stored

    def _open_stored_table(self, name: str) -> StoredTable | None:
        snapshot = self._database.hold(name)
        if snapshot is None:
            return None
        self._opened(snapshot)
        return StoredTable(snapshot)

    def _find_other_source(self, name: str) -> Source:
        """What has a name that no table has."""
        view = self._database.view(name)
        if view is not None:
            return self._view(name, view)
        folded = fold_case(name)
        if folded in SYSTEM_VIEWS:
            return self.system_table(SYSTEM_VIEWS[folded])
        other = None if self._named.within else self._find(name)  # a view sees nothing of it
        if other is not None:
            self._named.has_others = True
            self.objects.add(folded)
            self._found[folded] = other
            return other
        # It says what there is instead; somebody may have made it since.
        snapshot = self._database.table(name).snapshot()
        self._opened(snapshot)
        return StoredTable(snapshot)

    def _view(self, name: str, view: StoredView) -> Source:
        """The view's query, bound over the tables of this moment."""
        within = self._named.within
        folded = fold_case(name)
        if folded in within:
            raise SqlError(f'view "{name}" is defined by itself')
        within.append(folded)
        try:
            plan = bind_view(StatementText(view.sql, label=f'view "{name}"'), self)
        except SqlError as error:
            why = f'view "{name}" cannot be used: '
            reasons = [replace(r, message=why + r.message, sql=r.sql or error.sql) for r in error.reasons]
            raise type(error)(reasons, error.sql) from error
        except CancelledError:
            raise
        except BamQueryError as error:
            raise SqlError(f'view "{name}" cannot be used: {error}') from error
        finally:
            within.pop()
        names = [*view.columns, *(field.name for field in plan.fields[len(view.columns) :])]
        return View(name, rename_columns(plan, unique_names(names)))

    def next_statement(self) -> None:
        """Look at the tables anew."""
        self._found.clear()
        self._named = _Named()

    def table_names(self) -> Sequence[str]:
        """All tables and views, as they were written."""
        return sorted([*self._database.table_names(), *self._database.view_names()], key=fold_case)

    # The catalogue.

    @property
    def database(self) -> str:
        """See `Catalog.database`: that of its folder, up to a point in it."""
        if self._database.is_temporary:
            return "memory"
        name = self._database.path.name
        return name.partition(".")[0] or name

    @property
    def version(self) -> str:
        """See `Catalog.version`."""
        return f"v{__version__}"

    def system_table(self, subject: str, table: str | None = None) -> Source:
        """See `Catalog.system_table`."""
        from bamquery.catalog.system_tables.database_facts import DatabaseFacts  # noqa: PLC0415 - as above
        from bamquery.catalog.system_tables.table_by_name import batch, schema  # noqa: PLC0415 - start-up does not wait

        self._named.has_others = True
        if self._shapes_only:
            rows = pa.RecordBatch.from_pylist([], schema(subject))
        else:
            shapes = StatementCatalog(
                self._database, {}, self._opened, self._settings, variables=self._variables
            )
            shapes._shapes_only = True
            rejected = self._rejects.files()
            facts = DatabaseFacts(self._database, self.database, self._settings(), shapes.table, rejected)
            rows = batch(facts, subject, table)
        return View(subject, Values(rows))

    def setting(self, name: str) -> pa.Scalar[Any]:
        """See `Catalog.setting`."""
        from bamquery.catalog.system_tables.settings_table import setting_value  # noqa: PLC0415 - as above

        self._named.has_others = True
        return setting_value(self._settings(), name)

    def has_variable(self, name: str) -> bool:
        """See `Catalog.has_variable`."""
        return fold_case(name) in self._variables()

    def variable(self, name: str) -> pa.Scalar[Any] | None:
        """See `Catalog.variable`."""
        self._named.has_others = True
        self.objects.add(f"${fold_case(name)}")
        return self._variables().get(fold_case(name))

    def files(
        self, patterns: Sequence[str], file_format: str | None, options: FileOptions = NO_OPTIONS
    ) -> Source:
        """Files as one source; their metadata is read.

        Raises:
            AccessError: they are not to be read. IngestError: there are none, or they are no one table.
        """
        from bamquery.storage.ingest.opening import open_source  # noqa: PLC0415 (many queries name no file)

        self._named.has_others = True
        # One pattern is passed as it is: the source is called by it.
        what = patterns[0] if len(patterns) == 1 else list(patterns)
        if options.store_rejects:
            options = replace(options, rejects=self._rejects.begin_scan())
        opened = open_source(
            what,
            format=file_format,
            options=options,
            by_need=True,
            access=self._settings().file_access,
            check=check_cancelled,
        )
        return FileSource(opened)

    def virtual_columns(self, source: Source) -> tuple[int, int]:
        """See `Catalog.virtual_columns`."""
        assert isinstance(source, FileSource)
        return source.virtual_columns
