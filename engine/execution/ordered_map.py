"""Work spread over a query's threads, answers in order, a bounded number of them in memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.statement_context.thread_budget import working_for

_SMALL_ROWS: Final = 16_384
"""Rows below which a frame is no work to wake another thread for."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ordered_map(
    context: ExecutionContext[Any],
    function: Callable[[Item], Answer],
    items: Iterable[Item],
    in_flight: int | None = None,
    threads: int | None = None,
    *,
    is_small: Callable[[Item], bool] | None = None,
    looks_ahead: bool = False,
) -> Generator[Answer, None, None]:
    """`function(item)` for every item, computed by the query's threads, yielded in the items' order.

    Items are taken by the calling thread, one as soon as fewer than `in_flight` (None: see
    `ExecutionContext.most_in_flight`) are in work or wait to be yielded; rather than wait for an answer it
    works on one, too. An exception surfaces in its item's place. Closing the generator drops what has not
    begun and waits for what has, so nothing touches the items afterwards; it does not close `items`. Between
    items freed memory is given back where it is scarce.

    Args:
        context: whose threads work.
        function: of an item; it may be called by several threads at once.
        items: taken one by one.
        in_flight: see above.
        threads: None: of the context.
        is_small: whether an item is too little work to wake another thread for: the calling one does it.
        looks_ahead: items cost nothing to make, so an item is handed over once there is another one.

    Raises:
        CancelledError: the query was cancelled before an item was begun.
    """
    threads = context.threads if threads is None else threads
    if threads == 1:
        for item in items:
            context.check_cancelled()
            yield function(item)
            context.memory.relieve()
        return

    def work(item: Item) -> Answer:
        context.check_cancelled()
        answer = function(item)
        context.memory.relieve_thread()
        return answer

    bound = in_flight if in_flight is not None else context.most_in_flight(threads)
    pending: deque[_Task[Item, Answer]] = deque()
    kept: _Task[Item, Answer] | None = None

    def next_answer() -> Answer:
        first = pending[0]
        # What was handed over others begin with at any moment: what was not goes first.
        while not first.is_over and (_runs(kept) or any(task.run() for task in pending)):
            pass
        if not first.is_over:
            with working_for(None):
                first.wait()
        pending.popleft()
        context.memory.relieve()
        return first.answer()

    try:
        for item in items:
            if kept is not None:
                context.workers.hand_over(kept.run)
                kept = None
            task = _Task(work, item)
            pending.append(task)
            if is_small is None or not is_small(item):
                if looks_ahead:
                    kept = task
                else:
                    context.workers.hand_over(task.run)
            if len(pending) >= bound:
                yield next_answer()
        while pending:
            yield next_answer()
    except GeneratorExit:
        raise
    except BaseException:
        # The query has failed, or somebody pressed Ctrl-C: whatever is in work should stop, too.
        context.cancelled.set()
        raise
    finally:
        for task in pending:
            task.drop()


def _runs(task: _Task[Any, Any] | None) -> bool:
    return task is not None and task.run()


def is_small_frame(device: Device[Frame], frame: Frame) -> bool:
    """Whether the frame is too little work to wake another thread for."""
    return device.row_count(frame) < _SMALL_ROWS * device.task_size


def are_small_frames(device: Device[Frame], frames: Sequence[Frame]) -> bool:
    """The same of frames that are worked on together."""
    return sum(map(device.row_count, frames)) < _SMALL_ROWS * device.task_size


class _Task(Generic[Item, Answer]):
    """Work on one item, by whoever begins first: one of the other threads, or the one that wants answers.

    As that is one of the query's threads, no other one is idle while it waits for Python's lock, of which
    each call into a library lets go: three threads on two cores took longer.
    """

    def __init__(self, work: Callable[[Item], Answer], item: Item) -> None:
        self._work = work
        self._item: Item | None = item
        self._begun: dict[str, tuple[int]] = {}
        """By which thread, which the first of several that try is written down as."""
        self._working = threading.Lock()
        self._working.acquire()
        self._answer: Answer | None = None
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is an answer, or an error."""
        return not self._working.locked()

    def run(self) -> bool:
        """Do the work, unless somebody has begun; says whether it was done by this call."""
        own = (threading.get_ident(),)
        if self._begun.setdefault("by", own) is not own:
            return False
        item, self._item = cast(Item, self._item), None
        try:
            self._answer = self._work(item)
        except Exception as error:
            self._error = error
        except BaseException as error:
            self._error = error
            raise  # Ctrl-C, which comes to the thread that wants answers
        finally:
            self._working.release()
        return True

    def drop(self) -> None:
        """Nobody wants an answer: it does not begin any more, or another thread comes to its end first.

        Where Ctrl-C ended work of this thread, nobody would say that it is over.
        """
        own = threading.get_ident()
        if self._begun.setdefault("by", (own,)) != (own,):
            self.wait()

    def wait(self) -> None:
        """Until it is over; it must have begun, or begin."""
        with self._working:
            pass

    def answer(self) -> Answer:
        """What came of it, which is the caller's from then on: another thread's turn may still be to come."""
        answer, self._answer = cast(Answer, self._answer), None
        error, self._error = self._error, None
        if error is None:
            return answer
        try:
            raise error
        finally:
            del error  # it knows this frame, which would know it
