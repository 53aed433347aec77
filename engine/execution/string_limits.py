"""How much text an expression may make at once: a thread's share of `memory_limit` while a query runs.

A function can make far more bytes than its arguments have, so the limits of operators, which count what is
there, come too late. Functions ask here before they make it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bamquery.errors import ExecutionError, MemoryLimitError

_PIECE: Final = 64 << 20
"""Bytes of one column of strings, of some rows, beyond which it is made of fewer rows at once."""
_LEAST_PIECE: Final = 4 << 20
_LEAST: Final = 16 << 20
"""Bytes of one text that a thread may make under any limit."""
_COPIES: Final = 8
"""Times that an answer may be there until an operator is done with it."""
_MOST: Final = 1 << 32
"""Bytes of one text, whatever the limit."""


class LargeStringError(ExecutionError, MemoryLimitError):
    """Strings that would take too much memory: of fewer rows, or of those that need them, they may not.

    Of one row nothing helps but a higher `memory_limit`.
    """


@dataclass(frozen=True)
class StringLimits:
    """What a thread may make at once.

    Attributes:
        piece: bytes of a column that is made of some rows.
        answer: bytes of the columns that are the answer for some rows.
        most: bytes of a text.
        limit: the setting `memory_limit` they come from, in bytes; None: outside of a query.
    """

    piece: int = _PIECE
    answer: int = _MOST
    most: int = _MOST
    limit: int | None = None

    @classmethod
    def for_query(cls, limit: int, threads: int) -> StringLimits:
        """For each of a query's threads; two more answers are waiting or on their way.

        What takes an answer of many rows copies it, into groups for example: these are smaller.
        """
        most = min(max(limit // (threads + 2), _LEAST), _MOST)
        piece = min(max(most // _COPIES, _LEAST_PIECE), _PIECE)
        return cls(piece, piece, most, limit)


class _ThreadLimits(threading.local):
    bounds: StringLimits = StringLimits()


_current = _ThreadLimits()


def current_string_limits() -> StringLimits:
    """Those of this thread."""
    return _current.bounds


def set_string_limits(bounds: StringLimits) -> None:
    """For a thread that works for one query only."""
    _current.bounds = bounds


@contextmanager
def use_string_limits(bounds: StringLimits) -> Iterator[None]:
    """Those of this thread until the end."""
    before = _current.bounds
    _current.bounds = bounds
    try:
        yield
    finally:
        _current.bounds = before


def require_room(what: str, size: int, rows: int) -> None:
    """Ask before `size` bytes of strings are made for `rows` rows.

    Raises:
        LargeStringError: it is more than a piece, or for one row more than fits.
    """
    bounds = _current.bounds
    if size <= (bounds.piece if rows > 1 else bounds.most):
        return
    made = f"{what} would make {size:,} bytes"
    if rows > 1:
        raise LargeStringError(f"{made} for {rows:,} rows at once")
    if bounds.limit is None or bounds.most == _MOST:
        raise LargeStringError(f"{made}, and a text has at most {_MOST:,}")
    raise LargeStringError(
        f"{made}, and the part of memory_limit ({bounds.limit:,}) for the strings of one thread is "
        f"{bounds.most:,}. Raise it with SET memory_limit = '...'"
    )
