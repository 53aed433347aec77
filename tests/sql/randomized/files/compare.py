"""Asks DuckDB and BamQuery what is in random files.

    python -m tests.sql.randomized.files.compare --files 20000 --seed 1 [--jobs 2]

What differs is shown with the file's text and both answers.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from calendar import monthrange
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import duckdb

import bamquery
from tests.sql.randomized.files.strings import File, csv_file, json_file
from tests.sql.randomized.workers import Workers, check, stoppable

Column: TypeAlias = "tuple[str, tuple[str | None, ...]]"
"""Its type, and its values as texts."""

PER_PIECE: Final = 50
"""Files that a process compares before it says what it found."""
_NO_DAY: Final = "a day that the month has not, were the year first"
MOMENTS: Final = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody found in a file; an error, or names, types and values as texts."""

    error: str = ""
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A file of which both say something else.

    Attributes:
        reason: why it does, where that is known; see "what these are not" in docs/sql.md.
    """

    seed: int
    file: File
    theirs: Answer
    ours: Answer
    reason: str


class Comparison:
    """Files in one folder, and both databases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._theirs = duckdb.connect(config={"threads": 1})
        self._theirs.execute("SET TimeZone = 'UTC'")
        self._ours = bamquery.connect(":memory:", device="cpu")

    def close(self) -> None:
        """Both databases."""
        self._theirs.close()
        self._ours.close()

    def compare(self, seed: int) -> Difference | None:
        """The file of a seed."""
        random = Random(seed)
        kind = "json" if random.random() < 0.25 else "csv"
        file = (json_file if kind == "json" else csv_file)(random)
        path = self._folder / f"{seed}.{kind}"
        path.write_text(file.text, newline="")
        source = f"read_{kind}('{path}')"
        theirs, ours = _their_answer(self._theirs, source), _our_answer(self._ours, source)
        path.unlink()
        is_lost = not ours.error and len(ours.rows) < file.records and file.has_header
        if theirs == ours and not is_lost:
            return None
        return Difference(
            seed, file, theirs, ours, "" if is_lost else self._reason(theirs, ours, is_json=kind == "json")
        )

    def _reason(self, theirs: Answer, ours: Answer, *, is_json: bool) -> str:
        """Which of the differences that docs/sql.md lists this is; empty if it is none."""
        if ours.error:
            is_one = len(theirs.names) == 1 and " where the others have " in ours.error
            return "a record with too few fields" if is_one else ""
        if theirs.error:
            return "DuckDB refuses its own guess"
        if theirs.names != ours.names:
            if len(ours.rows) > len(theirs.rows) and _is_record(theirs.names, ours):
                return "a header further down, and the records before it lost"
            return "a first record with a value" if len(ours.rows) == len(theirs.rows) + 1 else ""
        reasons = {
            self._column_reason(_column(theirs, i), _column(ours, i), is_json=is_json)
            for i in range(len(ours.types))
            if _column(theirs, i) != _column(ours, i)
        }
        if _NO_DAY in reasons and set(ours.types) | set(theirs.types) <= {*MOMENTS, "TIME", "VARCHAR"}:
            reasons -= {""}  # the other columns have the format of that one, or have it not
        return "" if "" in reasons else " and ".join(sorted(reasons))

    def _column_reason(self, theirs: Column, ours: Column, *, is_json: bool) -> str:
        their_type, their_values = theirs
        our_type, our_values = ours
        if their_type == our_type and our_type in MOMENTS and is_json:
            return "JSON: each value by a format of its own"
        if their_type in MOMENTS[1:] and our_type in MOMENTS[:2]:
            if _are_early(their_values):
                return "years of two digits as of antiquity"
            is_same = _instants(their_values) == _instants(our_values)
            return "years first beside another format" if is_same else ""
        if their_type == "VARCHAR" and our_type in MOMENTS[1:] and _are_mixed(their_values):
            return "dates, and timestamps further down"
        if their_type == "VARCHAR" and our_type in MOMENTS and any(map(_is_no_day, their_values)):
            return _NO_DAY
        if their_type == "VARCHAR" and our_type in MOMENTS:
            return "other formats in other columns" if self._alone(their_values) == ours else ""
        if their_type in MOMENTS and our_type == "VARCHAR":
            return "years of two digits as of antiquity" if _are_early(their_values) else ""
        return ""

    def _alone(self, values: tuple[str | None, ...]) -> Column:
        """What DuckDB makes of a column of texts in a file of its own."""
        path = self._folder / "alone.csv"
        with path.open("w", newline="") as out:
            csv.writer(out).writerows([["name"], *([value] for value in values)])
        return _column(_their_answer(self._theirs, f"read_csv('{path}')"), 0)


