"""`bamquery bench memory`: most memory over `memory_limit`, each case in a process of its own."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import connect
from bamquery.engine.human_units import human_bytes
from bamquery.engine.settings import parse_bytes
from bamquery.queries.measuring.machine import describe_machine
from bamquery.queries.memory.cases import CASES, Case
from bamquery.queries.memory.measuring import Measured, measure, run_case
from bamquery.queries.memory.tables import make_table, sizes

_BOUND: Final = 1.25
"""Memory over limit up to which a case holds."""


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status, which is 1 where a case took more than it should."""
    parser = argparse.ArgumentParser(prog="bamquery bench memory", description=__doc__)
    parser.add_argument("--memory-limit", default="256MB", help="the setting")
    parser.add_argument("--threads", type=int, help="the setting")
    parser.add_argument(
        "--jobs", type=int, default=1, help="cases at a time: more of them falsify seconds only"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="1: texts of four times the limit")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a case is stopped")
    parser.add_argument("--folder", type=Path, help="where the database is made, and removed again")
    parser.add_argument("--rooms", nargs="+", choices=sorted({case.room for case in CASES}))
    parser.add_argument("--cases", nargs="+", metavar="CASE", help="their names")
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--markdown", type=Path, help="also write the table there")
    parser.add_argument(
        "--resume", action="store_true", help="leave out cases whose results are in the file of --json"
    )
    parser.add_argument("--run", nargs=2, metavar=("DB", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    limit = parse_bytes(options.memory_limit)
    rows = sizes(limit, options.scale)
    settings = {"memory_limit": options.memory_limit, "threads": options.threads, "progress": False}
    if options.run:
        path, name = options.run
        run_case(next(case for case in CASES if case.name == name), Path(path), settings, rows)
        return 0
    cases = [
        case
        for case in CASES
        if (not options.rooms or case.room in options.rooms)
        and (not options.cases or case.name in options.cases)
    ]
    known = (
        _earlier_results(options.json, {"rows": rows, **settings}) if options.resume and options.json else {}
    )
    found = {case.name: known[case.name] for case in cases if case.name in known}
    cases = [case for case in cases if case.name not in found]
    with tempfile.TemporaryDirectory(prefix="bamquery-memory-", dir=options.folder) as name:
        folder = Path(name)
        _prepare(folder, cases, rows)
        for one in _measure_all(cases, folder, ["bench", "memory", *argv], options, limit):
            found[one.case.name] = _entry(one, limit)
            sys.stderr.write(
                f"{one.times_limit(limit):6.2f}  {one.seconds:6.1f} s  {one.case.name}: {one.outcome}\n"
            )
            if options.json:  # after each, as all of them take hours
                report = {
                    "machine": describe_machine(options.folder or Path(tempfile.gettempdir())),
                    "rows": rows,
                    **settings,
                    "results": _sort_by_case(found),
                }
                options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    table = _table(_sort_by_case(found))
    sys.stdout.write(table)
    if options.markdown:
        options.markdown.write_text(table, encoding="utf-8")
    above = [name for name, one in found.items() if one["over"] > _BOUND]
    stopped = [name for name, one in found.items() if one["outcome"] != "done"]
    sys.stdout.write(f"{len(found)} cases; above {_BOUND} times: {', '.join(above) or 'none'}\n")
    sys.stdout.write(f"not done: {', '.join(stopped) or 'none'}\n")
    return int(bool(above))


def _measure_all(
    cases: Sequence[Case], folder: Path, arguments: Sequence[str], options: argparse.Namespace, limit: int
) -> Iterator[Measured]:
    """Each case, as they end: in a folder of its own, with links to the files that were made for all."""

    def measure_one(case: Case) -> Measured:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            for path in folder.iterdir():
                if path.is_file():
                    (Path(own) / path.name).hardlink_to(path)
            return measure(
                case, folder / "db", Path(own), arguments, limit=limit, most_seconds=options.seconds
            )

    with ThreadPoolExecutor(options.jobs) as pool:
        for measured in as_completed([pool.submit(measure_one, case) for case in cases]):
            yield measured.result()


def _earlier_results(path: Path, asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Results by case of an earlier run that was cut off, if there was one; it asked for the same."""
    if not path.exists():
        return {}
    report = json.loads(path.read_text(encoding="utf-8"))
    if {key: report.get(key) for key in asked} != asked:
        raise SystemExit(f"{path} has results of other sizes or settings: name another file")
    return {one["case"]: one for one in report["results"]}


def _sort_by_case(found: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [found[case.name] for case in CASES if case.name in found]


def _prepare(folder: Path, cases: Sequence[Case], rows: dict[str, int]) -> None:
    """Tables and files that the cases need, each once; tables first."""
    needed = list(dict.fromkeys(name for case in cases for name in case.tables))
    tables = dict.fromkeys(name.partition(".")[0] for name in needed)
    with connect(folder / "db", device="cpu", progress=False) as connection:
        for name in [*tables, *(name for name in needed if "." in name)]:
            make_table(connection, name, folder, rows)


def _entry(one: Measured, limit: int) -> dict[str, Any]:
    return {
        "room": one.case.room,
        "case": one.case.name,
        "text": one.case.text,
        "seconds": round(one.seconds, 2),
        "growth": one.growth,
        "over": round(one.times_limit(limit), 3),
        "outcome": one.outcome,
    }


def _table(found: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| | case | memory | over the limit | seconds | |", "|---|---|---|---|---|---|"]
    for one in found:
        outcome = "" if one["outcome"] == "done" else one["outcome"]
        lines.append(
            f"| {one['room']} | {one['case']} | {human_bytes(one['growth'])} | {one['over']:.2f} | "
            f"{one['seconds']:.1f} | {outcome} |"
        )
    return "\n".join(lines) + "\n"
