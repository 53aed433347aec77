"""What the operators of one running query share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Generic

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.large_memory import keep_large_memory, use_large_memory
from bamquery.engine.execution.memory_budget import MemoryBudget, keep_freed_memory
from bamquery.engine.execution.string_limits import StringLimits, use_string_limits
from bamquery.engine.execution.workers import QueryWorkers
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, StatementTimeoutError
from bamquery.statement_context.cancellation import add_cancellation_check, use_cancellation_check
from bamquery.statement_context.thread_budget import ThreadBudget, working_for

MOST_STEPPING: Final = 8
"""Threads of a query that go from step to step in Python at most: each of more would wait for its lock longer
than it works. Native calls share their work with all of the query's threads."""
_FEW: Final = 3


@dataclass
class ExecutionContext(Generic[Frame]):
    """Device, settings, memory budget, worker threads and the flag that stops it all; a context manager.

    `spill_folder` is where operators may keep rows that do not fit `memory_limit`; None: nowhere.
    `sql` is the statement, for reports of faults; empty where it is not known.

    While `alone` is set, whoever begins to spread work computes it by itself: it is too little to hand over.

    `is_deep`: its operators are so many, or their expressions so deep, that they run on a large stack.

    What `at_end` is given is done when the query is over, however it ends.

    Tasks of `workers` never wait for other tasks, so any number of operators may share them. `budget` counts
    the threads that are at work, so that native calls share theirs with the others.
    """

    device: Device[Frame]
    settings: Settings = field(default_factory=Settings)
    cancelled: threading.Event = field(default_factory=threading.Event)
    spill_folder: Path | None = None
    sql: str = ""
    alone: bool = False
    is_deep: bool = False
    memory: MemoryBudget = field(init=False)
    string_limits: StringLimits = field(init=False)
    workers: QueryWorkers = field(init=False)
    budget: ThreadBudget = field(init=False)
    at_end: ExitStack = field(init=False, default_factory=ExitStack)

    last_check: float = field(init=False, default=0.0)
    """`time.monotonic()` of when a thread last asked whether to go on."""

    _deadline: float = field(init=False, default=math.inf)
    _error: CancelledError = field(init=False, default=CancelledError("the query was cancelled"))

    def __post_init__(self) -> None:
        if self.device.capabilities.on_host:
            keep_freed_memory()
        self.memory = MemoryBudget(self.settings.effective_memory_limit)
        threads = self.settings.effective_threads
        self.string_limits = StringLimits.for_query(self.memory.limit, threads)
        self.budget = ThreadBudget(threads if self.device.capabilities.on_host else 1)
        # The thread that wants rows is one of them: see `ordered_map`.
        self.workers = QueryWorkers(max(self.stepping_threads - 1, 1), self.budget, self._worker)

    @property
    def threads(self) -> int:
        """Threads that take steps, with the one that wants rows: on a GPU one, as all is on one stream."""
        if self.alone or not self.device.capabilities.on_host:
            return 1
        return self.stepping_threads

    @property
    def stepping_threads(self) -> int:
        """As `threads`, whatever computes: of a GPU's query those that read and write files."""
        return min(self.settings.effective_threads, MOST_STEPPING)

    def most_in_flight(self, threads: int) -> int:
        """Items that so many threads work on, or whose answers wait for their turn, at most.

        The thread that takes answers works on items, too, and hands nothing over meanwhile: of more than a
        few threads others would stand still. Answers weigh less than what they are made of, but not nothing:
        where memory is short it is one more than there are threads.
        """
        return 2 * threads if threads > _FEW and self.memory.share == 1 else threads + 1

    @contextmanager
    def current(self) -> Iterator[None]:
        """This thread works for the query until the end."""
        checks = add_cancellation_check(self.check_cancelled)
        with use_string_limits(self.string_limits), checks, working_for(self.budget), self._large_memory():
            yield

    @contextmanager
    def _worker(self) -> Iterator[None]:
        """One of the other threads works for the query until the end."""
        check = use_cancellation_check(self.check_cancelled)
        with use_string_limits(self.string_limits), check, self._large_memory():
            yield

    def _large_memory(self) -> AbstractContextManager[None]:
        """Of a GPU's query nothing is kept, so each large array would be mapped anew."""
        return use_large_memory() if self.device.capabilities.on_host else nullcontext()

    def check_cancelled(self) -> None:
        """Stop here where the query was cancelled.

        Raises:
            CancelledError: it was, or its time is up.
        """
        self.last_check = now = time.monotonic()
        if now > self._deadline or self.cancelled.is_set():
            self.raise_if_cancelled()

    def raise_if_cancelled(self) -> None:
        """As `check_cancelled`, by who does not work for the query but waits for it."""
        if not self.cancelled.is_set() and time.monotonic() > self._deadline:
            self._error = timeout_error(self.settings.statement_timeout or 0)
            self.cancelled.set()
        if self.cancelled.is_set():
            raise type(self._error)(*self._error.args)  # each thread one of its own

    def __enter__(self) -> ExecutionContext[Frame]:
        self._deadline = time.monotonic() + (self.settings.statement_timeout or math.inf)
        if self.device.capabilities.on_host:
            self.at_end.enter_context(keep_large_memory(self.memory.limit))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.cancelled.set()
        self.workers.close()
        self.at_end.close()


def timeout_error(seconds: float) -> StatementTimeoutError:
    """A statement ran longer than so many seconds, its `statement_timeout`."""
    return StatementTimeoutError(
        f"the statement ran longer than statement_timeout, {seconds:g} "
        "seconds, and was cancelled: SET statement_timeout takes more seconds, or 0 for no limit"
    )
