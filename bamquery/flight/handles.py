"""What the server keeps for clients between two calls, under names that nobody can guess."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Kept = TypeVar("Kept")

_BYTES: Final = 24


@dataclass(slots=True)
class _Entry(Generic[Kept]):
    value: Kept
    ends: float


class Handles(Generic[Kept]):
    """Values by random bytes, for as long as they are used now and then. Thread-safe."""

    def __init__(self, what: str, seconds: float, most: int, *, evicts: bool = False) -> None:
        """Nothing is kept at first.

        Args:
            what: is kept, for messages.
            seconds: a value is kept after its latest use.
            most: values at a time.
            evicts: whether a new value takes the place of the one that was not used for longest.
        """
        self._evicts = evicts
        self._what, self._seconds, self._most = what, seconds, most
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry[Kept]] = OrderedDict()

    def add(self, value: Kept) -> bytes:
        """Keep a value; returns its name.

        Raises:
            OverflowError: there are as many as there may be.
        """
        with self._lock:
            self._expire()
            if len(self._entries) >= self._most and self._evicts:
                self._entries.popitem(last=False)
            elif len(self._entries) >= self._most:
                raise OverflowError(
                    f"this server keeps {self._most:,} of a {self._what} and has as many: close some, or "
                    f"wait {self._seconds:g} seconds"
                )
            handle = secrets.token_bytes(_BYTES)
            self._entries[handle] = _Entry(value, time.monotonic() + self._seconds)
            return handle

    def get(self, handle: bytes) -> Kept:
        """The value of a name, which is used by this.

        Raises:
            KeyError: there is none, or no more.
        """
        with self._lock:
            self._expire()
            entry = self._entries.get(handle)
            if entry is None:
                raise KeyError(
                    f"there is no such {self._what}, or no longer: it is kept {self._seconds:g} seconds "
                    f"after its latest use, and {self._most:,} of them"
                )
            entry.ends = time.monotonic() + self._seconds
            self._entries.move_to_end(handle)
            return entry.value

    def remove(self, handle: bytes) -> Kept | None:
        """Forget a value; None where it is not there."""
        with self._lock:
            entry = self._entries.pop(handle, None)
            return None if entry is None else entry.value

    def _expire(self) -> None:
        now = time.monotonic()
        while self._entries and next(iter(self._entries.values())).ends < now:
            self._entries.popitem(last=False)
