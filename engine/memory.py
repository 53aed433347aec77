"""Accounting for what operators hold between frames, against `memory_limit`."""

from __future__ import annotations

import threading
from types import TracebackType

from bamquery.errors import MemoryLimitError


class MemoryBudget:
    """Bytes that one query's operators may hold together; thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._peak = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Bytes reserved now."""
        return self._used

    @property
    def peak(self) -> int:
        """Most bytes reserved at once so far."""
        return self._peak

    def reservation(self, what: str) -> Reservation:
        """An operator's share, empty at first; `what` names it in errors, such as "GROUP BY"."""
        return Reservation(self, what)

    def _change(self, what: str, held: int, wanted: int) -> None:
        with self._lock:
            total = self._used - held + wanted
            if wanted > held and total > self.limit:
                raise MemoryLimitError(
                    f"{what} needs {_readable(wanted)} in memory; with what else the query holds that makes "
                    f"{_readable(total)}, and memory_limit is {_readable(self.limit)}. "
                    "Raise it with SET memory_limit = '...', or make the query hold less"
                )
            self._used = total
            self._peak = max(self._peak, total)


class Reservation:
    """One operator's part of a budget: a context manager that gives back what it holds."""

    def __init__(self, budget: MemoryBudget, what: str) -> None:
        self._budget = budget
        self._what = what
        self._held = 0
        self.peak = 0

    @property
    def held(self) -> int:
        """Bytes reserved now."""
        return self._held

    def resize(self, size: int) -> None:
        """Hold `size` bytes from now on.

        Raises:
            MemoryLimitError: that is more than the budget has left; what was held stays held.
        """
        self._budget._change(self._what, self._held, size)
        self._held = size
        self.peak = max(self.peak, size)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resize(0)


def _readable(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
