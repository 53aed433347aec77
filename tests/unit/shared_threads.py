"""Calls that threads of a query share, by one of them and by more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bamquery.statement_context.thread_budget import ThreadBudget, working_for

THREADS: Final = (1, 2, 7)


def by_each(work: Callable[[], Any]) -> list[Any]:
    """What it gives with so many threads at hand, all of which are free again afterwards."""
    found = []
    for threads in THREADS:
        budget = ThreadBudget(threads)
        with working_for(budget):
            found.append(work())
        assert budget.free == threads
    return found
