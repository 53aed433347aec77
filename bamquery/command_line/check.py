"""`bamquery check`: what was found, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from bamquery.engine.human_units import human_bytes, plural
from bamquery.storage.database.database import Database
from bamquery.storage.ingest import Progress
from bamquery.text.terminal import escape_line, escape_lines


def check_database(path: str | Path, out: TextIO) -> bool:
    """Check a database and write a report; True if nothing is damaged.

    Raises:
        StorageError: there is no database.
    """
    with Database.open(path, create=False) as database, Progress().show(f"Checking {path}") as report:
        found = database.check(lambda done, total: report(0, done))
    for error in found.errors:
        print(f"damaged: {escape_lines(str(error))}", file=out)
    for litter in found.litter:
        print(f"not needed: {escape_line(str(litter))} (VACUUM removes it)", file=out)
    for unknown in found.unknown:
        print(f"not BamQuery's: {escape_line(str(unknown))}", file=out)
    print(
        f"{plural(found.tables, 'table')}, {plural(found.versions, 'version')}, "
        f"{plural(found.fragments, 'fragment')}, {human_bytes(found.bytes)}: "
        + ("no damage" if found.clean else plural(len(found.errors), "damaged part")),
        file=out,
    )
    return found.clean
