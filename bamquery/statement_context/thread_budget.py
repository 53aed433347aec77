"""Which threads work for a query: native calls share their work with those that it has left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bamquery._native import ThreadBudget

__all__ = ["ThreadBudget", "working_for"]


@contextmanager
def working_for(budget: ThreadBudget | None) -> Iterator[None]:
    """This thread works for a query, or for none, until the end."""
    before = ThreadBudget.current()
    ThreadBudget.end()
    if budget is not None:
        budget.begin()
    try:
        yield
    finally:
        ThreadBudget.end()
        if before is not None:
            before.begin()
