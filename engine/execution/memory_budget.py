"""Accounting for what operators hold between frames, against `memory_limit`."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery import _native as native
from bamquery.closeable import Closeable
from bamquery.errors import MemoryLimitError

_IN_FLIGHT: Final = 512 << 20
"""For each thread: a full chunk of a scan and what becomes of it, as groups and their table."""
_STRAINED: Final = 2
"""Part of the limit by which a process has grown before freed memory is given back."""
_STEP: Final = 32
"""Part of it by which it grows before that is done again."""
_PAUSE: Final = 0.04
"""Seconds between two looks at the process: in less it grows by little, and each look holds threads up."""
_LEAST_GROWTH: Final = 64 << 20
"""Less is not worth looking for."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_trim: Any = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
_mallopt: Any = getattr(ctypes.CDLL(None), "mallopt", None)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's names for what it keeps of freed memory, and for pieces that it never keeps."""
_KEPT, _NEVER_KEPT = 64 << 20, 32 << 20
_SET_BY_USER: Final = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


@dataclass(eq=False)
class Announcement:
    """Reservations that a plan will ask for, or a piece of it.

    Attributes:
        left: those that have not begun.
        repeated: each of them will be asked for again once it has ended.
    """

    left: int
    repeated: bool = False


class MemoryBudget:
    """Bytes that one query's operators may hold together; thread-safe.

    What is free is for whoever asks first, but for a share that each reservation of those that were
    announced can count on: half of an equal share of the limit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._peak = 0
        self._source = Announcement(0)
        self._announced = [self._source]
        self._in_flight = 0
        self._certain = 0
        self._share = 1.0
        self._strained = False
        self._looked = 0.0
        self._first = self._least = anonymous_bytes()
        self._open: dict[Reservation, int] = {}
        self._sure: dict[Reservation, Announcement] = {}
        self._lock = threading.Lock()

    def announce(self, reservations: int, threads: int) -> None:
        """That many reservations will be asked for; before any is.

        `threads` work on frames meanwhile, which nobody reserves: room for these is kept.
        """
        self._source = Announcement(reservations)
        self._announced = [self._source]
        wanted = (threads + 1) * _IN_FLIGHT
        self._in_flight = min(self.limit // 3, wanted)
        self._share = self._in_flight / wanted
        self._certain = (self.limit - self._in_flight) // (2 * reservations) if reservations else 0

    @contextmanager
    def repeat_announced(self, reservations: int) -> Generator[Announcement, None, None]:
        """That many of those announced are for steps of the plan that are run again and again meanwhile."""
        source = self._source
        with self._lock:
            count = min(reservations, source.left)
            source.left -= count
            announcement = Announcement(count, repeated=True)
            self._announced.append(announcement)
        try:
            yield announcement
        finally:
            with self._lock:
                self._announced.remove(announcement)
                if source.repeated:
                    source.left += count

    @contextmanager
    def attribute_to(self, announcement: Announcement | None) -> Generator[None, None, None]:
        """Reservations that begin meanwhile are that announcement's; None: whose they would be anyway."""
        before = self._source
        self._source = before if announcement is None else announcement
        try:
            yield
        finally:
            self._source = before

    @property
    def share(self) -> float:
        """Of a full chunk: what threads may work on at once so that it fits the room that is kept for it."""
        return self._share

    def relieve(self) -> None:
        """Give freed memory back where the process has become large since the query began.

        Allocators keep what was freed, for as long as nobody else asks for just such pieces.
        """
        now = time.monotonic()
        if now < self._looked + _PAUSE:
            return
        self._looked = now
        size = anonymous_bytes()
        self._least = min(self._least, size)
        self._strained = size - self._first > max(self.limit // _STRAINED, _LEAST_GROWTH)
        if self._strained and size - self._least > max(self.limit, _LEAST_GROWTH) // _STEP:
            release_unused_memory()
            self._least = anonymous_bytes()

    def relieve_thread(self) -> None:
        """The same for what Arrow keeps of what this thread freed, which other threads do not see."""
        if self._strained:
            pa.default_memory_pool().release_unused()

    @property
    def used(self) -> int:
        """Bytes reserved now."""
        return self._used

    @property
    def peak(self) -> int:
        """Most bytes reserved at once so far."""
        return self._peak

    def reservation(self, what: str, *, spare: bool = False) -> Reservation:
        """An operator's share, empty at first; `what` names it in errors, such as "GROUP BY".

        `spare`: it was not announced, as the operator can do without.
        """
        return Reservation(self, what, spare=spare)

    def _begin(self, one: Reservation, *, spare: bool) -> None:
        with self._lock:
            self._open[one] = 0
            if self._source.left and not spare:
                self._source.left -= 1
                self._sure[one] = self._source

    def _end(self, one: Reservation) -> None:
        with self._lock:
            self._used -= self._open.pop(one, 0)
            announced = self._sure.pop(one, None)
            if announced is not None and announced.repeated:
                announced.left += 1

    def _room(self, one: Reservation) -> int:
        """Bytes that are not others', or kept for them."""
        kept = sum(max(held, self._share_of(other)) for other, held in self._open.items() if other is not one)
        return self.limit - self._in_flight - kept - self._announced_bytes()

    def _least_room(self, held: int) -> int:
        """At least so much is `_room` of one that holds `held`: as if no other had begun on its share."""
        return (
            self.limit
            - self._in_flight
            - (self._used - held)
            - self._certain * (len(self._sure) + sum([announcement.left for announcement in self._announced]))
        )

    def _announced_bytes(self) -> int:
        """Bytes that those can count on which have not begun."""
        return self._certain * sum(announcement.left for announcement in self._announced)

    def _share_of(self, one: Reservation) -> int:
        """Bytes that it can count on; none if it was not announced."""
        return self._certain if one in self._sure else 0

    def _change(self, one: Reservation, wanted: int) -> None:
        with self._lock:
            held = self._open.get(one, 0)
            total = self._used - held + wanted
            if wanted > held and wanted > self._least_room(held) and wanted > self._room(one):
                raise _refusal(one.what, wanted, total + self._kept_bytes(one), self.limit)
            self._open[one] = wanted
            self._used = total
            self._peak = max(self._peak, total)

    def _kept_bytes(self, one: Reservation) -> int:
        """Bytes that nobody holds but others can count on, or that frames take."""
        unused = sum(
            max(self._share_of(other) - held, 0) for other, held in self._open.items() if other is not one
        )
        return unused + self._in_flight + self._announced_bytes()


class Division:
    """One reservation's bytes for several steps of its operator; each can count on half of its share.

    The reservation must not be resized meanwhile. Not thread-safe: steps ask on the operator's thread.
    """

    def __init__(self, whole: Reservation, shares: int) -> None:
        """`shares`: that all steps together will have."""
        self._whole = whole
        self._shares = self._unopened = shares
        self._open: dict[Reservation, int] = {}
        self._sure: dict[Reservation, int] = {}  # shares
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """Bytes that the whole query may hold."""
        return self._whole.limit

    def reservation(self, shares: int = 1) -> Reservation:
        """A step's share, empty at first, which errors call what they call the whole."""
        self._unopened -= shares
        assert self._unopened >= 0
        one = Reservation(self, self._whole.what)
        self._sure[one] = shares
        return one

    def _begin(self, one: Reservation, *, spare: bool) -> None:
        self._open[one] = 0

    def _end(self, one: Reservation) -> None:
        self._change(one, 0)
        del self._open[one]
        self._unopened += self._sure.pop(one)

    def _room(self, one: Reservation) -> int:
        others = [other for other in self._open if other is not one]
        kept = sum(max(self._open[other], self._share_of(other)) for other in others)
        return self._whole.room - kept - self._unopened * self._whole.room // (2 * self._shares)

    def _share_of(self, one: Reservation) -> int:
        return self._sure[one] * self._whole.room // (2 * self._shares)

    def _change(self, one: Reservation, wanted: int) -> None:
        held, room = self._open[one], self._room(one)
        if wanted > held and wanted > room:
            raise _refusal(one.what, wanted, self.limit - room + wanted, self.limit)
        self._whole.resize(self._whole.held - held + wanted)
        self._open[one] = wanted


class Reservation(Closeable):
    """One operator's share of a budget: a context manager that gives back what it holds."""

    def __init__(self, budget: MemoryBudget | Division, what: str, *, spare: bool = False) -> None:
        self._budget = budget
        self.what = what
        self.held = 0
        """Bytes reserved now."""
        self.peak = 0
        budget._begin(self, spare=spare)

    @property
    def limit(self) -> int:
        """Bytes that the whole query may hold."""
        return self._budget.limit

    @property
    def room(self) -> int:
        """Bytes that it can hold now, those that it holds included."""
        with self._budget._lock:
            return self._budget._room(self)

    @property
    def certain(self) -> int:
        """Bytes that it can hold in any case, whatever others hold."""
        with self._budget._lock:
            return self._budget._share_of(self)

    def resize(self, size: int) -> None:
        """Hold `size` bytes from now on.

        Raises:
            MemoryLimitError: that is more than the budget has left; what was held stays held.
        """
        self._budget._change(self, size)
        self.held = size
        self.peak = max(self.peak, size)

    def fits(self, size: int) -> bool:
        """Hold `size` bytes from now on if the budget has them; otherwise what was held stays held."""
        try:
            self.resize(size)
        except MemoryLimitError:
            return False
        return True

    def close(self) -> None:
        """Give back what it holds; nothing more can be asked of it."""
        self._budget._end(self)
        self.held = 0


def anonymous_bytes() -> int:
    """Memory of this process that is not of files."""
    file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        resident, shared = os.read(file, 256).split()[1:3]
    finally:
        os.close(file)
    return (int(resident) - int(shared)) * _PAGE


def release_unused_memory() -> None:
    """Give what allocators keep of freed memory back to the system: it would come on top of the limit."""
    pa.default_memory_pool().release_unused()
    native.release_large_memory(0)
    if _trim is not None:
        _trim(0)


@functools.cache
def keep_freed_memory() -> None:
    """Let the allocator keep some of what is freed: numpy's arrays of a chunk come and go with every step.

    Otherwise each of them is given to the system and asked for again, and to touch new pages takes several
    times as long as to compute what is put there. Users who set this themselves keep what they set.
    """
    if _mallopt is not None and not any(name in os.environ for name in _SET_BY_USER):
        _mallopt(_TRIM_THRESHOLD, _KEPT)
        _mallopt(_MMAP_THRESHOLD, _NEVER_KEPT)


def _refusal(what: str, wanted: int, total: int, limit: int) -> MemoryLimitError:
    return MemoryLimitError(
        f"{what} needs {_readable(wanted)} in memory; with what else the query holds that makes "
        f"{_readable(total)}, and memory_limit is {_readable(limit)}. "
        "Raise it with SET memory_limit = '...', or make the query hold less"
    )


def _readable(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
