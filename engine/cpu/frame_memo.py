"""What several functions find out of the same arrays while one frame is worked on, found out once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

Found = TypeVar("Found")


class _Known(threading.local):
    """Of a thread: by key, what was found and the object whose identity or address the key has."""

    found: dict[tuple[Any, ...], tuple[object, object]] | None = None


_known = _Known()


@contextmanager
def memo_scope() -> Iterator[None]:
    """Remember until the end; within another such block until the end of that one."""
    if _known.found is not None:
        yield
        return
    _known.found = {}
    try:
        yield
    finally:
        _known.found = None


def memoize(key: tuple[Any, ...], holder: object, find: Callable[[], Found]) -> Found:
    """What `find()` gave for the key before, within `memo_scope`; outside it is called each time.

    `holder` is kept, so that the identity or address in the key stays its own.
    """
    known = _known.found
    if known is None:
        return find()
    if key not in known:
        known[key] = (holder, find())
    return cast(Found, known[key][1])


def recall(key: tuple[Any, ...]) -> Any:
    """What was found for the key before; None if nothing was."""
    known = _known.found
    return None if known is None or key not in known else known[key][1]
