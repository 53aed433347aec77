"""`bamquery.connect()`: a database, its settings, and SQL."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

import pyarrow as pa

from bamquery.catalog.statement_catalog import StatementCatalog
from bamquery.closeable import Closeable
from bamquery.connection.database_paths import resolve_database_path
from bamquery.connection.duckdb_names import ConnectionDuckdbNames
from bamquery.connection.python_tables import caller_tables, python_source
from bamquery.engine.device_factory import open_device
from bamquery.engine.settings import Settings, SettingValues
from bamquery.errors import BamQueryError, SqlError, foreign_errors, within_depth
from bamquery.plan.nodes import Source
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.relation import Relation
from bamquery.session.progress.callbacks import Callback, ProgressCallback
from bamquery.session.session import Cancellation, Session
from bamquery.sql_frontend.parameters import Parameters, require_parameters
from bamquery.sql_frontend.sql_text import sql_text
from bamquery.statement_context.cancellation import add_cancellation_check
from bamquery.statement_context.garbage_collection import planning
from bamquery.statements.execution import run_statement
from bamquery.storage.database.database import Database
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.engine.profiling.cache_use import CacheUse
    from bamquery.storage.database.check import CheckReport
    from bamquery.storage.tables.optimize import OptimizeReport
    from bamquery.storage.tables.vacuum import VacuumReport


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    create: bool | None = None,
    **settings: Unpack[SettingValues],
) -> Connection:
    """Open a database folder, made if there is none; `Connection.created` says whether it was made.

    Args:
        path: the folder, `~` expanded; `:memory:` is a temporary one that goes with the connection.
        create: True makes a database where there is none, False never does; None does unless the name looks
            like a slip for that of a database beside it.
        settings: by name, such as `device="cpu"`, `threads=4`; docs/python/connections.md lists them.

    Raises:
        SettingError: there is no such setting or device.
        StorageError: there is no such database and none is to be made, the folder around it is missing, the
            path is something else, or it cannot be made a database.
    """
    return open_connection(path, create, settings)


def open_connection(
    path: str | os.PathLike[str], create: bool | None, settings: Mapping[str, object]
) -> Connection:
    """As `connect`, with settings whose names are not known before the program runs."""
    chosen = Settings().with_values(settings)
    open_device(chosen.device, chosen.gpu_memory_limit)
    folder, created = resolve_database_path(path, create)
    database = Database.open(folder, create=create is not False)
    session = Session(database, chosen, run_statement=run_statement, caller_tables=caller_tables)
    return Connection(session, created=created)


def _pickle_state(session: Session) -> tuple[Any, ...]:
    """A session as `(path, settings, variables)`, for pickle.

    Raises:
        BamQueryError: the database goes with this process, or the connection is closed.
    """
    if session.database.is_temporary:
        raise BamQueryError(
            "a database in :memory: goes with its connection, so nothing of it can be pickled: "
            'connect("path") makes one that stays, to_arrow() takes rows along'
        )
    settings = session.settings
    chosen = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return _reopen_session, (str(session.path), chosen, _as_arrays(session.variables))


def _as_arrays(variables: Mapping[str, pa.Scalar[Any]]) -> dict[str, pa.Array[Any]]:
    # Not all scalars pickle.
    return {name: pa.array([value], value.type) for name, value in variables.items()}


def _reopen_session(
    path: str, settings: Mapping[str, object], variables: Mapping[str, pa.Array[Any]]
) -> Session:
    session = open_connection(path, False, settings)._session
    session.variables = {name: value[0] for name, value in variables.items()}
    return session


copyreg.pickle(Session, _pickle_state)


class Connection(ConnectionDuckdbNames, Closeable):
    """An open database. Threads may share it: every query looks at the tables as they are when it begins.

    A context manager.

    Attributes:
        created: whether the database was made when it was opened; False of `:memory:`.
    """

    def __init__(self, session: Session, *, created: bool = False, is_cursor: bool = False) -> None:
        """Use `connect`, or `cursor`."""
        super().__init__(session)
        self.created = created
        self._is_cursor = is_cursor
        self._ended = False

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
        self._require_open()
        text = sql_text(text, "text")
        catalog = self._session.catalog()
        relation, count = None, 0
        for relation in self._statements(text, params, catalog):  # noqa: B007 (the last one is the answer)
            count += 1
        if relation is None:
            raise SqlError("there is no statement", text)
        if count == 1 and not params and not catalog.objects:
            relation._define(text)
        return relation

    def statements(self, text: str, params: Parameters | None = None) -> Iterator[Relation]:
        """Run statements one by one, each when its answer is asked for; see `sql`."""
        # Not a generator itself: whose variables count is known only while it is called.
        self._require_open()
        return self._statements(sql_text(text, "text"), params, self._session.catalog())

    def _statements(
        self, text: str, params: Parameters | None, catalog: StatementCatalog
    ) -> Iterator[Relation]:
        require_parameters(params)
        session = self._session
        with foreign_errors(text), within_depth(text):
            with session.planning():
                statements = session.statements.bind(text, catalog, params)
            while True:
                with session.statement_running():
                    with planning():
                        statement = next(statements, None)
                    if statement is None:
                        return
                    relation = run_statement(session, statement)
                relation._text = text
                yield relation
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
        self._require_open()
        with foreign_errors(takes_arguments=True):
            source = python_source(self._session, _name(name), what)
        self._session.registered = {**self._sources_without(name), name: source}

    def unregister(self, name: str) -> None:
        """Undo `register`; a name that is not registered is no error."""
        self._require_open()
        self._session.registered = self._sources_without(_name(name))

    def _sources_without(self, name: str) -> dict[str, Source]:
        known = self._session.registered
        return {other: source for other, source in known.items() if fold_case(other) != fold_case(name)}

    # Tables.

    @property
    def tables(self) -> list[str]:
        """Names of all tables; of views, see `views`."""
        with foreign_errors():
            return list(self._session.database.table_names())

    @property
    def views(self) -> list[str]:
        """Names of all views."""
        with foreign_errors():
            return list(self._session.database.view_names())

    def table(self, name: str) -> Relation:
        """All rows of a table or view, as it is now.

        Raises:
            CatalogError: there is no such table; suggests the nearest name.
        """
        self._require_open()
        catalog = self._session.catalog()
        with foreign_errors(takes_arguments=True):
            relation = self._scan(catalog.table_without_variables(_name(name)), name)
        if not catalog.objects:
            relation._define(f"SELECT * FROM {quoted_name(name)}")
        return relation

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

        Columns go by name; one that a table has and the source has not gets its default, or null. Folders
        `key=value` that all files are in give columns, too.

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
        from bamquery.engine.constant_folding import fold_expression  # noqa: PLC0415
        from bamquery.engine.execution.memory_budget import MemoryBudget  # noqa: PLC0415
        from bamquery.session.progress.bars import progress_bar  # noqa: PLC0415
        from bamquery.sql_frontend.binder.statements.column_defaults import default_values  # noqa: PLC0415
        from bamquery.storage.format.storable_types import settle_nulls  # noqa: PLC0415
        from bamquery.storage.ingest import ingest, open_source  # noqa: PLC0415
        from bamquery.storage.ingest.sources.options import FileOptions  # noqa: PLC0415

        database = self._session.database
        _name(name)
        if if_exists not in ("error", "append", "replace"):
            raise ValueError(f'if_exists is "error", "append" or "replace", not {if_exists!r}')
        bar = progress_bar(self.settings)
        access = self.settings.file_access
        cancellation = Cancellation()
        self._session.register(cancellation)
        with foreign_errors(takes_arguments=True):
            with add_cancellation_check(cancellation.check):
                opened = open_source(
                    source,
                    format=format,
                    exclude=exclude,
                    progress=bar,
                    options=FileOptions(union_by_name=True),
                    access=access,
                    check=cancellation.check,
                )
            if if_exists == "append" and database.has_table(name):
                writer = database.table(name).append()
            else:
                schema = settle_nulls(opened.schema)
                encoding = self.settings.default_encoding
                writer = database.create_table(
                    name, schema, or_replace=if_exists == "replace", encoding=encoding
                )
            with writer:
                missing = default_values(writer.schema, writer.rules, fold_expression)
                limit = self.settings.effective_memory_limit
                writer.limit_memory(limit)
                writer.use_threads(self.settings.effective_threads)
                rows = ingest(
                    writer,
                    opened,
                    bar,
                    cancelled=cancellation.is_requested,
                    missing=missing,
                    memory_limit=limit,
                    relieve=MemoryBudget(limit).relieve,
                )
                writer.commit()
            return rows

    def optimize(self, name: str, cluster_by: Sequence[str] = ()) -> OptimizeReport:
        """Merge a table's small fragments; with `cluster_by`, sort its rows by these columns."""
        from bamquery.statements.optimize_table import optimize_table  # noqa: PLC0415 (rarely asked for)

        with foreign_errors(takes_arguments=True), self._session.statement_running():
            return optimize_table(self._session, _name(name), cluster_by)

    def vacuum(self) -> VacuumReport:
        """Remove versions of tables that are neither the latest nor in use, and what crashes left behind."""
        with foreign_errors(), self._session.statement_running():
            return self._session.database.vacuum()

    def check(self) -> CheckReport:
        """Read everything back and compare checksums; the report names every damaged file."""
        with foreign_errors():
            return self._session.database.check()

    # Settings.

    @property
    def gpu_cache(self) -> CacheUse | None:
        """Which columns stay in the GPU's memory, for all connections of this process; None on a CPU.

        Raises:
            SettingError: there is no such device as the setting says.
        """
        from bamquery.engine.profiling.cache_use import CachingDevice  # noqa: PLC0415 (seldom asked)

        chosen = self._session.settings
        device, _ = open_device(chosen.device, chosen.gpu_memory_limit, programs=chosen.programs)
        return device.cache_use() if isinstance(device, CachingDevice) else None

    @property
    def settings(self) -> Settings:
        """As they are now."""
        return self._session.settings

    @overload
    def set(self, name: str, value: object, /) -> None: ...
    @overload
    def set(self, **settings: Unpack[SettingValues]) -> None: ...
    def set(self, *named: Any, **settings: Any) -> None:
        """Change settings for the queries that start from now on; None restores a default.

        `set(threads=4)` is seen by type checkers, `set("threads", 4)` takes names that come from elsewhere.

        Raises:
            SettingError: there is no such setting, or it cannot take the value; none is changed then.
        """
        self._session.require_open()
        if named and (len(named) != 2 or settings):
            raise TypeError("set takes one name and its value, or settings by name: set(threads=4)")
        self._session.set_all({_name(named[0]): named[1]} if named else settings)

    def cursor(self) -> Connection:
        """A connection to the same session: what is registered and set is shared, `execute` is its own.

        Raises:
            BamQueryError: this one is closed.
        """
        self._require_open()
        return Connection(self._session, is_cursor=True)

    duplicate = cursor

    def _require_open(self) -> None:
        if self._ended:
            raise BamQueryError("the connection is closed: bamquery.connect() makes a new one")
        self._session.require_open()

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

    @property
    def closed(self) -> bool:
        """Whether `close` was called, of a cursor also that of the connection that it is of."""
        return self._ended or self._session.closed

    def close(self) -> None:
        """Stop what runs and let go of everything, cursors too; closing twice is harmless.

        Of a cursor, it ends the cursor only.
        """
        self._ended = True
        if not self._is_cursor:
            self._session.close()

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """As `(path, settings)`, for pickle.

        Raises:
            BamQueryError: it is to `:memory:`, it is closed, or objects of Python are registered.
        """
        self._require_open()
        if self._session.registered:
            raise BamQueryError(
                f"objects of Python are registered ({', '.join(self._session.registered)}), which a pickled "
                "connection would lack: unregister() them, or load() them into tables"
            )
        return Connection, (self._session,)

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        state = state or (" (made new)" if self.created else "")
        return f"<bamquery.Connection to {self._session.path}{state}>"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name is a str, not {type(name).__name__}")
    return name
