"""Order, bounds, errors and endings of parallel work."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution import ordered_map as parallel
from bamquery.engine.execution.context import MOST_STEPPING, ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError


@pytest.fixture(params=[1, 2, 5])
def context(request: pytest.FixtureRequest) -> Iterator[ExecutionContext]:
    with ExecutionContext(CpuDevice(), Settings(threads=request.param)) as found:
        yield found


def test_answers_come_in_order(context: ExecutionContext) -> None:
    def slow_if_even(item: int) -> int:
        time.sleep(0.002 * (item % 2 == 0))
        return item * item

    assert list(ordered_map(context, slow_if_even, range(30))) == [n * n for n in range(30)]


def test_no_more_items_are_taken_than_are_in_flight(context: ExecutionContext) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(100):
            taken += 1
            yield item

    for given, _ in enumerate(ordered_map(context, lambda item: item, items(), in_flight=4), start=1):
        assert taken - given < 4


@pytest.mark.parametrize(("threads", "limit", "most"), [(2, 64, 3), (5, 64, 10), (5, 1, 6)])
def test_answers_of_many_threads_may_wait_where_memory_allows_it(threads: int, limit: int, most: int) -> None:
    """All that can be in work or wait is handed over before the first answer is asked for again."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(30):
            taken.append(item)
            yield item

    with ExecutionContext(CpuDevice(), Settings(threads=threads, memory_limit=limit << 30)) as context:
        context.memory.announce(1, threads)
        answers = ordered_map(context, lambda item: item, items())
        assert next(answers) == 0
        assert len(taken) == most
        assert list(answers) == list(range(1, 30))


def test_of_many_threads_some_take_steps_and_native_calls_have_the_others() -> None:
    with ExecutionContext(CpuDevice(), Settings(threads=20)) as context, context.current():
        together = threading.Barrier(MOST_STEPPING, timeout=10)

        def meet(_: int) -> int:
            together.wait()
            free = context.budget.free
            together.wait()  # none has ended before all have looked
            return free

        found = list(ordered_map(context, meet, range(MOST_STEPPING)))
    assert found == [20 - MOST_STEPPING] * MOST_STEPPING


def test_no_more_threads_take_steps() -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def work(_: int) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.001)
        with lock:
            at_once -= 1

    with ExecutionContext(CpuDevice(), Settings(threads=20)) as context, context.current():
        assert len(list(ordered_map(context, work, range(200)))) == 200
    assert 1 < most <= MOST_STEPPING


def test_an_error_comes_in_its_place(context: ExecutionContext) -> None:
    def fail_at_five(item: int) -> int:
        if item == 5:
            raise ValueError("five")
        return item

    answers = ordered_map(context, fail_at_five, range(10))
    assert [next(answers) for _ in range(5)] == list(range(5))
    with pytest.raises(ValueError, match="five"):
        next(answers)


def test_closing_waits_for_work_in_progress() -> None:
    begun, ended = threading.Semaphore(0), []

    def work(item: int) -> int:
        if item:
            begun.release()
            time.sleep(0.05)
            ended.append(item)
        return item

    with ExecutionContext(CpuDevice(), Settings(threads=3)) as context:
        answers = ordered_map(context, work, range(100), in_flight=8)
        next(answers)
        begun.acquire()
        running = begun
        answers.close()
        done = len(ended)
        time.sleep(0.1)
        assert len(ended) == done > 0
        assert running is begun


def test_a_cancelled_query_begins_nothing(context: ExecutionContext) -> None:
    def cancel(item: int) -> int:
        if item == 2:
            context.cancelled.set()
        return item

    with pytest.raises(CancelledError):
        list(ordered_map(context, cancel, range(1000)))


def test_leaving_by_an_exception_cancels() -> None:
    with pytest.raises(ValueError, match="out"), ExecutionContext(CpuDevice()) as context:
        raise ValueError("out")
    assert context.cancelled.is_set()


def test_who_wants_answers_works_too() -> None:
    together = threading.Barrier(2)

    def meet(item: int) -> int:
        if item < 2:
            together.wait(60)
        return threading.get_ident()

    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
        first, second, *_ = ordered_map(context, meet, range(6))
    assert threading.get_ident() in (first, second)
    assert first != second


def test_answers_are_let_go_of_though_the_pool_has_other_work() -> None:
    """Its turn at what others have done comes later: until then it must not keep what came of it."""

    class Answer:
        pass

    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
        free = threading.Event()
        context.workers.hand_over(free.wait)
        answers = ordered_map(context, lambda _: Answer(), range(5))
        try:
            for _ in range(5):
                answer = weakref.ref(next(answers))
                assert answer() is None
        finally:
            free.set()
            answers.close()


def test_ctrl_c_in_work_of_the_caller_ends_all_of_it() -> None:
    caller = threading.get_ident()
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return item

    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
        with pytest.raises(KeyboardInterrupt):
            list(ordered_map(context, work, range(1000)))
        assert context.cancelled.is_set()
    assert len(begun) < 10


def test_ctrl_c_before_work_has_quite_begun_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = threading.get_ident()

    def interrupted(_: object, value: object) -> object:
        if threading.get_ident() == caller:
            raise KeyboardInterrupt
        return value

    monkeypatch.setattr(parallel, "cast", interrupted)
    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context, pytest.raises(KeyboardInterrupt):
        list(ordered_map(context, lambda item: time.sleep(0.01), range(1000)))


def test_small_items_are_the_callers_work() -> None:
    """Large ones are handed over, and answers still come in order."""
    with ExecutionContext(CpuDevice(), Settings(threads=3)) as context:
        workers: dict[int, int] = {}

        def work(item: int) -> int:
            workers[item] = threading.get_ident()
            time.sleep(0.002)
            return item

        answers = ordered_map(context, work, range(12), is_small=lambda item: item % 3 > 0)
        assert list(answers) == list(range(12))
        own = threading.get_ident()
        assert {workers[item] for item in range(12) if item % 3} == {own}
        assert any(workers[item] != own for item in range(0, 12, 3))


def test_an_only_item_is_the_callers_work_if_that_is_known() -> None:
    with ExecutionContext(CpuDevice(), Settings(threads=2)) as context:
        alone = list(ordered_map(context, lambda _: threading.get_ident(), [0], looks_ahead=True))
        assert alone == [threading.get_ident()]
        begun = threading.Barrier(2, timeout=10)  # both at once, each on a thread of its own
        both = ordered_map(context, lambda _: begun.wait() >= 0, [0, 1], looks_ahead=True)
        assert list(both) == [True, True]
