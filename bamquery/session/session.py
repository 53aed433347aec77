"""What a connection and its relations share: the database, the settings and what is running."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from bamquery.catalog.statement_catalog import StatementCatalog
from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from bamquery.engine.execution.context import timeout_error
from bamquery.engine.settings import Settings
from bamquery.errors import BamQueryError, CancelledError, UnsupportedError, foreign_errors, within_depth
from bamquery.plan.bound_statements import Statement
from bamquery.plan.late_plan import LatePlan
from bamquery.plan.nodes import Plan, Source
from bamquery.session.progress.callbacks import Callbacks
from bamquery.session.progress.observers import watch
from bamquery.session.result import Result
from bamquery.session.statement_cache import StatementCache
from bamquery.statement_context.cancellation import add_cancellation_check, check_cancelled
from bamquery.statement_context.garbage_collection import planning
from bamquery.statement_context.limits import use_statement_limits
from bamquery.storage.ingest.sources.reject_log import RejectLog

if TYPE_CHECKING:
    import pyarrow as pa

    from bamquery.storage.database.database import Database
    from bamquery.storage.tables.snapshot import Snapshot

_CPU: Final = "cpu"
_NOTHING: Final[Mapping[str, Source]] = MappingProxyType({})


class Cancellable(Protocol):
    """Something that runs and can be told to stop."""

    def cancel(self) -> None:
        """Stop soon; from any thread, without waiting."""
        ...


class Cancellation:
    """A flag for work that asks now and then whether to go on."""

    def __init__(self) -> None:
        self._requested = False

    def cancel(self) -> None:
        """See `Cancellable`."""
        self._requested = True

    def is_requested(self) -> bool:
        """Whether to stop."""
        return self._requested

    def check(self) -> None:
        """Stop here where that was asked for.

        Raises:
            CancelledError: it was.
        """
        if self.is_requested():
            raise CancelledError("it was cancelled")


class _Work(Cancellation):
    """A statement that a thread plans or carries out, before and beside the runs of its queries."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__()
        self._seconds = seconds
        self._deadline = time.monotonic() + (seconds or math.inf)

    def check(self) -> None:
        """Stop here where it was cancelled.

        Raises:
            CancelledError: it was, or its time is up.
        """
        if self._requested:
            raise CancelledError("the query was cancelled")
        if self._seconds and time.monotonic() > self._deadline:
            raise timeout_error(self._seconds)


def _find_nothing(name: str) -> Source | None:
    return None


class Session:
    """Thread-safe; closed once, by the connection.

    Attributes:
        statements: what was bound before.
        registered: Python objects that statements may name, by the names that they were given.
        variables: what SET VARIABLE gave names, folded.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        run_statement: Callable[[Session, Statement], Any] | None = None,
        caller_tables: Callable[[Session], Callable[[str], Source | None]] = lambda session: _find_nothing,
    ) -> None:
        """Over an open database.

        Args:
            database: closed with the session.
            settings: at first.
            run_statement: does what a bound statement says; returns a relation, its answer. None where
                plans are all that is run.
            caller_tables: finds variables of whoever calls, which are tables.
        """
        self._database = database
        self._settings = settings
        self._run_statement = run_statement
        self._caller_tables = caller_tables
        self.registered: Mapping[str, Source] = {}
        self.variables: Mapping[str, pa.Scalar[Any]] = {}
        self._lock = threading.Lock()
        self._running: weakref.WeakSet[Cancellable] = weakref.WeakSet()
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()
        self._closed = False
        self._rejects = RejectLog()
        self.statements: Final = StatementCache()
        self.callbacks: Final = Callbacks()

    @property
    def settings(self) -> Settings:
        """As they are now; a running query keeps those it began with."""
        return self._settings

    @property
    def database(self) -> Database:
        """The open database.

        Raises:
            BamQueryError: the connection is closed.
        """
        self.require_open()
        return self._database

    def require_open(self) -> None:
        """Refuse what is of no use any more.

        Raises:
            BamQueryError: the connection is closed.
        """
        if self._closed:
            raise BamQueryError("the connection is closed: bamquery.connect() makes a new one")

    @property
    def path(self) -> Path:
        """The database's folder."""
        return self._database.path

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def set(self, name: str, value: object) -> None:
        """Change a setting for what runs from now on; see `set_all`."""
        self.set_all({name: value})

    def set_all(self, values: Mapping[str, object]) -> None:
        """Change settings for what runs from now on, all or none.

        Raises:
            SettingError: there is no such setting, it cannot take the value (any more), or this machine
                cannot.
        """
        with self._lock:
            for name, value in values.items():
                self._settings.with_change(name, value)
            settings = self._settings.with_values(values)
            open_device(settings.device, settings.gpu_memory_limit)
            self._settings = settings

    def set_variable(self, name: str, value: pa.Scalar[Any] | None) -> None:
        """Give a variable, by its folded name, a value for what is bound from now on; None takes it away."""
        with self._lock:
            others = {other: known for other, known in self.variables.items() if other != name}
            self.variables = others if value is None else {**others, name: value}

    def catalog(
        self, relations: Mapping[str, Source] = _NOTHING, *, with_variables: bool = True
    ) -> StatementCatalog:
        """For the statements of one text: over all that they may name, `relations` before anything else.

        Without `with_variables`, they name no variables of the caller.
        """
        known = {**self.registered, **relations}
        find = self._caller_tables(self) if with_variables else _find_nothing
        return StatementCatalog(
            self.database,
            known,
            self.close_with_session,
            lambda: self._settings,
            find,
            variables=lambda: self.variables,
            rejects=self._rejects,
        )

    def perform(self, statement: Statement) -> Any:
        """The statement's answer, a relation; what it changes is committed when this returns.

        Raises:
            BamQueryError: it failed, and changed nothing.
        """
        assert self._run_statement is not None
        return self._run_statement(self, statement)

    def run(self, plan: Plan | LatePlan, sql: str = "") -> Result:
        """Start a plan under the settings of now; it reads nothing before its first batch is taken.

        Args:
            plan: what to run.
            sql: what it came from, for reports of faults.

        Raises:
            UnsupportedError: the device cannot run it, and nothing else is allowed.
        """
        self.require_open()
        with foreign_errors(sql), within_depth(), self.planning():
            return self._run(plan, sql)

    def _run(self, plan: Plan | LatePlan, sql: str) -> Result:
        settings = self._settings
        device, notes = open_device(settings.device, settings.gpu_memory_limit, programs=settings.programs)

        def run_on_device(chosen: Device[Any], notes: Sequence[str]) -> Result:
            return Result(plan, chosen, settings, notes, spill_folder=self.path, sql=sql)

        try:
            result = run_on_device(device, notes)
        except UnsupportedError as refusal:
            if not settings.allow_cpu or device.capabilities.on_host:
                raise
            why = [reason.message.partition("; SET ")[0] for reason in refusal.reasons]
            other, _ = open_device(_CPU, programs=settings.programs)
            result = run_on_device(
                other, [*notes, *(f"device cpu, as allow_cpu is on: {reason}" for reason in why)]
            )
        watch(result, settings, self.callbacks)
        self.register(result)
        check_cancelled()  # whoever interrupted before it was registered has not reached it
        return result

    @contextmanager
    def statement_running(self) -> Iterator[None]:
        """This thread plans or carries out a statement until the end.

        `interrupt` and `statement_timeout` reach it wherever it asks, and it is held to the limits of now.
        """
        work = _Work(self._settings.statement_timeout)
        self.register(work)
        with add_cancellation_check(work.check), use_statement_limits(self._settings.statement_limits):
            yield

    @contextmanager
    def planning(self) -> Iterator[None]:
        """As `statement_running`, for what makes a plan and runs none: Python's collector stands still."""
        with self.statement_running(), planning():
            yield

    def register(self, running: Cancellable) -> None:
        """Let `interrupt` find it for as long as it exists."""
        with self._lock:
            self._running.add(running)

    def interrupt(self) -> None:
        """Make everything that runs stop soon with a `CancelledError`."""
        with self._lock:
            running = list(self._running)
        for result in running:
            result.cancel()

    def close(self) -> None:
        """Interrupt what runs and close the database; again is harmless."""
        if not self._closed:
            self._closed = True
            self.interrupt()
            with self._lock:
                held = list(self._snapshots)
            for snapshot in held:
                snapshot.close()
            self._database.close()

    def close_with_session(self, snapshot: Snapshot) -> None:
        """Close a table's version with the session."""
        with self._lock:
            self._snapshots.add(snapshot)
