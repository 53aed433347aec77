"""One run of a plan: a stream of Arrow record batches and the profile of how they came about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.lowering import lower
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.settings import Settings
from bamquery.errors import BamQueryError, CancelledError, MemoryLimitError, foreign_errors, within_depth
from bamquery.plan.expressions import expression_depth
from bamquery.plan.functions import called_row_by_row
from bamquery.plan.interning import lasting_fact
from bamquery.plan.late_plan import LatePlan
from bamquery.plan.nodes import Field, Plan
from bamquery.plan.rewriting import expressions_of, nodes_of
from bamquery.session.optimized_plans import optimized_plan
from bamquery.session.query_progress import QueryProgress, RunningQuery
from bamquery.statement_context.deep_recursion import on_deep_stack, with_deep_recursion

if TYPE_CHECKING:
    from bamquery.engine.execution.detached_steps import DetachedSteps

_DEEP: Final = 60
"""Operators above each other, or calls in an expression, from which on Python's own limit is too near."""


class Result(Closeable):
    """The answer as it comes; an iterator of batches that are never empty, and a context manager.

    Nothing is read before the first batch is asked for. Threads may share it: each gets other batches.

    Attributes:
        schema: of every batch.
        profile: filled while batches are taken; final once there are no more.
        running: the run as those see it who watch it.
    """

    def __init__(
        self,
        plan: Plan | LatePlan,
        device: Device[Any],
        settings: Settings,
        notes: Sequence[str] = (),
        *,
        spill_folder: Path | None = None,
        sql: str = "",
    ) -> None:
        """Lower the plan.

        `spill_folder` is for rows that do not fit `memory_limit`; `sql` what it came from, for reports of
        faults.

        Raises:
            SqlError: the plan is too deep.
            UnsupportedError: the device cannot run it; all reasons at once.
        """
        self.schema = pa.schema([pa.field(field.name, field.type) for field in plan.fields])
        with within_depth():
            self.operator, deep, more = with_deep_recursion(lambda: _lower_plan(plan, device, settings))
        self.profile = QueryProfile(device.name, self.operator.profile, notes=[*notes, *more])
        self._context: ExecutionContext[Any] = ExecutionContext(
            device, settings, spill_folder=spill_folder, sql=sql
        )
        self._context.is_deep = deep
        self._context.memory.announce(self.operator.all_reservations(), self._context.stepping_threads)
        self.running = RunningQuery(self.operator, self.profile, self._context.cancelled)
        self._lock = threading.Lock()
        self._begun = False
        self._fields = plan.fields
        self._start = partial(_start_operator, self.operator, self._context, self.profile, self.running)
        self._batches = self._start(partial(_to_arrow, device, plan.fields))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            self._begun = True
            batch: pa.RecordBatch = next(self._batches)
            return batch

    def table(self) -> pa.Table:
        """All batches that have not been taken yet."""
        with self.running.call():
            batches = list(self)
        return pa.Table.from_batches(batches, self.schema)

    def progress(self) -> QueryProgress:
        """How far it is, from any thread: before it begins, while it runs, or once it is over."""
        return self.running.progress()

    def device_frame(self) -> tuple[Device[Any], Any]:
        """The device, and all rows as one frame in its memory; instead of batches, not after some.

        Raises:
            BamQueryError: rows have been taken already.
        """
        device = self._context.device
        with self._lock:
            if self._begun:
                raise BamQueryError("rows have been taken from this result already: run the query again")
            self._begun = True
            self._batches.close()
            self._batches = self._start(_identity)
            with self.running.call():
                frames = list(self._batches)
        return device, device.concatenate([device.empty(self._fields), *frames])

    def cancel(self) -> None:
        """Make whoever takes batches get a `CancelledError` soon; from any thread, never waits."""
        self._context.cancelled.set()

    def close(self) -> None:
        """Stop, and wait for worker threads; harmless when it is over."""
        with self._lock:
            self._batches.close()


