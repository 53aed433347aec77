"""The memory budget of a query."""

from __future__ import annotations

import pytest

from bamquery.engine.memory import MemoryBudget, release_unused
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


def test_what_is_not_used_any_more_is_given_back() -> None:
    release_unused()
