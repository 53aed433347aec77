"""The memory budget of a query."""

from __future__ import annotations

import pytest

import bamquery
from bamquery.engine.execution import memory_budget as memory_module
from bamquery.engine.execution.context import MOST_STEPPING
from bamquery.engine.execution.memory_budget import (
    Division,
    MemoryBudget,
    anonymous_bytes,
    keep_freed_memory,
    release_unused_memory,
)
from bamquery.errors import MemoryLimitError


def test_reservations_share_a_budget() -> None:
    budget = MemoryBudget(100)
    with budget.reservation("GROUP BY") as one, budget.reservation("ORDER BY") as other:
        one.resize(60)
        other.resize(40)
        with pytest.raises(
            MemoryLimitError, match=r"ORDER BY needs 41 B .* 101 B, and memory_limit is 100 B"
        ):
            other.resize(41)
        assert (one.held, other.held, budget.used) == (60, 40, 100)
        one.resize(10)
        other.resize(90)
    assert budget.used == 0
    assert (budget.peak, one.peak, other.peak) == (100, 60, 90)


def test_holding_less_is_always_allowed() -> None:
    budget = MemoryBudget(100)
    with budget.reservation("ORDER BY") as memory:
        memory.resize(100)
        budget.limit = 10
        memory.resize(50)
        assert budget.used == 50


def test_the_message_says_what_to_do() -> None:
    memory = MemoryBudget(3 << 20).reservation("GROUP BY")
    with pytest.raises(MemoryLimitError, match=r"GROUP BY needs 5\.0 MiB .* SET memory_limit"):
        memory.resize(5 << 20)


def test_announced_reservations_can_count_on_a_part() -> None:
    budget = MemoryBudget(1200)
    budget.announce(2, threads=1)  # a third is kept for frames, and a quarter of the rest for each
    with budget.reservation("JOIN") as one:
        assert one.room == 600
        one.resize(600)
        with pytest.raises(MemoryLimitError, match=r"JOIN needs 601 B .* 1\.2 KiB, and memory_limit"):
            one.resize(601)
        with budget.reservation("ORDER BY") as other:
            assert other.room == 200
            assert not other.fits(201)
            assert other.fits(200)
            one.resize(100)
            assert other.room == 600  # the other one's part stays its own
        assert one.room == 800


def test_a_reservation_is_divided_among_steps() -> None:
    budget = MemoryBudget(120)
    with budget.reservation("GROUP BY") as whole:
        division = Division(whole, 6)
        with division.reservation(4) as sort, division.reservation() as counts:
            assert (sort.certain, counts.certain) == (40, 10)
            assert sort.room == 100  # ten are for a step that has not begun
            counts.resize(70)
            assert (sort.room, whole.held, budget.used) == (40, 70, 70)
            with pytest.raises(MemoryLimitError, match=r"GROUP BY needs 41 B .* memory_limit is 120 B"):
                sort.resize(41)
            sort.resize(40)
            with division.reservation() as places:
                assert places.room == 10
                assert not places.fits(11)
            assert budget.used == 110
        assert (whole.held, whole.peak) == (0, 110)


def test_what_is_not_used_any_more_is_given_back() -> None:
    release_unused_memory()


def test_chunks_are_as_large_as_memory_allows() -> None:
    assert MemoryBudget(100).share == 1
    roomy, tight = MemoryBudget(64 << 30), MemoryBudget(256 << 20)
    for budget in (roomy, tight):
        budget.announce(1, threads=2)
    assert roomy.share == 1
    assert 0 < tight.share < 0.1


def test_what_one_can_do_without_takes_nothing_from_others() -> None:
    budget = MemoryBudget(1200)
    budget.announce(2, threads=1)
    with budget.reservation("keys", spare=True) as spare:
        assert spare.room == 400  # two other ones can count on 200 each
        with budget.reservation("JOIN") as one, budget.reservation("ORDER BY") as other:
            assert spare.fits(400)
            assert (one.room, other.room) == (200, 200)
    assert budget.used == 0


def test_a_part_that_runs_again_can_count_on_as_much_each_time() -> None:
    budget = MemoryBudget(1200)
    budget.announce(3, threads=1)  # 133 bytes each
    with budget.reservation("WITH RECURSIVE") as rows:
        with budget.repeat_announced(5) as step:  # two of them were announced
            for _ in range(3):
                assert rows.fits(800 - 2 * 133)
                assert not rows.fits(800 - 2 * 133 + 1)
                with (
                    budget.attribute_to(step),
                    budget.reservation("JOIN") as one,
                ):  # the other one never begins
                    assert one.room == 133
                    with budget.attribute_to(None), budget.reservation("JOIN", spare=True) as spare:
                        assert spare.room == 0
                with budget.attribute_to(step), budget.repeat_announced(1) as inner:  # a step within the step
                    assert (inner.left, step.left) == (1, 1)
            with budget.reservation("ORDER BY") as outside:
                assert outside.room == 0
        assert rows.room == 800


def test_a_process_that_grows_gives_freed_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    size = [1 << 30]
    given_back = []

    def release() -> None:
        given_back.append(size[0])
        size[0] -= 100 << 20

    now = [100.0]
    monkeypatch.setattr(memory_module, "anonymous_bytes", lambda: size[0])
    monkeypatch.setattr(memory_module, "release_unused_memory", release)
    monkeypatch.setattr(memory_module.time, "monotonic", lambda: now[0])
    budget = MemoryBudget(1 << 30)
    for grown in (0, 511, 513, 10, 32, 90):  # more than half of the limit, then a thirty-second of it more
        size[0] += grown << 20
        now[0] += 1
        budget.relieve()
        budget.relieve_thread()
    assert len(given_back) == 3
    size[0] += 1 << 30
    for pause in (0.0, 0.03, 0.03):  # it is not looked at after each chunk of some microseconds
        assert len(given_back) == 3
        now[0] += pause
        budget.relieve()
    assert len(given_back) == 4
    assert anonymous_bytes() > 0


def test_what_users_set_of_the_allocator_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(memory_module, "_mallopt", lambda name, size: asked.append((name, size)))
    for name in ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    keep_freed_memory.__wrapped__()
    assert asked == [(-1, 64 << 20), (-3, 32 << 20)]
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    keep_freed_memory.__wrapped__()
    assert len(asked) == 2


def test_room_for_chunks_is_kept_for_threads_that_take_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that only help with native calls have no chunk of their own."""
    announced: list[int] = []
    announce = MemoryBudget.announce

    def note(budget: MemoryBudget, reservations: int, threads: int) -> None:
        announced.append(threads)
        announce(budget, reservations, threads)

    monkeypatch.setattr(MemoryBudget, "announce", note)
    with bamquery.connect(device="cpu") as con:
        for threads in (2, 100):
            con.sql(f"SET threads = {threads}")
            con.sql("SELECT 1").to_arrow()
    assert {2, MOST_STEPPING} <= set(announced)
    assert max(announced) == MOST_STEPPING
