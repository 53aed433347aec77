"""`bamquery bench sql`: its command line."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bamquery.queries import arguments
from bamquery.queries.measuring.options import write_measurements
from bamquery.queries.plot import pictures, rows_label
from bamquery.queries.speed.suites import SUITES, SpeedQuery, chosen_queries
from bamquery.queries.speed.systems.names import PEERS, PLACES, USUAL_PLACES

_FILE_WIDTH: Final = 220
"""Of tables that go to a file."""
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
        description="Ask TPC-H-like and taxi queries of BamQuery and of others, each over tables of its own; "
        "compare every answer and the fastest times. Exit status 1 if an answer of BamQuery's is wrong or a "
        "query is refused.",
    )
    parser.add_argument("--folder", type=Path, help="where the tables are kept for later runs (nowhere)")
    parser.add_argument("--suites", type=arguments.names, default=SUITES, help=f"of {','.join(SUITES)} (all)")
    parser.add_argument(
        "--queries", type=arguments.names, default=(), help="names or their beginnings, such as tpch/03 (all)"
    )
    parser.add_argument(
        "--against",
        type=arguments.names,
        default=("duckdb",),
        help=f"of {','.join(PEERS)}: whom BamQuery is compared with (duckdb)",
    )
    parser.add_argument(
        "--polars-data",
        type=_places,
        default=USUAL_PLACES,
        help=f"of {','.join(PLACES)}: where polars and cudf-polars have their tables "
        f"({','.join(USUAL_PLACES)})",
    )
    parser.add_argument("--scale", type=_scale, default=1.0, help="TPC-H's scale factor (1: a gigabyte)")
    parser.add_argument("--rows", type=arguments.count, default=10_000_000, help="trips (10M)")
    parser.add_argument("--repeat", type=arguments.positive, default=3, help="timed runs a query (3)")
    parser.add_argument(
        "--constants",
        choices=("same", "change"),
        default="same",
        help="whether TPC-H's queries keep their constants, or each timed run has others (same)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the constants that change (1)")
    parser.add_argument(
        "--device",
        default="auto",
        help="auto, cpu or cuda:N: where BamQuery and cudf-polars run (auto); others have the processor",
    )
    parser.add_argument(
        "--encoding", choices=("auto", "plain"), default="auto", help="of BamQuery's columns (auto)"
    )
    parser.add_argument(
        "--gpu-cache",
        choices=("on", "off", "both"),
        default="on",
        help="whether columns may stay in a GPU's memory (on), every run reads them from files (off), or "
        "both are timed beside each other",
    )
    parser.add_argument(
        "--gpu-cache-limit",
        metavar="SIZE",
        help="how much may stay there, such as 40GB (a third of it)",
    )
    parser.add_argument("--threads", type=arguments.positive, default=arguments.cores(), help="(all cores)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all measurements")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw them: .svg, .png, .pdf")
    return parser


def _places(text: str) -> tuple[str, ...]:
    chosen = arguments.names(text)
    if not chosen or not set(chosen) <= set(PLACES):
        raise argparse.ArgumentTypeError(f"{text!r} is not of {','.join(PLACES)}")
    return chosen


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
    from bamquery.queries.speed.picture import draw  # noqa: PLC0415
    from bamquery.queries.speed.report import complaints, json_of, table_of  # noqa: PLC0415
    from bamquery.queries.speed.run import Rows, run_suites  # noqa: PLC0415
    from bamquery.queries.speed.systems.opening import Settings  # noqa: PLC0415
    from bamquery.queries.speed.systems.registry import require_peers  # noqa: PLC0415

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_FILE_WIDTH)

    def tell(line: str) -> None:
        console.print(line, style="dim", soft_wrap=True, markup=False)

    if options.picture is not None:
        with pictures():  # rather than miss it at the end
            pass
    device, _ = open_device(options.device)
    peers = require_peers(options.against, options.threads, device.name)
    tell(f"device {device_line(device.name)}")
    settings = Settings(
        device.name, options.threads, options.gpu_cache, options.gpu_cache_limit, options.polars_data
    )
    seed = options.seed if options.constants == "change" else None
    rows = Rows(folder, options.encoding, options.scale, options.rows)
    result = run_suites(queries, rows, peers, settings, repeat=options.repeat, seed=seed, tell=tell)
    console.print(table_of(result.timings, result.line_up))
    if options.json is not None:
        how = {
            "command": command,
            "device": device.name,
            "threads": options.threads,
            "repeat": options.repeat,
            "gpu_cache": options.gpu_cache,
            "gpu_cache_limit": options.gpu_cache_limit,
            "encoding": options.encoding,
            "scale": options.scale,
            "constants": options.constants,
            "seed": seed,
            "systems": result.systems,
        }
        found = json_of(result.timings, result.line_up, result.rates, folder, how)
        write_measurements(found, options.json)
    if options.picture is not None:
        draw(result.timings, _title(options, device_line(device.name), queries), options.picture)
    return _WRONG if complaints(result.timings, result.line_up.own) else _OK


def _title(options: argparse.Namespace, device: str, queries: Sequence[SpeedQuery]) -> str:
    suites = {query.suite for query in queries}
    rows = [f"TPC-H, scale factor {options.scale:g}"] if "tpch" in suites else []
    rows += [rows_label(options.rows).replace("rows", "trips")] if suites - {"tpch"} else []
    changed = ", constants change" if options.constants == "change" else ""
    return f"{' and '.join(rows)}, {device}, {options.threads} threads{changed}"
