"""How far a query that runs is: what its scans have read of what they have to read."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol

from bamquery.engine.human_units import human_bytes, human_count, human_rate, human_seconds
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile, SeriesProfile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import FileScanProfile, ScanProfile

_MOST: Final = 0.99
"""Of a query that is not over: sorts and the like go on once all rows have been read."""
_TOO_FEW: Final = 0.01
"""Up to here the time left cannot be told: first chunks are small, and files are being opened."""
_BYTES_PER_ROW: Final = 64
"""Guessed of files that do not tell how many rows they have, so as to weigh them against other scans."""

_numbers: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """A query at one moment.

    Attributes:
        query: its number in this process, to tell queries apart that run at the same time.
        seconds: since its first rows were asked for, until its end.
        rows: that its scans have come to, together; those that zone maps ruled out among them.
        total_rows: that there are to scan; None where that is not known before the end.
        fraction: of the scans' work that is done, 0 to 1: at most 0.99 until the query is over, and never
            less than before. None where it cannot be known (files without a size, recursive queries).
        bytes_read: from storage; of files the size that the rows read stand for.
        device: that it runs on.
        finished: whether all rows of the answer have been given out.
    """

    query: int
    seconds: float
    rows: int
    total_rows: int | None
    fraction: float | None
    bytes_read: int
    device: str
    finished: bool = False

    @property
    def all_read(self) -> bool:
        """Whether every row has been read: how long what is left then takes, nobody knows."""
        return self.finished or (self.total_rows is not None and self.rows >= self.total_rows)

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes read a second since the query began; None before that."""
        return self.bytes_read / self.seconds if self.seconds else None

    @property
    def remaining(self) -> float | None:
        """Seconds until all rows have been read, if it goes on as so far; None where nobody can tell."""
        if self.finished:
            return 0.0
        if self.fraction is None or not _TOO_FEW < self.fraction < _MOST or self.all_read:
            return None
        return self.seconds * (1 - self.fraction) / self.fraction

    def __str__(self) -> str:
        """`42 %, 8.4 M of 20 M rows, 1.2 GiB, 3.4 GB/s, cpu, 12 s left`, without what is not known."""
        of = "" if self.total_rows is None else f" of {human_count(self.total_rows)}"
        texts = [
            "" if self.fraction is None else f"{int(self.fraction * 100)} %",
            f"{human_count(self.rows)}{of} rows",
        ]
        if self.bytes_read and self.bytes_per_second is not None:
            texts += [human_bytes(self.bytes_read), human_rate(self.bytes_per_second)]
        texts.append(self.device)
        if not self.finished and self.remaining is not None:
            texts.append(f"{_whole_seconds(self.remaining)} left")
        elif self.all_read and not self.finished:
            texts.append("all rows read, computing")
        return ", ".join(text for text in texts if text)


class Observer(Protocol):
    """Who wants to know when a query begins, gives rows to its caller, and is over."""

    def on_begin(self, query: RunningQuery) -> None:
        """Its first rows are being computed."""
        ...

    def on_return_to_caller(self, query: RunningQuery) -> None:
        """The caller has control again: what is on a screen should go."""
        ...

    def on_end(self, query: RunningQuery) -> None:
        """It is over, well or not."""
        ...


