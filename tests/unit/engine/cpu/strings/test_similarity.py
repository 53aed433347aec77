"""How alike texts are: as DuckDB has it, by rapidfuzz as well as in the steps that long texts take."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS
from bamquery.engine.cpu.strings import similarity
from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import use_cancellation_check

ALPHABETS = ("ab", "abcdefgh ", "aéßñ中文👍🏽\u0301", "01", "AaBb'%_\\")
ANY_LENGTH = ("levenshtein", "damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity")
NAMES = (*ANY_LENGTH, "hamming", "jaccard")


def text(choose: random.Random, longest: int) -> str:
    letters = choose.choice(ALPHABETS)
    return "".join(choose.choice(letters) for _ in range(choose.randint(0, choose.choice([3, 12, longest]))))


def edited(choose: random.Random, other: str) -> str:
    """A text that is like the other: a few characters changed, moved or left out."""
    letters = list(other)
    for _ in range(choose.randint(0, 3)):
        place = choose.randint(0, len(letters))
        letters[place : place + choose.randint(0, 2)] = choose.choice(["", "x", "é", "".join(letters[:2])])
    return "".join(letters)


def pairs(count: int, seed: int) -> list[tuple[str | None, str | None]]:
    choose = random.Random(seed)
    found: list[tuple[str | None, str | None]] = [(None, "a"), ("a", None), (None, None), ("", ""), ("", "a")]
    while len(found) < count:
        one = text(choose, 200)
        found.append((one, edited(choose, one) if choose.random() < 0.6 else text(choose, 200)))
    return found


def can_compare(name: str, one: str | None, other: str | None) -> bool:
    """Whether DuckDB has an answer, and no error, for these."""
    if one is None or other is None or name in ANY_LENGTH:
        return True
    same_length = len(one.encode()) == len(other.encode())
    return bool(one and other) and (name == "jaccard" or same_length)


def duckdb_answers(connection: duckdb.DuckDBPyConnection, name: str, given: list[Any]) -> list[Any]:
    columns = [[pair[side] for pair in given] for side in (0, 1)]
    rows = connection.execute(
        f"SELECT {name}(a, b) FROM (SELECT unnest(?::VARCHAR[]) a, unnest(?::VARCHAR[]) b)", columns
    ).fetchall()
    return [answer for (answer,) in rows]


def require_same(ours: list[Any], theirs: list[Any]) -> None:
    """Equal but for the last bit of doubles: DuckDB's compiler joins a product and a sum."""
    assert [answer is None for answer in ours] == [answer is None for answer in theirs]
    numbers = [[answer for answer in answers if answer is not None] for answers in (ours, theirs)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_as_duckdb_for_thousands_of_pairs(oracle: duckdb.DuckDBPyConnection, name: str) -> None:
    given = [pair for pair in pairs(6000, seed=20) if can_compare(name, *pair)]
    kind: Any = pa.int64() if "levenshtein" in name or name == "hamming" else pa.float64()
    columns: list[Any] = [pa.array([pair[side] for pair in given], pa.large_string()) for side in (0, 1)]
    require_same(FUNCTIONS[name](columns, kind).to_pylist(), duckdb_answers(oracle, name, given))


@pytest.mark.parametrize(
    ("name", "in_steps"),
    [
        ("levenshtein", similarity._levenshtein),
        ("damerau_levenshtein", similarity._damerau_levenshtein),
        ("jaro_similarity", similarity._jaro),
        ("jaro_winkler_similarity", similarity._jaro_winkler),
    ],
)
def test_in_steps_as_duckdb(oracle: duckdb.DuckDBPyConnection, name: str, in_steps: Any) -> None:
    given = [(one, other) for one, other in pairs(600, seed=21) if one is not None and other is not None]
    ours = [in_steps(one.encode(), other.encode()) for one, other in given]
    require_same(ours, duckdb_answers(oracle, name, given))


@pytest.mark.parametrize("name", ANY_LENGTH)
@pytest.mark.parametrize(
    ("one", "other"),
    [(2_800, 2_900), (8_000, 8_200), (10_000_000, 10_000_000), (10_000_000, 3)],
)
def test_a_cancelled_query_stops_soon(name: str, one: int, other: int) -> None:
    asked = [time.monotonic()]

    def check() -> None:
        asked.append(time.monotonic())
        if asked[-1] > asked[0] + 0.3:
            raise CancelledError("the query was cancelled")

    columns: list[Any] = [
        pa.array(["ab" * (length // 2) + end], pa.large_string())
        for length, end in ((one, "x"), (other, "y"))
    ]
    with use_cancellation_check(check), contextlib.suppress(CancelledError):
        FUNCTIONS[name](columns, pa.float64())
    asked.append(time.monotonic())
    assert max(after - before for before, after in pairwise(asked)) < 1


def test_the_library_is_imported_by_the_first_query_that_asks_for_it() -> None:
    code = """
import sys, bamquery
connection = bamquery.connect()
connection.sql("SELECT upper('a'), levenshtein(NULL, 'a')").fetchall()
assert "rapidfuzz" not in sys.modules
connection.sql("SELECT levenshtein('a', 'b')").fetchall()
assert "rapidfuzz" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
