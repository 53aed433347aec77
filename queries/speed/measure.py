"""Queries timed on one system after the other, and every answer compared."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.speed.comparing import difference
from bamquery.queries.speed.constants.replacements import replace_pieces
from bamquery.queries.speed.constants.substitutions import Constants, draw_constants
from bamquery.queries.speed.floors import Floor
from bamquery.queries.speed.suites import SpeedQuery
from bamquery.queries.speed.systems.system import Asked, RefusedError, System

_DRAWS: Final = 50
"""Of constants, until they are such as were not asked before: Q18 has four."""


@dataclass(frozen=True)
class SystemTiming:
    """What one query took one system.

    Attributes:
        system: its name.
        seconds: one for each repetition; none where it has no answer.
        floors: of each repetition, the least that its reads take; none where nobody knows.
        problem: what is wrong with an answer of its, or why there is none; empty where all is well.
        refused: whether it says by name that it does not do this.
    """

    system: str
    seconds: tuple[float, ...] = ()
    floors: tuple[Floor, ...] = ()
    problem: str = ""
    refused: bool = False

    @property
    def best(self) -> float | None:
        """The fastest."""
        return min(self.seconds, default=None)

    @property
    def floor(self) -> Floor | None:
        """Of the fastest."""
        return self.floors[self.seconds.index(min(self.seconds))] if self.floors else None


@dataclass(frozen=True)
class Timing:
    """What one query took all systems, in the order in which they were asked.

    Attributes:
        query: which.
        systems: the systems' times.
        rows: of the answer that others are compared with; None where nobody has one.
        texts: that were asked, one for each repetition; empty where it is the query's own.
    """

    query: SpeedQuery
    systems: tuple[SystemTiming, ...]
    rows: int | None
    texts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """With its suite."""
        return f"{self.query.suite}/{self.query.name}"

    def timing_of(self, system: str) -> SystemTiming | None:
        """A system's; None where it was not asked."""
        return next((one for one in self.systems if one.system == system), None)

    def factor(self, system: str, other: str) -> float | None:
        """One's fastest over the other's; None where there is nothing to compare."""
        mine, theirs = self.timing_of(system), self.timing_of(other)
        if mine is None or theirs is None or mine.best is None or theirs.best is None:
            return None
        return mine.best / theirs.best


def geometric_mean(factors: Sequence[float]) -> float:
    """Of factors, one at least."""
    return math.exp(statistics.fmean(map(math.log, factors)))


def questions(query: SpeedQuery, repeat: int, scale: float, seed: int | None) -> list[Asked]:
    """What is asked first, untimed, and then in each repetition: with a seed, TPC-H with other constants."""
    same = Asked(query, query.sql, Constants())
    if seed is None or query.suite != "tpch":
        return [same] * (repeat + 1)
    random = Random(f"{seed} {query.name}")  # noqa: S311 (no secret)
    found = [same]
    for _ in range(repeat):
        for _ in range(_DRAWS):
            constants = draw_constants(query.name, random, scale)
            asked = Asked(query, replace_pieces(query.sql, constants.sql), constants)
            if asked.sql not in {one.sql for one in found}:
                break
        found.append(asked)
    return found


def measure(
    systems: Sequence[System],
    reference: Sequence[System],
    asked: Sequence[Sequence[Asked]],
    heard: Callable[[Timing], None],
) -> list[Timing]:
    """Each query of one system after the other; of its questions the first one is not timed.

    A system's runs follow each other: what it has in the processor's caches, and a GPU's clock, is as its own
    queries left it, and not as another system did.

    Every answer is compared with that of the first system of `reference`, some of `systems`, that has one.
    Who has none is not asked this query again.
    """
    for system in systems:
        system.warm([questions_[0] for questions_ in asked])
    timings = []
    for questions_ in asked:
        timing = _time_query(systems, reference, questions_)
        heard(timing)
        timings.append(timing)
    return timings


@dataclass
class _Running:
    """A system while it is asked a query."""

    system: System
    seconds: list[float] = field(default_factory=list)
    floors: list[Floor] = field(default_factory=list)
    problem: str = ""
    refused: bool = False
    failed: bool = False
    answers: list[pa.Table | None] = field(default_factory=list)

    def ask(self, asked: Asked, *, timed: bool) -> None:
        self.answers.append(None)
        if self.failed:
            return
        try:
            run = self.system.prepare(asked)
            started = time.perf_counter()
            self.answers[-1] = run()
            seconds = time.perf_counter() - started
        except BamQueryError as error:
            self.failed, self.refused = True, isinstance(error, RefusedError)
            self.problem = str(error)
            return
        if timed:
            self.seconds.append(seconds)
            floor = self.system.floor()
            self.floors += [] if floor is None else [floor]

    def compare(self, number: int, right: _Running | None) -> None:
        """Its answer to a question with another system's."""
        answer = self.answers[number]
        if answer is None or self.problem or right is self:
            return
        other = None if right is None else right.answers[number]
        if right is None or other is None:
            self.problem = "there is no answer to compare with"
        else:
            how = self.system.comparison.looser(right.system.comparison)
            self.problem = difference(answer, other, how)

    def timing(self) -> SystemTiming:
        times = () if self.failed else tuple(self.seconds)
        return SystemTiming(
            self.system.name, times, tuple(self.floors) if times else (), self.problem, self.refused
        )


def _time_query(
    systems: Sequence[System], reference: Sequence[System], questions_: Sequence[Asked]
) -> Timing:
    running = [_Running(system) for system in systems]
    for one in running:
        for number, asked in enumerate(questions_):
            one.ask(asked, timed=number > 0)
    rows = None
    for number in range(len(questions_)):
        known = [one for one in running if one.system in reference and one.answers[number] is not None]
        right = next(iter(known), None)
        if rows is None and right is not None and (answer := right.answers[number]) is not None:
            rows = answer.num_rows
        for one in running:
            one.compare(number, right)
    query = questions_[0].query
    changed = any(asked.sql != query.sql for asked in questions_)
    texts = tuple(asked.sql for asked in questions_[1:]) if changed else ()
    return Timing(query, tuple(one.timing() for one in running), rows, texts)