class RunningQuery:
    """A run as seen from outside; knows nothing of who takes the rows. Any thread may ask it.

    A context manager around the run.

    Attributes:
        number: see `QueryProgress.query`.
        description: what it does, for a bar.
        observer: set before it begins; None: nobody watches.
    """

    def __init__(self, operator: Operator[Any], profile: QueryProfile, cancelled: threading.Event) -> None:
        """Of an operator that has not run, and the flag that stops it."""
        self.number: Final = next(_numbers)
        self.description = "Running"
        self.observer: Observer | None = None
        self._profile = profile
        self._cancelled = cancelled
        self._steps_unknown = any(one.repeats for one in operator.walk())
        self._lock = threading.RLock()  # a garbage collection under it may end another query, or this one
        self._began: float | None = None
        self._ended: float | None = None
        self._finished = False
        self._furthest = 0.0
        self._calls = 0
        self._called = 0.0
        self._failure: BaseException | None = None

    # By who runs it.

    def __enter__(self) -> RunningQuery:
        self._began = _clock()
        if self.observer is not None:
            self.observer.on_begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = _clock()
        if self.observer is not None:
            self.observer.on_end(self)

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around what makes a caller wait; calls within calls are one."""
        with self._lock:
            if not self._calls:
                self._called = _clock()
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                left = not self._calls
            if left and self.observer is not None:
                self.observer.on_return_to_caller(self)

    def finish(self) -> None:
        """All rows have been given out."""
        self._finished = True

    def raise_failure(self) -> None:
        """Raise what `fail` was given, if it was, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # By who watches.

    def fail(self, failure: BaseException) -> None:
        """Cancel the query; who takes its rows gets this error."""
        self._failure = failure
        self._cancelled.set()

    @property
    def is_over(self) -> bool:
        """Whether it has come to an end, well or not."""
        return self._ended is not None

    @property
    def called_for(self) -> float | None:
        """Seconds for which its caller has been waiting; None while the caller has control."""
        with self._lock:
            return _clock() - self._called if self._calls else None

    def progress(self) -> QueryProgress:
        """As it is now."""
        positions = [found for one in self._profile.root.walk() if (found := _position(one)) is not None]
        rows = sum(one.rows for one in positions)
        totals = [one.total_rows for one in positions]
        known = not self._steps_unknown and None not in totals
        with self._lock:
            ended, finished = self._ended, self._finished
            fraction = 1.0 if finished else None if self._steps_unknown else _fraction(positions)
            if fraction is not None and not finished:
                fraction = self._furthest = max(self._furthest, min(fraction, _MOST))
        now = _clock() if ended is None else ended
        return QueryProgress(
            query=self.number,
            seconds=0.0 if self._began is None else now - self._began,
            rows=rows,
            total_rows=sum(total for total in totals if total is not None) if known else None,
            fraction=fraction,
            bytes_read=sum(one.bytes_read for one in positions),
            device=self._profile.device,
            finished=finished,
        )


@dataclass(frozen=True, slots=True)
class _Position:
    """Where one scan is."""

    rows: int
    total_rows: int | None
    bytes_read: int
    weight: float
    """What it has to do, about in rows."""
    share: float | None
    """Done of that; None: unknown."""


def _position(profile: OperatorProfile) -> _Position | None:
    """Of an operator that reads something; None of others."""
    match profile:
        case ScanProfile(rows_scanned=rows, rows_total=total):
            with profile.lock:
                size = profile.counters.bytes
            return _Position(rows, total, size, total, _share(rows, total))
        case SeriesProfile(rows_scanned=rows, rows_total=total):
            return _Position(rows, total, 0, total, _share(rows, total))
        case FileScanProfile(rows_scanned=rows, rows_total=total, bytes_scanned=size, bytes_total=whole):
            if total is not None:
                return _Position(rows, total, size, total, _share(rows, total))
            if whole is not None:
                return _Position(rows, None, size, whole / _BYTES_PER_ROW, _share(size, whole))
            return _Position(rows, None, size, 0, None)
        case _:
            return None


def _share(done: int, total: int) -> float:
    return min(done / total, 1.0) if total else 1.0


def _fraction(positions: list[_Position]) -> float | None:
    shares = [one.share for one in positions]
    if not positions or None in shares:
        return None
    weight = sum(one.weight for one in positions)
    if not weight:
        return None
    return sum(one.weight * one.share for one in positions if one.share is not None) / weight


def _whole_seconds(seconds: float) -> str:
    """Whole seconds: an estimate has no fractions of them."""
    return f"{seconds:.0f} s" if seconds < 60 else human_seconds(seconds)


def _clock() -> float:
    return time.perf_counter()
