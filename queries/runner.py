"""Ask the questions, time the answers, and check every one against a system that shares no code with us."""

from __future__ import annotations

import importlib.util
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bamquery.errors import BamQueryError
from bamquery.queries.measuring.cold import drop_caches, files_below
from bamquery.queries.measuring.footprint import footprint
from bamquery.queries.measuring.kernels import finish_compiling
from bamquery.queries.questions import COLUMNS, NAMES, Question, questions
from bamquery.queries.systems import Answer, BamQuerySystem, Io, System, baseline
from bamquery.queries.trips.export import export, export_path, require_copy
from bamquery.storage.database.database import Database
from bamquery.storage.ingest import Progress

# Sums of the same numbers in another order differ in the last bits.
TOLERANCE = 1e-9


class WrongAnswerError(BamQueryError):
    """A system's answer is not the reference's."""


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        database: the folder.
        table: a table with the columns of the questions.
        names: of the questions.
        against: baselines to compare with.
        parquet: a Parquet file or a folder of them with the table's rows, or None to export some beside the
            database.
        repeat: how often each system answers each question.
        cold: drop caches before each answer and count opening as part of it.
        settings: for `bamquery.connect`.
    """

    database: Path
    table: str = "trips"
    names: Sequence[str] = NAMES
    against: Sequence[str] = ()
    parquet: Path | None = None
    repeat: int = 5
    cold: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """One system and one question.

    Attributes:
        system: as people call it.
        seconds: of each answer that counts.
        answer: the last.
        moved: bytes that an answer moves; None where that is unknown.
        first: seconds of the answer before, which does not count; None with cold caches, where all are first.
    """

    system: str
    seconds: tuple[float, ...]
    answer: Answer
    moved: int | None = None
    first: float | None = None

    @property
    def best(self) -> float:
        """The shortest time: what the machine can do."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The time to expect."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class QuestionResult:
    """One question: BamQuery's timing first, then the baselines'; `expected` is the reference's answer."""

    question: Question
    timings: tuple[Timing, ...]
    expected: float | None
    matching_rows: int

    @property
    def io(self) -> Io | None:
        """BamQuery's bytes."""
        return self.timings[0].answer.io

    def amplification(self, timing: Timing) -> float | None:
        """Bytes that a system moved over the bytes that the question needs; None where either is unknown."""
        if timing.moved is None or self.io is None or not self.io.needed:
            return None
        return timing.moved / self.io.needed

    @property
    def wrong(self) -> tuple[str, ...]:
        """Systems with another answer than the reference's."""
        return tuple(
            timing.system for timing in self.timings if not agree(timing.answer.value, self.expected)
        )


@dataclass(frozen=True)
class RunResult:
    """All questions over one table.

    Attributes:
        plan: what was run.
        rows: of the table.
        version: of the table.
        reference: the system whose answers the others' were compared with.
        questions: one result each.
        dropped: how caches were dropped; empty if they were not.
        wrong_count: what BamQuery counted where the reference counted another number of long trips.
        device: where BamQuery ran: cpu, cuda:0.
        notes: what its profile says of that choice, and of what did not run as asked.
        memory: what BamQuery held after its last answer, see `footprint`; empty with cold caches.
        opening: seconds that each system took to open; with cold caches they are part of every time.
    """

    plan: Plan
    rows: int
    version: int
    reference: str
    questions: tuple[QuestionResult, ...]
    dropped: str
    wrong_count: int | None
    device: str
    notes: tuple[str, ...]
    memory: Mapping[str, int]
    opening: Mapping[str, float]

    @property
    def right(self) -> bool:
        """Whether all answers are."""
        return self.wrong_count is None and not any(result.wrong for result in self.questions)


def agree(value: float | None, expected: float | None) -> bool:
    """Whether two answers are the same but for the order of additions."""
    if value is None or expected is None:
        return value is expected
    if math.isnan(expected) or math.isinf(expected):
        return repr(value) == repr(expected)
    return math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def run(plan: Plan, progress: Progress | None = None) -> RunResult:
    """Run a plan.

    Raises:
        CatalogError: there is no such table, or it lacks a column that the questions need.
        StorageError: the Parquet copy cannot be written, or the one given is something else.
        BamQueryError: a baseline is not there or not installed; a query failed.
    """
    asked = questions(plan.names)
    with Database.open(plan.database, create=False) as database:
        table = database.table(plan.table)
        with table.snapshot() as snapshot:
            require_columns(plan.table, snapshot.schema.names)
            rows, version = snapshot.rows, snapshot.version
            parquet = plan.parquet or export_path(plan.database, table.name)
            if plan.parquet is None:
                export(snapshot, COLUMNS, parquet, progress)
    require_copy(parquet, COLUMNS)
    own = BamQuerySystem(plan.database, plan.table, plan.settings)
    systems: list[System] = [own]
    systems += [baseline(name, parquet) for name in plan.against]
    reference = reference_system(parquet)
    dropped = ""
    timings: list[list[Timing]] = []
    memory: dict[str, int] = {}
    opening: dict[str, float] = {}
    for system in systems:
        if plan.cold:
            cold = [_time_cold(system, question, plan.repeat) for question in asked]
            timings.append([timing for timing, _ in cold])
            dropped = cold[-1][1]
        else:
            start = time.perf_counter()
            with open_system(system):
                opening[system.name] = time.perf_counter() - start
                timings.append([_time_warm(system, question, plan.repeat) for question in asked])
                if system is own:
                    memory = footprint(own.device)
    with open_system(reference):
        matching = reference.count()
        results = tuple(
            QuestionResult(
                question,
                tuple(of_system[place] for of_system in timings),
                reference.ask(question).value,
                matching,
            )
            for place, question in enumerate(asked)
        )
    with open_system(own):
        counted = own.count()
    return RunResult(
        plan,
        rows,
        version,
        reference.name,
        results,
        dropped,
        None if counted == matching else counted,
        own.device,
        own.notes,
        memory,
        opening,
    )


def reference_system(parquet: Path) -> System:
    """DuckDB where it is installed, otherwise pyarrow."""
    return baseline("duckdb" if importlib.util.find_spec("duckdb") else "pyarrow", parquet)


def require_columns(table: str, names: Sequence[str]) -> None:
    """Raise `BamQueryError` if a table lacks what the questions need."""
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise BamQueryError(
            f'table "{table}" cannot answer the questions: it has no column {", ".join(missing)}. '
            "Tables made by `bamquery taxi load` and `bamquery taxi generate` have them."
        )


@contextmanager
def open_system(system: System) -> Iterator[None]:
    """A system, open for a while."""
    system.open()
    try:
        yield
    finally:
        system.close()


def _time_warm(system: System, question: Question, repeat: int) -> Timing:
    """Times of one open system, after an answer that is not counted."""
    start = time.perf_counter()
    system.ask(question)
    first = time.perf_counter() - start
    finish_compiling(lambda: system.ask(question))
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        answer = system.ask(question)
        seconds.append(time.perf_counter() - start)
    return Timing(system.name, tuple(seconds), answer, system.bytes_moved(question), first)


def _time_cold(system: System, question: Question, repeat: int) -> tuple[Timing, str]:
    """Times from opening to answer, caches dropped before each; and how they were dropped."""
    seconds = []
    files = [file for path in system.files for file in files_below(path)]
    for _ in range(repeat):
        dropped = drop_caches(files)
        start = time.perf_counter()
        with open_system(system):
            answer = system.ask(question)
            seconds.append(time.perf_counter() - start)
            moved = system.bytes_moved(question)
    return Timing(system.name, tuple(seconds), answer, moved), dropped