def _column(answer: Answer, i: int) -> Column:
    return (answer.types[i], tuple(row[i] for row in answer.rows)) if answer.types else ("", ())


def _is_record(names: tuple[str, ...], ours: Answer) -> bool:
    """Whether the names are what one of our records, of one text, is made of."""
    texts = {row[0] for row in ours.rows if len(row) == 1}
    return any(delimiter.join(names) in texts for delimiter in ",;|\t")


def _are_early(values: tuple[str | None, ...]) -> bool:
    """Whether they are as 90-01-25 read as the year 90."""
    return all(value.startswith("00") for value in values if value)


def _is_no_day(value: str | None) -> bool:
    """Whether it is as 13-11-31, which DuckDB takes for a November, and then for no date at all."""
    found = re.match(r"(\d\d)\D(\d\d)\D(\d\d)\b", value or "")
    year, month, day = map(int, found.groups()) if found else (0, 0, 0)
    return 1 <= month <= 12 and monthrange(2000 + year, month)[1] < day <= 31


def _are_mixed(values: tuple[str | None, ...]) -> bool:
    return len({":" in value for value in values if value}) > 1


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _their_answer(connection: Any, source: str) -> Answer:
    try:
        # As a table: a cast of the file's column would read the text.
        connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS FROM {source}")
        columns = connection.execute("DESCRIBE found").fetchall()
        shown = ", ".join(f"{_quoted(name)}::VARCHAR" for name, *_ in columns)
        rows = connection.execute(f"SELECT {shown} FROM found").fetchall()
    except duckdb.Error as error:
        return Answer(error=f"{type(error).__name__}: {error}")
    # Here such a column is INTEGER, as where it is stored.
    types = tuple("INTEGER" if column[1] == '"NULL"' else column[1] for column in columns)
    return Answer("", tuple(column[0] for column in columns), types, tuple(rows))


def _our_answer(connection: Any, source: str) -> Answer:
    try:
        columns = connection.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
        shown = ", ".join(f"{_quoted(name)}::VARCHAR" for name, *_ in columns)
        rows = connection.sql(f"SELECT {shown} FROM {source}").fetchall()
    except bamquery.BamQueryError as error:
        return Answer(error=f"{type(error).__name__}: {error}")
    types = tuple(column[1] for column in columns)
    return Answer("", tuple(column[0] for column in columns), types, tuple(rows))


def _instants(values: tuple[str | None, ...]) -> list[str | None]:
    """Texts of dates and timestamps without what their types add."""
    return [None if v is None else v.removesuffix("+00").removesuffix(" 00:00:00") for v in values]


def compare_files(first: int, files: int = PER_PIECE) -> list[Difference]:
    """What differs in the files of the seeds from `first` on; fewer of them where the process is to stop."""
    found: list[Difference] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Comparison(Path(folder))) as both,
        stoppable(),
    ):
        for seed in range(first, first + files):
            check()
            found += filter(None, [both.compare(seed)])
    return found


def main() -> None:
    """See the top."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1000, help=f"at least, {PER_PIECE} at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    reasons: Counter[str] = Counter()
    firsts = range(arguments.seed, arguments.seed + arguments.files, PER_PIECE)
    for differences in Workers[int, list[Difference]](arguments.jobs).results(compare_files, firsts):
        for found in differences:
            reasons[found.reason or "not listed"] += 1
            if not found.reason:
                print(f"seed {found.seed}\n{found.file.text}", flush=True)
                print(f"  DuckDB   {found.theirs}\n  BamQuery {found.ours}", flush=True)
    print(f"{len(firsts) * PER_PIECE} files: {dict(reasons)}")
    sys.exit(bool(reasons["not listed"]))


if __name__ == "__main__":
    main()
