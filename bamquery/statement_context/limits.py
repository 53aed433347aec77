"""How large a statement may be: what the settings say of the one that a thread works on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatementLimits:
    """The settings of the same names."""

    max_expression_depth: int = 1000
    max_expression_parts: int = 10_000
    max_grouping_sets: int = 4096


class _Current(threading.local):
    limits = StatementLimits()


_current = _Current()


def statement_limits() -> StatementLimits:
    """Of the statement that this thread works on."""
    return _current.limits


def depth_message(levels: int) -> str:
    """What is wrong with a statement of more levels."""
    return (
        f"this is more than max_expression_depth, {levels:,}, levels deep: SET max_expression_depth takes "
        "more (5,000 at most), or put a part of it into WITH or a table"
    )


@contextmanager
def use_statement_limits(limits: StatementLimits) -> Iterator[None]:
    """The statement that this thread works on until the end has these."""
    before = _current.limits
    _current.limits = limits
    try:
        yield
    finally:
        _current.limits = before
