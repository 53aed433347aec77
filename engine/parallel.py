"""Work spread over a query's threads, answers in order, a bounded number of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from bamquery.engine.context import ExecutionContext

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def ordered_map(
    context: ExecutionContext[Any],
    function: Callable[[Item], Answer],
    items: Iterable[Item],
    in_flight: int | None = None,
    threads: int | None = None,
) -> Generator[Answer, None, None]:
    """`function(item)` for every item, computed by the query's threads, yielded in the items' order.

    Items are taken by the calling thread, one as soon as fewer than `in_flight` (None: one more than
    there are threads) are in work or wait to be yielded. An exception surfaces in its item's place.
    Closing the generator drops what has not begun and waits for what has, so nothing touches the items
    afterwards; it does not close `items`. `threads`: of the context's if None. Between items freed memory
    is given back where it is scarce.

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

    bound = in_flight if in_flight is not None else threads + 1
    pending: deque[Future[Answer]] = deque()

    def next_answer() -> Answer:
        answer = pending.popleft().result()
        context.memory.relieve()
        return answer

    try:
        for item in items:
            pending.append(context.pool.submit(work, item))
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
        for future in pending:
            future.cancel()
        wait(pending)
