"""`bamquery.connect()`: a database, its settings, and SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from bamquery.catalog import StatementCatalog
from bamquery.engine.devices import open_device
from bamquery.engine.settings import Settings
from bamquery.errors import SqlError, within_depth
from bamquery.naming import fold
from bamquery.plan.nodes import Scan, Source
from bamquery.progress.callbacks import Callback, ProgressCallback
from bamquery.python_tables import caller_tables, python_source
from bamquery.relations.relation import Relation
from bamquery.session import Cancellation, Session
from bamquery.sql_frontend.parameters import Parameters
from bamquery.sql_frontend.text import sql_text
from bamquery.statements import run_statement
from bamquery.storage.database import Database
from bamquery.views import inline

if TYPE_CHECKING:
    from bamquery.storage.check import CheckReport
    from bamquery.storage.optimize import OptimizeReport
    from bamquery.storage.vacuum import VacuumReport


def connect(path: str | Path = ":memory:", *, device: str = "auto", **settings: object) -> Connection:
    """Open a database folder, made if there is none.

    Args:
        path: the folder; `:memory:` is a temporary one that goes with the connection.
        device: `auto`, `cpu` or `cuda:<n>`.
        settings: others by name; docs/python.md lists them.

    Raises:
        SettingError: there is no such setting or device.
        StorageError: the path is something else, or cannot be made a database.
    """
    chosen = Settings().with_values({"device": device, **settings})
    open_device(chosen.device, chosen.gpu_memory_limit)
    return Connection(Session(Database.open(path), chosen))


class Connection:
    """An open database. Threads may share it: every query looks at the tables as they are when it begins.

    A context manager.
    """

    def __init__(self, session: Session) -> None:
        """Use `connect`."""
        self._session = session
        self._registered: dict[str, Source] = {}

    # SQL.

    def sql(self, text: str, params: Parameters | None = None) -> Relation:
        """Run one or more statements; the answer of the last one.

        In place of a table a query may name what was registered, or where there is no such table, a variable
        of the caller: a pyarrow, pandas or polars object or a relation.

        Args:
            text: the statements.
            params: values for `?` and `$1` as a list, for `$name` as a dict.

        A query is not run until its rows are asked for, but sees the tables as they are now. Everything
        else is done, and committed, when this returns.

        Raises:
            SqlError: it cannot be understood or run; says where. Nothing was run if one of the statements
                cannot be parsed.
            BamQueryError: a statement failed: it changed nothing, those before it are done.
        """
        relation = None
        for relation in self.statements(text, params):  # noqa: B007 (the last one is the answer)
            pass
        if relation is None:
            raise SqlError("there is no statement", text)
        return relation

    def statements(self, text: str, params: Parameters | None = None) -> Iterator[Relation]:
        """Run statements one by one, each when its answer is asked for; see `sql`."""
        # Not a generator itself: whose variables count is known only while it is called.
        return self._statements(
            sql_text(text, "text"),
            params,
            self._session.catalog(self._registered, caller_tables(self._session)),
        )

    def _statements(
        self, text: str, params: Parameters | None, catalog: StatementCatalog
    ) -> Iterator[Relation]:
        with within_depth(text):
            for statement in self._session.statements.bind(text, catalog, params):
                yield run_statement(self._session, statement)
                # The next one sees what this one did.
                catalog.next_statement()

    def register(self, name: str, what: Any) -> None:
        """Let statements name a Python object as if it were a table; it hides a table of that name.

        Args:
            name: compared without regard to case.
            what: a pyarrow table, batch, reader or dataset, a pandas or polars frame, a relation of this
                connection, or anything with `__arrow_c_stream__`. Nothing is copied before it is read.

        Raises:
            IngestError: it is none of these, or has columns that no type holds.
        """
        self._session.require_open()
        source = python_source(self._session, _name(name), what)
        self._registered = {**self._unregistered(name), name: source}

    def unregister(self, name: str) -> None:
        """Undo `register`; a name that is not registered is no error."""
        self._session.require_open()
        self._registered = self._unregistered(_name(name))

    def _unregistered(self, name: str) -> dict[str, Source]:
        return {other: source for other, source in self._registered.items() if fold(other) != fold(name)}

    # Tables.

    @property
    def tables(self) -> list[str]:
        """Names of all tables; of views, see `views`."""
        return list(self._session.database.table_names())

    @property
    def views(self) -> list[str]:
        """Names of all views."""
        return list(self._session.database.view_names())

    def table(self, name: str) -> Relation:
        """All rows of a table or view, as it is now.

        Raises:
            CatalogError: there is no such table; suggests the nearest name.
        """
        source = self._session.catalog(self._registered).table(_name(name))
        return Relation(self._session, inline(Scan(source, tuple(range(len(source.schema))))))

    def load(
        self,
        name: str,
        source: Any,
        *,
        if_exists: Literal["error", "append", "replace"] = "error",
        format: str | None = None,  # noqa: A002 (what it is called everywhere)
        exclude: Sequence[str] = (),
    ) -> int:
        """Put rows from outside into a table; returns how many. All of them are there, or none.

        Columns go by name; one that a table has and the source has not gets its default, or null.

        Args:
            name: of the table, made if there is none.
            source: a path or pattern, a list of them (Parquet, CSV, Arrow), a pyarrow, pandas or polars
                object, a relation, or anything else with `__arrow_c_stream__`.
            if_exists: what to do if there is such a table.
            format: "parquet", "csv", "tsv" or "arrow", where file names do not tell.
            exclude: columns to leave out.

        Raises:
            IngestError: the source cannot be read or does not fit; names file, place and column.
            AccessError: a file that `enable_external_access` puts out of reach.
            CatalogError: the table exists, and `if_exists` is "error".
            ConflictError: another writer changed the table meanwhile.
        """
        # Not before rows are loaded: a program that only asks would pay for it.
        from bamquery.progress.bars import progress_bar  # noqa: PLC0415
        from bamquery.sql_frontend.binder_defaults import default_values  # noqa: PLC0415
        from bamquery.storage.ingest import ingest, open_source  # noqa: PLC0415
        from bamquery.storage.types import settle_nulls  # noqa: PLC0415

        database = self._session.database
        _name(name)
        if if_exists not in ("error", "append", "replace"):
            raise ValueError(f'if_exists is "error", "append" or "replace", not {if_exists!r}')
        bar = progress_bar(self.settings)
        access = self.settings.file_access
        opened = open_source(source, format=format, exclude=exclude, progress=bar, access=access)
        if if_exists == "append" and database.has_table(name):
            writer = database.table(name).append()
        else:
            schema = settle_nulls(opened.schema)
            writer = database.create_table(name, schema, or_replace=if_exists == "replace")
        cancellation = Cancellation()
        self._session.register(cancellation)
        with writer:
            missing = default_values(writer.schema, writer.rules)
            rows = ingest(writer, opened, bar, cancelled=cancellation.requested, missing=missing)
            writer.commit()
        return rows

    def optimize(self, name: str, cluster_by: Sequence[str] = ()) -> OptimizeReport:
        """Merge a table's small fragments; with `cluster_by`, sort its rows by these columns."""
        limit = self._session.settings.effective_memory_limit
        return self._session.database.table(_name(name)).optimize(cluster_by, limit)

    def vacuum(self) -> VacuumReport:
        """Remove versions of tables that are neither the latest nor in use, and what crashes left behind."""
        return self._session.database.vacuum()

    def check(self) -> CheckReport:
        """Read everything back and compare checksums; the report names every damaged file."""
        return self._session.database.check()

    # Settings.

    @property
    def settings(self) -> Settings:
        """As they are now."""
        return self._session.settings

    def set(self, name: str, value: object) -> None:
        """Change a setting for the queries that start from now on; None restores its default.

        Raises:
            SettingError: there is no such setting, or it cannot take the value.
        """
        self._session.require_open()
        self._session.set(name, value)

    # What runs.

    def on_progress(self, callback: Callback, *, interval: float = 0.5) -> ProgressCallback:
        """Call a function with the `QueryProgress` of each query that begins from now on, while it runs.

        It is called from a background thread, one call at a time, first when the query has run for one
        interval; not for one that is over by then, and not for `load`. It should be quick: other queries'
        calls and bars wait for it. What it raises cancels the query, and is what the query raises.

        Args:
            callback: takes a `QueryProgress`.
            interval: seconds between two calls for one query, 0.01 at least.

        Returns:
            What undoes it by its `remove()`, or as a context manager.

        Raises:
            TypeError: it is no function. ValueError: the interval is too short.
        """
        self._session.require_open()
        return self._session.callbacks.add(callback, interval)

    # Its end.

    def interrupt(self) -> None:
        """Stop everything that runs, from another thread: it raises `CancelledError` there."""
        self._session.interrupt()

    def close(self) -> None:
        """Stop what runs and let go of everything; closing twice is harmless."""
        self._session.close()

    def __enter__(self) -> Connection:
        self._session.require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self._session.closed else ""
        return f"<bamquery.Connection to {self._session.path}{state}>"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name is a str, not {type(name).__name__}")
    return name
