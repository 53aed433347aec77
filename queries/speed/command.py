"""`bamquery bench sql`."""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bamquery.errors import StorageError
from bamquery.queries import arguments
from bamquery.queries.speed.suites import SUITES, SpeedQuery, chosen_queries

_OK: Final = 0
_WRONG: Final = 1


def main(argv: Sequence[str]) -> int:
    """Run it; 1 if an answer is wrong or a query is refused."""
    options = _parser().parse_args(list(argv))
    queries = chosen_queries(options.suites, options.queries)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        return _run(options, options.folder, shlex.join(["bamquery", "bench", "sql", *argv]), queries)
    with tempfile.TemporaryDirectory(prefix="bamquery-bench-") as folder:
        return _run(options, Path(folder), shlex.join(["bamquery", "bench", "sql", *argv]), queries)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery bench sql",
        description="Ask TPC-H-like and taxi queries of BamQuery and of DuckDB, each over tables of its own, "
        "on the same number of threads; compare every answer and the fastest times. Exit status 1 if an "
        "answer is wrong or a query is refused.",
    )
    parser.add_argument("--folder", type=Path, help="where the tables are kept for later runs (nowhere)")
    parser.add_argument("--suites", type=arguments.names, default=SUITES, help=f"of {','.join(SUITES)} (all)")
    parser.add_argument(
        "--queries", type=arguments.names, default=(), help="names or their beginnings, such as tpch/03 (all)"
    )
    parser.add_argument("--scale", type=_scale, default=1.0, help="TPC-H's scale factor (1: a gigabyte)")
    parser.add_argument("--rows", type=arguments.count, default=10_000_000, help="trips (10M)")
    parser.add_argument("--repeat", type=arguments.positive, default=3, help="timed runs a query (3)")
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu or cuda:N: where BamQuery runs (auto); DuckDB has all threads",
    )
    parser.add_argument(
        "--encoding", choices=("auto", "plain"), default="auto", help="of BamQuery's columns (auto)"
    )
    parser.add_argument(
        "--gpu-cache",
        choices=("on", "off"),
        default="on",
        help="whether columns may stay in a GPU's memory (on), or every run reads them from files (off)",
    )
    parser.add_argument("--threads", type=arguments.positive, default=arguments.cores(), help="(all cores)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all measurements")
    return parser


def _scale(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number <= 1000.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a scale factor such as 0.1, 1 or 10")
    return number


def _run(options: argparse.Namespace, folder: Path, command: str, queries: Sequence[SpeedQuery]) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.engine.device_factory import open_device  # noqa: PLC0415
    from bamquery.queries.measuring.machine import device_line  # noqa: PLC0415
    from bamquery.queries.speed.data import tpch_data, trips_data  # noqa: PLC0415
    from bamquery.queries.speed.measure import Timing, measure  # noqa: PLC0415
    from bamquery.queries.speed.report import complaints, json_of, line_of, table_of  # noqa: PLC0415

    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, style="dim", soft_wrap=True, markup=False)

    def heard(timing: Timing) -> None:
        tell(line_of(timing))

    device, _ = open_device(options.device)
    tell(f"device {device_line(device.name)}")
    how: Any = {
        "device": device.name,
        "threads": options.threads,
        "repeat": options.repeat,
        "gpu_cache": options.gpu_cache == "on",
    }
    of_tpch = [query for query in queries if query.suite == "tpch"]
    of_trips = [query for query in queries if query.suite != "tpch"]
    timings = []
    if of_tpch:
        data = tpch_data(folder, options.scale, options.encoding, tell)
        timings += measure(data, of_tpch, heard, **how)
    if of_trips:
        data = trips_data(folder, options.rows, options.encoding, tell)
        timings += measure(data, of_trips, heard, **how)
    console.print(table_of(timings))
    if options.json is not None:
        text = (
            json.dumps(json_of(timings, folder, command, {**how, "encoding": options.encoding}), indent=2)
            + "\n"
        )
        try:
            options.json.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write the measurements: {error.strerror}", options.json) from error
    return _WRONG if complaints(timings) else _OK
