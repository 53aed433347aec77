"""Planning asks whether it was interrupted after so much work, however long the statement is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import bamquery
from bamquery.session import session

_MOST_CALLS = 12
"""So many calls of functions, for each value of the statement, go by at most between two looks: for 150,000
values that is less than half a second."""
_MOST_CALLS_OF_CONDITIONS = 50
"""The same of what is computed for each condition or query, of which there are fewer."""

_STATEMENTS: dict[str, Callable[[int], str]] = {
    "in": lambda n: f"SELECT 1 FROM t WHERE x IN ({', '.join(map(str, range(n)))})",
    "values": lambda n: f"SELECT * FROM (VALUES {', '.join(f'({i})' for i in range(n))}) v",
    "parameters": lambda n: f"SELECT * FROM (VALUES {', '.join(['(?)'] * n)}) v",
    "or": lambda n: f"SELECT 1 FROM t WHERE {' OR '.join(f'x > {i}' for i in range(n))}",
    "case": lambda n: f"SELECT CASE x {' '.join(f'WHEN {i} THEN y' for i in range(n))} END FROM t",
    "union": lambda n: " UNION ALL ".join(f"SELECT {i}" for i in range(n)),
}


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu", threads=1) as connection:
        connection.sql("CREATE TABLE t AS SELECT range AS x, range AS y FROM range(3)")
        yield connection


def _longest_stretch(work: Callable[[], object]) -> int:
    """Calls of Python functions between two looks at the flag, on the thread that plans."""
    looks = {session._Work.check.__code__}
    found = longest = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal found, longest
        del argument
        if event == "call":
            asks = frame.f_code in looks or frame.f_code.co_qualname == "on_deep_stack.<locals>.check"
            longest = max(longest, found)
            found = 0 if asks else found + 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return longest


@pytest.mark.parametrize("name", _STATEMENTS)
def test_between_two_looks(con: bamquery.Connection, name: str) -> None:
    def planned(size: int) -> None:
        con.sql(_STATEMENTS[name](size), list(range(size)) if name == "parameters" else None).run().close()

    planned(11)
    short, long = (_longest_stretch(partial(planned, size)) for size in (200, 600))
    most = _MOST_CALLS if name in ("in", "values", "parameters") else _MOST_CALLS_OF_CONDITIONS
    assert (long - short) / 400 < most


_MOST_CALLS_OF_FILES = 8
"""The same for each file that a pattern finds: for 200,000 files that is less than half a second."""


def _make_files(folder: Path, count: int, layout: str) -> str:
    """So many files of one row, and a pattern that finds them."""
    for number in range(count):
        place = folder / (f"year={number % 3}/month={number}" if layout == "partitions" else ".")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"part_{number}.csv").write_text("a,b\n1,2\n")
        (folder / f"other_{number}.txt").write_text("")
    return f"{folder}/**/*.csv" if layout == "partitions" else f"{folder}/*.csv"


@pytest.mark.parametrize("layout", ["one folder", "partitions"])
def test_between_two_looks_at_files(con: bamquery.Connection, tmp_path: Path, layout: str) -> None:
    stretches = []
    for count in (20, 200, 600):  # the first one imports what is needed
        pattern = _make_files(tmp_path / str(count), count, layout)
        stretches.append(_longest_stretch(partial(con.sql, f"SELECT count(*) FROM '{pattern}' WHERE a > 5")))
    _, short, long = stretches
    assert (long - short) / 400 < _MOST_CALLS_OF_FILES
