"""`bamquery taxi load | generate | run | selectivity | timeline | draw | demo`.

Each action imports what it needs: --help and mistakes in arguments should not wait for pyarrow.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bamquery.errors import IngestError
from bamquery.queries import arguments
from bamquery.queries.baselines import BASELINES
from bamquery.queries.generator.recipe import COLUMNS, ORDERS, Q5_COLUMNS, Recipe
from bamquery.queries.measuring.options import add_options, settings_of, write_measurements
from bamquery.queries.questions import NAMES
from bamquery.queries.selectivity.command import add_arguments as add_selectivity
from bamquery.queries.timeline import add_arguments as add_timeline

OK: Final = 0
FAILED: Final = 1


def main(argv: Sequence[str]) -> int:
    """Run one subcommand; 0 if all went well, 1 if not (argparse: 2 for wrong arguments)."""
    parser = _parser()
    options = parser.parse_args(list(argv))
    action: Callable[[argparse.Namespace], int] = options.action
    options.command_line = shlex.join(["bamquery", "taxi", *argv])
    return action(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery taxi",
        description="New York's taxi trips: load real ones, generate others, ask Q1 to Q5.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_load(commands.add_parser("load", help="load TLC files of any year into one table"))
    _add_generate(commands.add_parser("generate", help="make a table of any number of likely trips"))
    _add_run(commands.add_parser("run", help="ask Q1 to Q5, check and time the answers"))
    selectivity = "time a mean over ever more rows, with every strategy"
    add_selectivity(commands.add_parser("selectivity", help=selectivity))
    add_timeline(commands.add_parser("timeline", help="draw when a GPU's streams did what for a question"))
    _add_draw(commands.add_parser("draw", help="draw measurements that run has written"))
    _add_demo(commands.add_parser("demo", help="all of it, in a minute"))
    return parser


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.description = "Load Parquet, Arrow and CSV files of the TLC, all of them in one commit."
    parser.add_argument("database", metavar="DB", type=Path, help="the database's folder, made if missing")
    parser.add_argument("files", metavar="FILE", nargs="*", help="paths or patterns")
    parser.add_argument(
        "--sample", action="store_true", help="load the 212,000 real trips that ship with the package"
    )
    parser.add_argument("--table", default="trips", help="table to add to (trips)")
    parser.add_argument("--replace", action="store_true", help="begin the table anew")
    parser.add_argument("--rejects", metavar="CSV", type=Path, help="write rows to it that cannot be read")
    parser.add_argument("--zones", metavar="CSV", type=Path, help="list of taxi zones (the one that ships)")
    parser.set_defaults(action=_load)


def _load(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from bamquery.queries.sample import trip_files  # noqa: PLC0415
    from bamquery.queries.trips.loader import FileReport, load  # noqa: PLC0415
    from bamquery.queries.trips.zones import load_zones  # noqa: PLC0415
    from bamquery.storage.database.database import Database  # noqa: PLC0415
    from bamquery.storage.ingest.sources.paths import expand  # noqa: PLC0415

    console = Console(highlight=False)

    def show(file: FileReport) -> None:
        line = Text.assemble((str(file.file), "bold"), f"  {file.service}, {file.rows:,} rows")
        if file.left_out:
            line.append(f"; no place for column {', '.join(file.left_out)}", style="yellow")
        if file.rejected:
            line.append(f"; {file.rejected:,} rows could not be read", style="red")
        console.print(line, soft_wrap=True)
        for example in file.examples:
            console.print(Text(f"  line {example.line}: {example.reason}", style="dim"), soft_wrap=True)
        if file.rejected > len(file.examples):
            rest = "are in the file of rejects" if options.rejects else "--rejects FILE writes them all"
            console.print(Text(f"  … {rest}", style="dim"))

    files = [*options.files, *(map(str, trip_files()) if options.sample else ())]
    if not files:
        raise IngestError("name the TLC's files, or pass --sample for those that ship with the package")
    # Before the database: a path that is wrong leaves no new, empty one behind.
    expand(files)
    if options.zones is not None:
        expand(options.zones)
    with Database.open(options.database) as database:
        report = load(database, files, table=options.table, replace=options.replace, rejects=options.rejects)
        load_zones(database, options.zones)
    for file in report.files:
        show(file)
    rate = report.rows / max(report.seconds, 1e-9) / 1e6
    console.print(
        f"{report.rows:,} rows into {options.table}, {report.rejected:,} could not be read, "
        f"{report.seconds:.1f} s ({rate:.2f} million rows a second)",
        soft_wrap=True,
    )
    return OK


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make a table of trips that are distributed like the real ones. Equal arguments give equal bytes."
    )
    parser.add_argument("database", metavar="DB", type=Path, help="the database's folder, made if missing")
    parser.add_argument("--rows", type=arguments.count, required=True, help="how many: 20000000, 20e6, 20M")
    parser.add_argument("--table", default="generated", help="table to make (generated)")
    parser.add_argument("--replace", action="store_true", help="replace a table of this name")
    parser.add_argument(
        "--columns",
        type=arguments.columns,
        default=Q5_COLUMNS,
        help=f"names, or all, of: {', '.join(COLUMNS)} (those of Q5)",
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="time",
        help="physical order: as TLC's files, shuffled, by distance",
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed, other rows (1)")
    parser.add_argument(
        "--years",
        type=arguments.years,
        default=(2009, 2021),
        help="within 2009 to 2023 (2009-2021)",
    )
    parser.add_argument(
        "--match-share",
        type=arguments.share,
        metavar="SHARE",
        help="of long trips (as measured)",
    )
    parser.add_argument("--no-nulls", action="store_true", help="charges not yet levied are 0, not NULL")
    parser.add_argument(
        "--encoding", choices=("auto", "plain"), default="auto", help="how columns may be stored (auto)"
    )
    parser.add_argument("--threads", type=arguments.positive, default=arguments.cores(), help="(all cores)")
    parser.set_defaults(action=_generate)


def _generate(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.generator.generate import generate  # noqa: PLC0415
    from bamquery.storage.database.database import Database  # noqa: PLC0415

    first, last = options.years
    recipe = Recipe(
        rows=options.rows,
        columns=options.columns,
        order=options.order,
        seed=options.seed,
        first_year=first,
        last_year=last,
        match_share=options.match_share,
        nulls=not options.no_nulls,
    )
    begun = time.perf_counter()
    with Database.open(options.database) as database:
        generate(
            *(database, options.table, recipe),
            threads=options.threads,
            replace=options.replace,
            encoding=options.encoding,
        )
    seconds = time.perf_counter() - begun
    Console(highlight=False).print(
        f"{recipe.rows:,} rows into {options.table}, {seconds:.1f} s "
        f"({recipe.rows / max(seconds, 1e-9) / 1e6:.2f} million rows a second)",
        soft_wrap=True,
    )
    return OK


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask Q1 to Q5, check every answer against DuckDB (or pyarrow), show times and bytes. "
        "Exit status 1 if an answer is wrong."
    )
    parser.add_argument("database", metavar="DB", type=Path, help="the database's folder")
    parser.add_argument("--table", default="trips", help="(trips)")
    parser.add_argument("--queries", type=arguments.names, default=NAMES, help=f"of {','.join(NAMES)} (all)")
    parser.add_argument(
        "--against", type=arguments.names, default=(), help=f"compare with: {','.join(BASELINES)} (nothing)"
    )
    parser.add_argument(
        "--parquet",
        metavar="PATH",
        type=Path,
        help="the same rows as Parquet, a file or a folder (written beside DB)",
    )
    add_options(parser, repeat=5)
    parser.add_argument("--cold", action="store_true", help="drop caches before each answer")
    parser.add_argument("--strategy", choices=("auto", "stream", "vectors", "blocks"), default="auto")
    parser.set_defaults(action=_run)


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.plot import draw  # noqa: PLC0415
    from bamquery.queries.report import json_of, table_of  # noqa: PLC0415
    from bamquery.queries.runner import Plan, run  # noqa: PLC0415

    result = run(
        Plan(
            database=options.database,
            table=options.table,
            names=options.queries,
            against=options.against,
            parquet=options.parquet,
            repeat=options.repeat,
            cold=options.cold,
            settings=settings_of(options) | {"strategy": options.strategy},
        )
    )
    console = Console()
    console.print(table_of(result))
    if result.dropped:
        console.print(
            f"caches dropped by {result.dropped}; times from opening to answer", style="dim", soft_wrap=True
        )
    measurements = json_of(result, options.command_line)
    write_measurements(measurements, options.json)
    if options.plot is not None:
        draw([measurements], options.plot)
    return OK if result.right else FAILED


def _add_draw(parser: argparse.ArgumentParser) -> None:
    parser.description = "Draw files that `bamquery taxi run --json` has written, one row of panels each."
    parser.add_argument("measurements", metavar="JSON", nargs="+", type=Path)
    parser.add_argument("--plot", metavar="FILE", type=Path, required=True, help="(.png, .svg, .pdf)")
    parser.set_defaults(action=_draw)


def _draw(options: argparse.Namespace) -> int:
    from bamquery.queries.plot import draw, read_measurements  # noqa: PLC0415

    draw([read_measurements(path) for path in options.measurements], options.plot)
    return OK


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Load the real trips that ship with BamQuery, generate millions more, ask Q1 to Q5 of both, check "
        "every answer and draw a picture. A second run uses the tables again."
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made if missing")
    parser.add_argument("--rows", type=arguments.count, default=10_000_000, help="generated rows (10M)")
    parser.set_defaults(action=_demo)


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console  # noqa: PLC0415

    from bamquery.queries.demo import demo  # noqa: PLC0415

    return OK if demo(options.folder, Console(), options.rows) else FAILED
