"""Kernels that a GPU's queries have compiled, out of the way of what is timed."""

from __future__ import annotations

from collections.abc import Callable

from bamquery.driver.compile.compile_pool import DEADLINE_S, POOL


def finish_compiling(ask: Callable[[], object]) -> None:
    """Ask again until no kernel is compiled any more: a query goes on without one, and is slower then.

    For what runs warm, after a first answer, which may have begun with some. Without a GPU nothing is asked.
    """
    while POOL.busy and POOL.settle(DEADLINE_S):
        ask()
