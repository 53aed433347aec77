"""`bamquery report DB "SQL" -o report.html`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bamquery.connection.connection import open_connection
from bamquery.engine.human_units import human_seconds, plural
from bamquery.errors import BamQueryError
from bamquery.output.atomic_file import whole_file
from bamquery.relations.relation import Relation
from bamquery.report.content import run_for_report
from bamquery.report.page import report_page
from bamquery.text.setting_option import add_setting_option

_STANDARD: str = "-"


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit status.

    Raises:
        BamQueryError: the query failed, or the file cannot be written.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    settings = dict(options.settings)
    if options.device is not None:
        settings["device"] = options.device
    text = sys.stdin.read() if options.sql == _STANDARD else options.sql
    if not os.path.exists(os.path.expanduser(options.database)):
        parser.error(f"there is no database {options.database}")
    with open_connection(options.database, None, settings) as connection:
        connection.set("profile_vectors", True)
        relation: Relation | None = None
        for relation in connection.statements(text):  # noqa: B007 (the last one is the query)
            pass
        if relation is None or not relation.is_answer or relation.message:
            raise BamQueryError("a report is of a query: end the statements with a SELECT")
        content = run_for_report(relation, text, connection.settings)
    made = report_page(content, title=options.title, theme=options.theme)
    if options.output == _STANDARD:
        sys.stdout.buffer.write(made)
        return 0
    with whole_file(Path(options.output)) as file:
        file.write(made)
    said = f"{plural(content.rows, 'row')}, {human_seconds(content.profile.seconds)}: {options.output}"
    print(said)  # noqa: T201
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery report",
        description="Run a query and write one HTML page of what it did: plan, time by operator, bytes by "
        "column, and a map of each column's vectors.",
        allow_abbrev=False,
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    parser.add_argument("sql", metavar="SQL", help="the query, after others if need be; - is standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="report.html",
        help="default: report.html; - is standard output",
    )
    parser.add_argument("--title", default="BamQuery report", help="of the page")
    parser.add_argument(
        "--theme",
        choices=["auto", "light", "dark"],
        default="auto",
        help="auto: as the reader's system has it (default)",
    )
    parser.add_argument("--device", metavar="DEVICE", help="auto, cpu or cuda:0 (default: auto)")
    add_setting_option(parser.add_argument, "a setting, such as memory_limit=2GiB; may be given again")
    return parser
