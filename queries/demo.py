"""The demo: real and generated trips into a database, five questions, checked answers, a picture."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from bamquery.errors import StorageError
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import Q5_COLUMNS, Recipe
from bamquery.queries.measuring.machine import machine_line
from bamquery.queries.plot import draw
from bamquery.queries.report import json_of, table_of
from bamquery.queries.runner import Plan, RunResult, run
from bamquery.queries.sample import trip_files
from bamquery.queries.trips.loader import load
from bamquery.queries.trips.zones import load_zones
from bamquery.storage.database.database import Database

GENERATED_ROWS: Final = 10_000_000
# The share of long trips in the paper that asked these questions first.
PAPER_SHARE: Final = 0.0003
_REPEAT: Final = 5


def demo(folder: Path, console: Console, rows: int = GENERATED_ROWS) -> bool:
    """Run the demo in a folder, made if there is none; tables that are there already are used again.

    Returns:
        Whether all answers are right.

    Raises:
        BamQueryError: something could not be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder: {error.strerror}", folder) from error
    path = folder / "taxi.bq"
    console.print(_heading(folder))
    with Database.open(path) as database:
        _load(database, console)
        _generate(database, console, rows)
    results = [_ask(path, table, console) for table in ("trips", "generated")]
    picture = folder / "q1-q5.png"
    draw([json_of(result, f"bamquery taxi demo {folder}") for result in results], picture)
    right = all(result.right for result in results)
    _farewell(console, path, picture, results)
    return right


def _heading(folder: Path) -> Panel:
    text = Text()
    text.append("What does a driver make per mile on trips of at least 30 miles?\n", style="bold")
    text.append("Five questions over New York's taxi trips, each takes off one more charge.\n")
    text.append(machine_line(folder), style="dim")
    return Panel(text, title="BamQuery", title_align="left", border_style="green", expand=False)


def _load(database: Database, console: Console) -> None:
    if database.has_table("trips"):
        with database.table("trips").snapshot() as snapshot:
            _step(console, "trips", f"{snapshot.rows:,} real trips are there already")
    else:
        files = trip_files()
        report = load(database, files)
        _step(
            console,
            "trips",
            f"{report.rows:,} real trips of {len(files)} files, 2009 to 2025, in {report.seconds:.1f} s",
        )
    load_zones(database)


def _generate(database: Database, console: Console, rows: int) -> None:
    if database.has_table("generated"):
        with database.table("generated").snapshot() as snapshot:
            if snapshot.rows == rows and list(snapshot.schema.names) == list(Q5_COLUMNS):
                _step(console, "generated", f"{rows:,} generated trips are there already")
                return
    begun = time.perf_counter()
    recipe = Recipe(rows, order="random", match_share=PAPER_SHARE, nulls=False)
    generate(database, "generated", recipe, threads=len(os.sched_getaffinity(0)), replace=True)
    seconds = time.perf_counter() - begun
    _step(
        console,
        "generated",
        f"{rows:,} generated trips in {seconds:.1f} s ({rows / seconds / 1e6:.1f} million a second)",
    )


def _step(console: Console, table: str, text: str) -> None:
    console.print(Text.assemble(("  ✓ ", "green"), (table.ljust(10), "bold"), text))


def _ask(path: Path, table: str, console: Console) -> RunResult:
    against = [name for name in ("duckdb",) if importlib.util.find_spec(name)]
    result = run(Plan(path, table, against=against, repeat=_REPEAT))
    console.print()
    console.print(table_of(result))
    if table == "trips":
        console.print("  Trips of years without a charge have NULL there and leave the average.", style="dim")
    return result


def _farewell(console: Console, path: Path, picture: Path, results: list[RunResult]) -> None:
    references = " and ".join(dict.fromkeys(result.reference for result in results))
    console.print()
    if all(result.right for result in results):
        console.print(f"[green]✓[/green] All answers are those of {references}.")
    else:
        console.print(f"[bold red]✗ Not all answers are those of {references}.[/bold red]")
    console.print(f"  Picture    {picture}", highlight=False, soft_wrap=True)
    console.print(
        f'  Ask more   bamquery {path} -c "SELECT ..."', highlight=False, soft_wrap=True, markup=False
    )
    console.print(
        f"  Compare    bamquery taxi run {path} --table generated --against duckdb,pyarrow,polars",
        highlight=False,
        soft_wrap=True,
    )
