"""A whole run: rows made, systems opened, queries timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bamquery.queries.speed.data import Data, Wanted, tpch_data, trips_data
from bamquery.queries.speed.floors import Rates
from bamquery.queries.speed.measure import Timing, measure, questions
from bamquery.queries.speed.rates import measure_rates
from bamquery.queries.speed.report import LineUp, line_of
from bamquery.queries.speed.suites import SpeedQuery
from bamquery.queries.speed.systems.opening import Opened, Settings, open_systems
from bamquery.queries.speed.systems.registry import Peers
from bamquery.queries.speed.systems.system import System
from bamquery.storage.format.layout import Encoding


@dataclass(frozen=True)
class Rows:
    """What is asked about.

    Attributes:
        folder: where tables are kept.
        encoding: of BamQuery's columns.
        scale: TPC-H's scale factor.
        trips: how many.
    """

    folder: Path
    encoding: Encoding
    scale: float
    trips: int


@dataclass
class Result:
    """What was measured.

    Attributes:
        rates: of the machine.
        timings: of all queries.
        systems: what was asked, JSON-able.
        own, peers: names of BamQuery's, and of the others.
    """

    rates: Rates
    timings: list[Timing] = field(default_factory=list)
    systems: list[dict[str, str]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    peers: list[str] = field(default_factory=list)

    @property
    def line_up(self) -> LineUp:
        """Names of all that were asked something."""
        return LineUp(tuple(self.own), tuple(self.peers))

    def add(self, opened: Opened) -> None:
        """Systems of one of the two sets of tables."""
        for names, systems in ((self.own, opened.own), (self.peers, opened.peers)):
            for system in systems:
                if system.name not in names:
                    names.append(system.name)
                described = {
                    "system": system.name,
                    "version": system.version,
                    "data": system.data,
                    "queries": system.queries,
                }
                if described not in self.systems:
                    self.systems.append(described)


def run_suites(
    queries: Sequence[SpeedQuery],
    rows: Rows,
    peers: Peers,
    settings: Settings,
    *,
    repeat: int,
    seed: int | None,
    tell: Callable[[str], None],
) -> Result:
    """Ask all queries, TPC-H's first; `seed`: of constants that change, None: they do not.

    Raises:
        BamQueryError: tables cannot be made.
    """
    of_tpch = [query for query in queries if query.suite == "tpch"]
    of_trips = [query for query in queries if query.suite != "tpch"]
    rates = measure_rates(settings.device, settings.threads)
    tell(_say_rates(rates))
    result = Result(rates)

    def ask(data: Data, chosen: Sequence[SpeedQuery]) -> None:
        with open_systems(data, chosen, peers, settings, rates) as opened:
            result.add(opened)
            line_up = LineUp(_names(opened.own), _names(opened.peers))

            def heard(timing: Timing) -> None:
                tell(line_of(timing, line_up))

            asked = [questions(query, repeat, rows.scale, seed) for query in chosen]
            result.timings += measure(opened.all, opened.peers, asked, heard)

    wanted = Wanted(
        "duckdb" in peers.names,
        "chdb" in peers.names,
        peers.have_polars and bool({"parquet", "frames"} & set(settings.polars_data)),
        "polars" in peers.names and "ipc" in settings.polars_data,
    )
    if of_tpch:
        ask(tpch_data(rows.folder, rows.scale, rows.encoding, wanted, tell), of_tpch)
    if of_trips:
        narrow = all(query.suite == "taxi" for query in of_trips)
        ask(trips_data(rows.folder, rows.trips, rows.encoding, wanted, tell, narrow=narrow), of_trips)
    return result


def _names(systems: Sequence[System]) -> tuple[str, ...]:
    return tuple(system.name for system in systems)


def _say_rates(rates: Rates) -> str:
    parts = [f"host memory {rates.host / 1e9:.1f} GB/s"]
    if rates.bus is not None and rates.gpu is not None:
        parts += [f"bus {rates.bus / 1e9:.1f} GB/s", f"GPU memory {rates.gpu / 1e9:,.0f} GB/s"]
    return ", ".join(parts)
