"""Ask for one mean over ever more rows, with every strategy, and check each answer against others' code."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import Connection, connect
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.queries.measuring.kernels import finish_compiling
from bamquery.queries.questions import AMOUNTS, COLUMNS
from bamquery.queries.runner import agree, require_columns
from bamquery.queries.selectivity.reference import Reference, reference
from bamquery.queries.selectivity.thresholds import thresholds
from bamquery.queries.trips.export import export, export_path
from bamquery.storage.database.database import Database
from bamquery.storage.ingest import Progress

STRATEGIES: Final = ("stream", "vectors", "blocks", "auto")
SHARES: Final = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
CONDITIONS: Final = ("column", "expression", "join")
"""What the same trips are found by: zone maps know the column only, and a join's keys once read."""
_AMOUNT: Final = " - ".join(AMOUNTS)
"""What Q5 divides by the distance; not divided here, as some distances are zero."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        database: the folder.
        tables: of the same rows, in several orders.
        shares: of rows that match, 0 to 1.
        strategies: of STRATEGIES.
        conditions: of CONDITIONS.
        repeat: timed answers each.
        settings: for `bamquery.connect`.
    """

    database: Path
    tables: Sequence[str]
    shares: Sequence[float] = SHARES
    strategies: Sequence[str] = STRATEGIES
    conditions: Sequence[str] = CONDITIONS[:1]
    repeat: int = 3
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """One strategy at one share."""

    strategy: str
    seconds: tuple[float, ...]
    bytes_needed: int
    bytes_read: int
    right: bool
    ran: str
    """How the columns behind the filter were read, mostly; empty where no row matched."""

    @property
    def median(self) -> float:
        """Seconds to expect."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Point:
    """One share of one table: rows with at least `threshold` miles."""

    wanted: float
    threshold: float
    matching: int
    timings: tuple[Timing, ...]

    @property
    def regret(self) -> float | None:
        """Median of `auto` over that of the fastest fixed strategy; None where either was not asked."""
        fixed = [timing.median for timing in self.timings if timing.strategy != "auto"]
        auto = [timing.median for timing in self.timings if timing.strategy == "auto"]
        return auto[0] / min(fixed) if auto and fixed else None

    @property
    def chosen_strategy(self) -> str:
        """What `auto` did; empty if it was not asked."""
        return next((timing.ran for timing in self.timings if timing.strategy == "auto"), "")


@dataclass(frozen=True)
class Curve:
    """All shares of one table, by one kind of condition."""

    table: str
    condition: str
    rows: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Result:
    """All tables; `device` and `notes` are those of the last query's profile."""

    plan: Plan
    reference: str
    device: str
    notes: tuple[str, ...]
    curves: tuple[Curve, ...]

    @property
    def right(self) -> bool:
        """Whether every answer is."""
        return all(timing.right for curve in self.curves for p in curve.points for timing in p.timings)


def measure(plan: Plan, progress: Progress | None = None) -> Result:
    """Measure a plan, table by table.

    Raises:
        CatalogError: there is no such table.
        BamQueryError: a table lacks a column, or a query failed.
    """
    progress = progress or Progress()
    curves = []
    settings: Any = {"gpu_cache_limit": 0, **plan.settings}  # reads are what is measured
    with connect(plan.database, **settings) as connection:
        for name in plan.tables:
            with Database.open(plan.database, create=False) as database:
                table = database.table(name)
                with table.snapshot() as snapshot:
                    require_columns(name, snapshot.schema.names)
                    limits = thresholds(snapshot, plan.shares)
                    parquet = export_path(plan.database, table.name)
                    export(snapshot, COLUMNS, parquet, progress)
                    rows = snapshot.rows
            for condition in plan.conditions:
                asked = _Table(connection, name, condition, reference(parquet))
                points = []
                with progress.show(f"Measuring {name} by {condition}", len(limits)) as tell:
                    for number, (share, limit) in enumerate(zip(plan.shares, limits, strict=True), 1):
                        points.append(_point(asked, plan, share, limit))
                        tell(number, 0)
                curves.append(Curve(name, condition, rows, tuple(points)))
        profile = _ask(asked, 0.0)[1]
    return Result(plan, asked.reference.name, profile.device, tuple(profile.notes), tuple(curves))


@dataclass(frozen=True)
class _Table:
    connection: Connection
    name: str
    condition: str
    reference: Reference


def _point(table: _Table, plan: Plan, share: float, limit: float) -> Point:
    """In turns, so that a machine which becomes slower or faster meanwhile does so for all strategies."""
    mean, matching = table.reference.mean(AMOUNTS, limit)
    seconds: dict[str, list[float]] = {strategy: [] for strategy in plan.strategies}
    last: dict[str, tuple[tuple[Any, int], QueryProfile]] = {}
    for turn in range(1 + plan.repeat):
        for strategy in plan.strategies:
            table.connection.set("strategy", strategy)
            start = time.perf_counter()
            last[strategy] = _ask(table, limit)
            if turn:
                seconds[strategy].append(time.perf_counter() - start)
            else:
                finish_compiling(lambda: _ask(table, limit))
    timings = []
    for strategy, ((found, count), profile) in last.items():
        right = count == matching and agree(found, mean)
        read = profile.io.bytes_needed, profile.io.bytes_read
        timings.append(Timing(strategy, tuple(seconds[strategy]), *read, right, strategy_of(profile)))
    return Point(share, limit, matching, tuple(timings))


def query(table: str, at_least: str, condition: str = "column") -> str:
    """The SQL, of a quoted table and a number: trips of so many miles, found in one of CONDITIONS' ways."""
    match condition:
        case "expression":  # twice a distance is exact
            passes = f"trip_distance * 2e0 >= {at_least} * 2e0"
        case "join":
            keys = f"SELECT trip_distance FROM {table} WHERE trip_distance >= {at_least}"  # noqa: S608
            passes = f"trip_distance IN ({keys})"
        case _:
            passes = f"trip_distance >= {at_least}"
    return f"SELECT avg({_AMOUNT}), count(*) FROM {table} WHERE {passes}"  # noqa: S608


def _ask(table: _Table, limit: float) -> tuple[tuple[Any, int], QueryProfile]:
    name = '"' + table.name.replace('"', '""') + '"'
    relation = table.connection.sql(query(name, repr(limit), table.condition))
    mean, count = (column[0].as_py() for column in relation.to_arrow().columns)
    return (mean, count), relation.profile


def strategy_of(profile: QueryProfile) -> str:
    """How most reads of the columns behind the filter were made: stream, vectors or blocks."""
    reads: Counter[str] = Counter()
    for scan in profile.scans:
        for name, column in scan.columns.items():
            if name != "trip_distance":
                reads["stream"] += column.streamed
                reads["vectors"] += column.fetched_vectors
                reads["blocks"] += column.fetched_blocks
    (name, count), *_ = reads.most_common(1) or [("", 0)]
    return name if count else ""
