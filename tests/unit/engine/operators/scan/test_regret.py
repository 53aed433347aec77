"""Whole queries by every strategy: what `auto` reads costs at most 2 % more than the best fixed way.

Reads go past the page cache and are counted; drives are imitated by what commands and bytes take on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery import connect
from bamquery.connection.connection import Connection
from bamquery.storage.read_planner.cost_model import CostModel
from bamquery.storage.read_planner.cost_model import Path as Way
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.planner import VERIFIED_FIRST
from bamquery.storage.read_planner.processor_profile import ASSUMED_PROCESSOR
from tests.selection.effort import spread

ROWS = 300 * 1024
SHARES = (1e-5, 1e-4, 1e-3, 4e-3, 0.02, 0.1, 0.5, 1.0)
COLUMNS = ("wide", "short", "tiny", "flag")
DRIVES = {
    "131 k, 3.5 GB/s": DeviceProfile(3.5e9, 131e3, 8e-5),
    "1 M, 3.5 GB/s": DeviceProfile(3.5e9, 1e6, 8e-5),
    "1 M, 7 GB/s": DeviceProfile(7e9, 1e6, 8e-5),
}
TABLES = [f"{order}{stored}" for stored in ("", "_packed") for order in ("random", "timely", "clustered")]
WHERE = {
    "column": "value >= {0!r}",
    "expression": "value * 2e0 >= {0!r} * 2e0",
    "join": "key IN (SELECT key FROM {1} WHERE value >= {0!r})",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    random = np.random.default_rng(0)
    place = np.arange(ROWS) / ROWS
    noise = random.standard_normal(ROWS)
    hours = random.integers(1, 128, ROWS // 32)
    orders = {
        "random": noise,
        "timely": noise + np.repeat(random.standard_normal(len(hours)), hours)[:ROWS],
        "clustered": noise + np.where(random.random(ROWS) < 0.98, 40 * place, 0.0),
    }
    with connect(tmp_path_factory.mktemp("regret") / "db", device="cpu", threads=1) as found:
        for name, values in orders.items():
            table = pa.table(
                {
                    "value": values,
                    "key": np.arange(ROWS) // 4,
                    "wide": random.random(ROWS),
                    "short": random.integers(0, 99, ROWS).astype(np.int16),
                    "tiny": random.integers(0, 99, ROWS).astype(np.int8),
                    "flag": pa.array(random.random(ROWS) < 0.5),
                }
            )
            for stored, encoding in ((name, "plain"), (f"{name}_packed", "auto")):
                found.set("default_encoding", encoding)
                found.load(stored, table)
                found.sql(f"SELECT count(*) FROM {stored}").fetchall()
        yield found


def taken(connection: Connection, table: str, where: str, strategy: str) -> tuple[int, int, int]:
    """Bytes, commands and reads of the columns behind the filter."""
    connection.set("strategy", strategy)
    sums = ", ".join(f"max({column})" for column in COLUMNS)
    relation = connection.sql(f"SELECT {sums} FROM {table} WHERE {where}")
    relation.fetchall()
    read = [scan.columns[c] for scan in relation.profile.scans for c in COLUMNS if c in scan.columns]
    return (
        sum(column.counters.bytes for column in read),
        sum(column.counters.commands for column in read),
        sum(column.streamed + column.fetched_vectors + column.fetched_blocks for column in read),
    )


def seconds(model: CostModel, read: tuple[int, int, int]) -> float:
    rates = model.paths[Way.BLOCKS]
    return read[2] * rates.latency + max(read[0] / rates.bandwidth, read[1] / rates.commands)


@pytest.mark.long
@pytest.mark.parametrize(("table", "found_by"), spread(product(TABLES, WHERE), 2))
def test_of_whole_queries(
    connection: Connection, table: str, found_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.set("reader", "direct")
    values = np.sort(connection.sql(f"SELECT value FROM {table}").to_arrow()["value"].to_numpy())
    for share in SHARES:
        where = WHERE[found_by].format(float(values[-max(round(share * ROWS), 1)]), table)
        fixed = {way: taken(connection, table, where, way) for way in ("stream", "vectors", "blocks")}
        for name, drive in DRIVES.items():
            monkeypatch.setattr(DeviceProfile, "measure", lambda *_, drive=drive: drive)
            model = drive.model(ASSUMED_PROCESSOR, "direct")
            auto = taken(connection, table, where, "auto")
            costs = {way: seconds(model, read) for way, read in fixed.items()}
            costs["blocks"] /= VERIFIED_FIRST
            # Which chunks know a join's keys depends on threads: those before go by guesses.
            allowed = 1.05 * min(costs.values()) + 3 / drive.iops
            assert seconds(model, auto) <= allowed, (share, name, costs, auto)


def test_all_of_it_is_counted(connection: Connection, tmp_path: Path) -> None:
    connection.set("reader", "direct")
    assert taken(connection, "random", "value > 9", "blocks") == (0, 0, 0)
    whole, commands, reads = taken(connection, "random", "value > -99", "stream")
    assert whole >= ROWS * (8 + 2 + 1 + 1 / 8)
    assert commands >= reads >= 4
