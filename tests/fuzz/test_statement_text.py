"""Broken statements are errors that users can read, never crashes, and never run as something else."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bamquery
from bamquery.errors import SqlError
from bamquery.sql_frontend.statement_binder import bind
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import catalog
from tests.selection.effort import effort

STATEMENTS = [
    sql
    for name in ("queries", "statements", "column_names", "unsupported", "binder_errors", "rules/optimize")
    for sql, _ in GoldenFile(FOLDER / f"{name}.txt").cases
]
WORDS = sorted({word for sql in STATEMENTS for word in sql.split()})

_STEPS = "".join(f", c{i} AS (SELECT DISTINCT a + 1 AS a FROM c{i - 1})" for i in range(1, 400))


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A statement with some words removed, doubled, swapped or put in."""
    words = draw(st.sampled_from(STATEMENTS)).split()
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words)))
        match draw(st.sampled_from(("remove", "double", "swap", "insert"))):
            case "remove":
                del words[place : place + 1]
            case "double":
                words[place:place] = words[place : place + 1]
            case "swap":
                words[place : place + 2] = reversed(words[place : place + 2])
            case "insert":
                words.insert(place, draw(st.sampled_from(WORDS)))
    return " ".join(words)


def _check(sql: str) -> None:
    try:
        list(bind(sql, catalog()))
    except SqlError as error:
        lines = sql.splitlines()
        for reason in error.reasons:
            assert reason.message
            assert 0 <= reason.line <= len(lines)
            assert reason.line == 0 or 1 <= reason.column <= len(lines[reason.line - 1]) + 1


@pytest.mark.long
@settings(max_examples=effort(150, 5000), derandomize=True, deadline=None)
@given(broken())
def test_words(sql: str) -> None:
    _check(sql)


@pytest.mark.long
@settings(max_examples=effort(150, 5000), derandomize=True, deadline=None)
@given(st.sampled_from(STATEMENTS), st.data())
def test_characters(sql: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(sql)))
    length = data.draw(st.integers(0, 3))
    _check(sql[:place] + data.draw(st.text(max_size=3)) + sql[place + length :])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.text(max_size=40))
def test_anything(sql: str) -> None:
    _check(sql)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(broken())
def test_many(sql: str) -> None:
    _check(sql)


def test_too_deep_is_said_to_be_so() -> None:
    for sql in ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "SELECT " + "NOT " * 5_000 + "TRUE"):
        with pytest.raises(SqlError, match="more than max_expression_depth, 1,000, levels deep"):
            list(bind(sql, catalog()))


def test_deep_enough() -> None:
    """What docs/sql.md promises."""
    for item in ("(" * 30 + "id" + ")" * 30, "abs(" * 30 + "id" + ")" * 30, " + ".join(["id"] * 150)):
        list(bind(f"SELECT {item} FROM trips", catalog()))
    list(bind("SELECT 1 FROM trips WHERE " + " OR ".join(["id = 1 AND paid"] * 5_000), catalog()))


def test_long_unions() -> None:
    for word in ("UNION", "UNION ALL", "UNION BY NAME", "UNION ALL BY NAME"):
        (row,) = (
            bamquery.connect(device="cpu")
            .sql(f"SELECT count(*) FROM ({f' {word} '.join(f'SELECT {i % 7} AS a' for i in range(1000))})")
            .fetchall()
        )
        assert row == (1000 if "ALL" in word else 7,)


@pytest.mark.parametrize("word", ["EXCEPT", "INTERSECT ALL"])
def test_long_chains(word: str) -> None:
    query = f" {word} ".join(["SELECT 1 AS a"] * 130)
    with bamquery.connect(device="cpu") as connection:
        expected = [] if word == "EXCEPT" else [(1,)]
        assert connection.sql(query).fetchall() == expected
        connection.sql(f"CREATE TABLE t AS {query}")
        assert connection.sql("FROM t").fetchall() == expected


def test_a_long_chain_of_with() -> None:
    with bamquery.connect(device="cpu") as connection:
        answer = connection.sql(f"WITH c0 AS (SELECT 1 AS a){_STEPS} FROM c399")
        assert answer.fetchall() == [(400,)]


def test_syntax_errors_are_duckdbs_too() -> None:
    """We call nothing a syntax error that DuckDB would take, but for statements of our own."""
    ours = ("VACUUM", "SET", "OPTIMIZE")
    for sql, _ in GoldenFile(FOLDER / "syntax_errors.txt").cases:
        if not sql.startswith(ours):
            with pytest.raises(duckdb.Error):
                duckdb.sql(sql)
