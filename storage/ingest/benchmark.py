"""`bamquery bench ingest`: loading Parquet into a table, against pyarrow copying it to an Arrow file.

Both read the same file and write to the same folder, in turns; both count until their bytes are on stable
storage. The copy is what loading would cost without statistics, checksums, alignment and a commit.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bamquery.storage.database.database import Database
from bamquery.storage.ingest.ingest import ingest
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.source import BATCH_ROWS

_ROW_GROUP_ROWS: Final = 1 << 20  # as in TLC's own files
_AMOUNTS: Final = (
    "fare_amount",
    "extra",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "total_amount",
    "congestion_surcharge",
    "airport_fee",
)


@dataclass(frozen=True)
class Result:
    """What `compare` measured."""

    rows: int
    parquet_bytes: int
    plain_bytes: int
    """Size of pyarrow's copy."""
    copy_seconds: list[float]
    ingest_seconds: list[float]

    @property
    def ratio(self) -> float:
        """Throughput of loading as a share of the copy's, by medians."""
        return statistics.median(self.copy_seconds) / statistics.median(self.ingest_seconds)


def write_trips(path: Path, rows: int, seed: int = 0) -> None:
    """A Parquet file of 19 columns that resembles a yellow taxi month, made in bounded memory."""
    generator = np.random.default_rng(seed)
    with pq.ParquetWriter(path, _trips(generator, 0, 0).schema, compression="snappy") as writer:
        for first in range(0, rows, _ROW_GROUP_ROWS):
            writer.write_batch(_trips(generator, first, min(_ROW_GROUP_ROWS, rows - first)))


def compare(parquet: Path, folder: Path, repeat: int) -> Result:
    """Copy and load `parquet` in turns, `repeat` times each, below `folder`."""
    copies, loads = [], []
    plain_bytes = 0
    for _ in range(repeat):
        target = folder / "copy.arrow"
        copies.append(_time_run(lambda: _copy(parquet, target)))  # noqa: B023 (called at once)
        plain_bytes = target.stat().st_size
        target.unlink()
        database = folder / "database"
        loads.append(_time_run(lambda: _load(parquet, database)))  # noqa: B023 (called at once)
        shutil.rmtree(database)
    metadata = pq.read_metadata(parquet)
    return Result(metadata.num_rows, parquet.stat().st_size, plain_bytes, copies, loads)


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bamquery bench ingest", description=__doc__.split("\n\n")[0])
    parser.add_argument("--file", type=Path, help="the Parquet file to load (default: one is made)")
    parser.add_argument("--rows", type=float, default=10e6, help="rows of the file that is made")
    parser.add_argument("--folder", type=Path, help="where to write; its disk is what is measured")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each")
    parser.add_argument("--json", type=Path, help="also write the result there")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bamquery-bench-", dir=arguments.folder) as name:
        folder = Path(name)
        parquet = arguments.file
        if parquet is None:
            parquet = folder / "trips.parquet"
            write_trips(parquet, int(arguments.rows))
        result = compare(parquet, folder, arguments.repeat)
    sys.stdout.write(_table(result))
    if arguments.json:
        report = {"machine": _machine(), **asdict(result), "ratio": result.ratio}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _trips(generator: np.random.Generator, first: int, rows: int) -> pa.RecordBatch:
    # A few seconds between pickups, as they come in one after another.
    pickup = 1_672_531_200 + (first + np.arange(rows)) // 2 + generator.integers(0, 3600, rows)
    dropoff = pickup + generator.integers(60, 3600, rows)
    # The last rows of a month's file have no passenger count and what goes with it.
    unknown = np.arange(first, first + rows) % _ROW_GROUP_ROWS > 0.95 * _ROW_GROUP_ROWS
    cents = {name: generator.gamma(2.0, 700.0, rows).astype(np.int64) / 100 for name in _AMOUNTS}
    columns: dict[str, Any] = {
        "VendorID": generator.integers(1, 3, rows),
        "tpep_pickup_datetime": pa.array(pickup * 1_000_000, pa.timestamp("us")),
        "tpep_dropoff_datetime": pa.array(dropoff * 1_000_000, pa.timestamp("us")),
        "passenger_count": pa.array(generator.integers(1, 7, rows).astype(np.float64), mask=unknown),
        "trip_distance": generator.gamma(1.5, 200.0, rows).astype(np.int64) / 100,
        "RatecodeID": pa.array(generator.integers(1, 6, rows).astype(np.float64), mask=unknown),
        "store_and_fwd_flag": pa.array(np.array(["N", "Y"])[generator.integers(0, 2, rows)], mask=unknown),
        "PULocationID": generator.integers(1, 266, rows),
        "DOLocationID": generator.integers(1, 266, rows),
        "payment_type": generator.integers(1, 5, rows),
        **cents,
    }
    return pa.RecordBatch.from_pydict(columns)


def _copy(parquet: Path, target: Path) -> None:
    with pq.ParquetFile(parquet) as file, pa.OSFile(str(target), "wb") as sink:
        with pa.ipc.new_file(sink, file.schema_arrow) as writer:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                writer.write_batch(batch)
        sink.flush()
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load(parquet: Path, folder: Path) -> None:
    source = open_source(parquet)
    with Database.open(folder) as database, database.create_table("trips", source.schema) as writer:
        ingest(writer, source)
        writer.commit()


def _time_run(work: Callable[[], None]) -> float:
    os.sync()  # what the run before left to be written is not this one's
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _table(result: Result) -> str:
    lines = [
        f"{result.rows:,} rows, {result.parquet_bytes / 1e6:,.0f} MB of Parquet, "
        f"{result.plain_bytes / 1e6:,.0f} MB plain; {_machine()['cpu']}, {os.cpu_count()} cores",
        f"{'':28}{'median s':>10}{'rows/s':>14}{'plain MB/s':>12}",
    ]
    for name, seconds in (
        ("pyarrow copy to Arrow IPC", result.copy_seconds),
        ("BamQuery ingest", result.ingest_seconds),
    ):
        median = statistics.median(seconds)
        speed, rate = result.rows / median, result.plain_bytes / median / 1e6
        lines.append(f"{name:28}{median:10.2f}{speed:14,.0f}{rate:12,.0f}")
    lines.append(f"ratio {result.ratio:.2f}")
    return "\n".join(lines) + "\n"


def _machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    except OSError:
        pass  # not Linux's /proc: the architecture will do
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }
