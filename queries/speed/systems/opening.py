"""Systems opened over tables that are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bamquery.queries.speed.data import Data
from bamquery.queries.speed.floors import Rates
from bamquery.queries.speed.suites import SpeedQuery
from bamquery.queries.speed.systems.bamquery_folder import BamQueryFolder
from bamquery.queries.speed.systems.clickhouse_folder import ClickHouseFolder
from bamquery.queries.speed.systems.duckdb_file import DuckDbFile
from bamquery.queries.speed.systems.frames import Tables
from bamquery.queries.speed.systems.names import ALONE, HOST, RESIDENT, USUAL_PLACES, Place
from bamquery.queries.speed.systems.polars_tables import PolarsTables
from bamquery.queries.speed.systems.registry import Peers
from bamquery.queries.speed.systems.system import System


@dataclass(frozen=True)
class Settings:
    """How systems run.

    Attributes:
        device: BamQuery's: `cpu` or `cuda:N`, which is cudf-polars', too.
        threads: of the processor, for all.
        gpu_cache: `on`, `off` or `both`: whether columns may stay in the GPU's memory.
        gpu_cache_limit: how much may; None: BamQuery's own default.
        polars_data: where polars has its tables.
    """

    device: str
    threads: int
    gpu_cache: str = "on"
    gpu_cache_limit: str | None = None
    polars_data: Sequence[Place] = USUAL_PLACES


@dataclass
class Opened:
    """Systems by who they are."""

    own: list[System] = field(default_factory=list)
    peers: list[System] = field(default_factory=list)

    @property
    def all(self) -> list[System]:
        """In the order in which they are asked."""
        return [*self.own, *self.peers]


@contextmanager
def open_systems(
    data: Data, queries: Sequence[SpeedQuery], peers: Peers, settings: Settings, rates: Rates
) -> Iterator[Opened]:
    """BamQuery, once or twice, and the peers that know these queries; closed at the end."""
    opened = Opened()
    suites = {query.suite for query in queries}
    with ExitStack() as stack:

        def add(systems: list[System], system: System) -> None:
            stack.callback(system.close)
            systems.append(system)

        for name, limit in own_systems(settings):
            how: dict[str, Any] = {
                "device": settings.device,
                "threads": settings.threads,
                "cache_limit": limit,
            }
            add(opened.own, BamQueryFolder(name, data.ours, rates, **how))
        pdsh = peers.pdsh if suites <= {"tpch"} else None
        texts = [query.sql for query in queries]
        if pdsh is not None:
            texts += [pdsh.function(query.name) for query in queries]
        tables = [
            Tables(data.ipc if place == "ipc" else data.parquet, place, texts)
            for place in settings.polars_data
        ]
        for peer in peers.names:
            if peer == "duckdb":
                add(opened.peers, DuckDbFile(data.theirs, settings.threads))
            elif peer == "chdb":
                add(opened.peers, ClickHouseFolder(data.clickhouse, settings.threads))
            else:
                gpu = int(settings.device.removeprefix("cuda:")) if peer == "cudf-polars" else None
                for table in tables:
                    if gpu is None or table.place != "ipc":  # which a GPU does not scan
                        add(opened.peers, PolarsTables(table, pdsh, gpu))
        yield opened


def own_systems(settings: Settings) -> list[tuple[str, str | int | None]]:
    """Names, and how much may stay in the GPU's memory."""
    if not settings.device.startswith("cuda:"):
        return [(ALONE, 0)]
    kept = [(HOST, 0)] if settings.gpu_cache != "on" else []
    return [*kept, *([(RESIDENT, settings.gpu_cache_limit)] if settings.gpu_cache != "off" else [])]
