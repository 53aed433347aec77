"""Files as texts: columns of random kinds and formats, with and without names; some cells do not fit."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

_FIRST: Final = datetime.datetime(1970, 1, 1)
_SECONDS: Final = 80 * 365 * 86_400
_SEPARATORS: Final = "-/. "
_DATES: Final = ("%y-%m-%d", "%Y-%m-%d", "%d-%m-%y", "%d-%m-%Y", "%m-%d-%y", "%m-%d-%Y")
_STAMPS: Final = (
    "%y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%d-%m-%y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S",
    "%m-%d-%y %I:%M:%S %p",
    "%m-%d-%Y %I:%M:%S %p",
)
_ISO_STAMPS: Final = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S.%f")
_ZONES: Final = (
    "Z",
    "+02",
    "-05:30",
    "+0100",
    " UTC",
    " EST",
    " PST",
    " Europe/Berlin",
    " europe/berlin",
    " UTC+5",
)
_WORDS: Final = (
    "x",
    "abc",
    "n/a",
    "Müller",
    "a b",
    "-",
    "12 Main St",
    "1.2.3.4",
    "q,r",
    'say "hi"',
    "two\nlines",
    "x#1",
)

Cell = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class File:
    """One of them.

    Attributes:
        text: what is in it.
        records: how many there are, without the header.
        has_header: whether there is one.
    """

    text: str
    records: int
    has_header: bool


def csv_file(random: Random) -> File:
    """A CSV file."""
    columns = [_column(random) for _ in range(random.randint(1, 4))]
    rows = [[cell(random) for cell in columns] for _ in range(random.choice((1, 1, 2, 3, 5, 20)))]
    _spoil(random, rows)
    has_header = random.random() < 0.6
    names = [random.choice(("id", "day", "Name", "x y", "größe", f"c{i}")) for i in range(len(columns))]
    out = io.StringIO()
    writer = csv.writer(
        out, delimiter=random.choice(",,,\t;|"), lineterminator=random.choice(("\n", "\n", "\r\n"))
    )
    writer.writerows([names, *rows] if has_header else rows)
    return File(out.getvalue(), len(rows), has_header)


def json_file(random: Random) -> File:
    """An object a line."""
    columns = [_column(random) for _ in range(random.randint(1, 3))]
    rows = [[cell(random) for cell in columns] for _ in range(random.choice((1, 2, 5, 20)))]
    _spoil(random, rows)
    lines = [
        json.dumps(
            {f"m{i}": None if cell == "" else cell for i, cell in enumerate(row)},
            ensure_ascii=random.random() < 0.5,
        )
        for row in rows
    ]
    return File("\n".join(lines) + "\n", len(rows), False)


def _spoil(random: Random, rows: list[list[str]]) -> None:
    """Leave some cells empty, and now and then make one a word."""
    for row in rows:
        for i in range(len(row)):
            if random.random() < 0.06:
                row[i] = ""
    if random.random() < 0.25:
        row = random.choice(rows)
        row[random.randrange(len(row))] = random.choice(_WORDS)


def _column(random: Random) -> Cell:
    return random.choice(
        (_words, _numbers, _times, _free_dates, _free_dates, _free_stamps, _iso, _iso, _instants)
    )(random)


def _words(random: Random) -> Cell:
    few = random.sample(_WORDS, 3)
    return lambda random: random.choice(few)


def _numbers(random: Random) -> Cell:
    kind = random.randrange(4)
    if kind == 0:
        return lambda random: str(random.randint(-1000, 10**12))
    if kind == 1:
        return lambda random: f"{random.uniform(-100, 100):.3f}"
    if kind == 2:
        return lambda random: random.choice(("true", "false", "TRUE", "f"))
    return lambda random: f"{random.randint(1, 99):03}"


def _times(random: Random) -> Cell:
    form = random.choice(("%H:%M:%S", "%H:%M", "%H:%M:%S.%f"))
    return lambda random: _moment(random).strftime(form)


def _free_dates(random: Random) -> Cell:
    return _formatted(random, random.choice(_DATES).replace("-", random.choice(_SEPARATORS)))


def _free_stamps(random: Random) -> Cell:
    return _formatted(random, random.choice(_STAMPS).replace("-", random.choice(_SEPARATORS)))


def _iso(random: Random) -> Cell:
    return _formatted(random, random.choice(("%Y-%m-%d", *_ISO_STAMPS)))


def _instants(random: Random) -> Cell:
    stamps = _formatted(random, random.choice(_ISO_STAMPS))
    zones = random.sample(_ZONES, random.randint(1, 2))
    if random.random() < 0.2:
        zones.append("")
    return lambda random: stamps(random) + random.choice(zones)


def _formatted(random: Random, form: str) -> Cell:
    is_early = random.random() < 0.3  # what may be a day or a month in all rows
    is_short = random.random() < 0.2 and "%Y" in form

    def cell(random: Random) -> str:
        moment = _moment(random)
        if is_early:
            moment = moment.replace(day=random.randint(1, 12))
        text = moment.strftime(form)
        return (
            text.replace("-0", "-").replace("/0", "/").replace(".0", ".")
            if is_short and "%f" not in form
            else text
        )

    return cell


def _moment(random: Random) -> datetime.datetime:
    return _FIRST + datetime.timedelta(
        seconds=random.randrange(_SECONDS), microseconds=random.choice((0, 500_000, 123_456))
    )