def _lower_plan(
    plan: Plan | LatePlan, device: Device[Any], settings: Settings
) -> tuple[Operator[Any], bool, Sequence[str]]:
    """The operators, whether they recurse deeper than any thread's stack has room for, and what to note."""
    best = optimized_plan(plan)
    operator = lower(best, device, settings)
    if not device.capabilities.on_host:
        _start_compiling(operator, device)
    depth, slow = lasting_fact(best, _look_at_expressions)
    deep = operator.depth() > _DEEP or depth > _DEEP
    noted = slow and device.capabilities.on_host
    return operator, deep, [f"Python is called for every row by {slow}"] if noted else []


def _look_at_expressions(plan: Plan) -> tuple[int, str]:
    """How deep they are, and which functions in them call Python for every row."""
    expressions = [each for node in nodes_of(plan) for each in expressions_of(node)]
    slow = ", ".join(f"{name}()" for name in sorted(called_row_by_row(expressions)))
    return max(map(expression_depth, expressions), default=0), slow


def _start_compiling(operator: Operator[Any], device: Device[Any]) -> None:
    """All kernels of a statement that are known now, beside each other."""
    from bamquery.engine.compiling_device import CompilingDevice  # noqa: PLC0415 (no CPU is one)

    if isinstance(device, CompilingDevice):
        for one in {id(found): found for found in operator.walk()}.values():
            one.start_compiling(device)


def _start_operator(
    operator: Operator[Any],
    context: ExecutionContext[Any],
    profile: QueryProfile,
    running: RunningQuery,
    convert: Callable[[Any], Any],
) -> Generator[Any, None, None] | DetachedSteps[Any]:
    steps = _run(operator, context, profile, running, convert)
    if context.device.capabilities.on_host:  # whose operators ask often enough
        return steps
    from bamquery.engine.execution.detached_steps import DetachedSteps  # noqa: PLC0415 (a GPU's only)

    return DetachedSteps(steps, context.raise_if_cancelled, context.cancelled.set, lambda: context.last_check)


def _run(
    operator: Operator[Any],
    context: ExecutionContext[Any],
    profile: QueryProfile,
    running: RunningQuery,
    convert: Callable[[Any], Any],
) -> Generator[Any, None, None]:
    # Not a method: a generator that knew its result would keep it, and the tables it reads, from being freed.
    with within_depth(), running, context, closing(operator.frames(context)) as frames:
        while True:
            started = time.perf_counter()
            try:
                with running.call():
                    with foreign_errors(context.sql), context.current():
                        take = partial(next, frames, None)
                        frame = (
                            on_deep_stack(partial(_take_in_context, take, context))
                            if context.is_deep
                            else take()
                        )
                    running.raise_failure()
                    if frame is None:
                        running.finish()
                        return
                    with foreign_errors(context.sql):
                        rows = context.device.row_count(frame)
                        answer = convert(frame) if rows else None
            except CancelledError:
                running.raise_failure()
                raise
            except MemoryError as error:
                raise _memory_limit_error(error, context) from error
            finally:
                profile.seconds += time.perf_counter() - started
                profile.peak_memory = context.memory.peak
            if rows:
                yield answer


def _take_in_context(take: Callable[[], Any], context: ExecutionContext[Any]) -> Any:
    with context.current():
        return take()


def _memory_limit_error(error: MemoryError, context: ExecutionContext[Any]) -> MemoryLimitError:
    said = f" ({error})" if str(error) else ""
    return MemoryLimitError(
        f"the system has no more memory for this process{said}; memory_limit is {context.memory.limit:,} "
        "bytes. Lower it with SET memory_limit = '...' so that more goes to files, SET threads = 1, or make "
        "the query hold less"
    )


def _to_arrow(device: Device[Any], fields: Sequence[Field], frame: Any) -> pa.RecordBatch:
    return device.to_arrow(frame, fields)


def _identity(frame: Any) -> Any:
    return frame
