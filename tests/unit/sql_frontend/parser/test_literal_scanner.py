"""Numbers and dollar quotes end where DuckDB's end."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.sql_frontend.parser.parser import parse

NUMBERS = ("7", "1_000", "1.5", "5.", ".5", "1.e3", ".5e3", "1e3", "1E3", "1e+3", "1e-3", "1_0e1_0")
WRONG = ("1e", "1e+", "1e-", "1.5e", "1e5.5", "1.5.5", "1..5", "1e3.", "1e3e3", ".5.", ".5.5", ".5e3.5")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("rest", ["", "+2", "-2", "+2e1-1e-1", "*2", " x", "x"])
def test_the_rest_is_not_part_of_it(number: str, rest: str) -> None:
    sql = f"SELECT {number}{rest}"
    (tree,) = parse(sql)
    assert duckdb.sql(tree.sql("duckdb")).fetchall() == duckdb.sql(sql).fetchall()


@pytest.mark.parametrize("text", WRONG)
def test_what_is_none(text: str) -> None:
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"SELECT {text}").fetchall()
    with pytest.raises(SqlError, match="is not a number") as error:
        parse(f"SELECT 1,\n  {text}")
    assert (error.value.reasons[0].line, error.value.reasons[0].column) == (2, 3 + text.startswith("."))


@pytest.mark.parametrize(
    "sql", ["SELECT $1,$2", "SELECT $1+$2,$1<$2", "SELECT 3 IN($1,$2)", "SELECT $1::INT+$2"]
)
def test_parameters_without_blanks(sql: str) -> None:
    (tree,) = parse(sql)
    found = sorted(node.name for node in tree.find_all(exp.Placeholder))
    assert found == sorted(["1", "2"] * (sql.count("$") // 2))


@pytest.mark.parametrize(
    ("quoted", "text"),
    [("$$a'b$$", "a'b"), ("$x$ $$ $1,$2 $x$", " $$ $1,$2 "), ("$$$$", ""), ("$ä_1$,$ä_1$", ",")],
)
def test_dollar_quotes(quoted: str, text: str) -> None:
    (tree,) = parse(f"SELECT {quoted}, 'after'")
    assert [node.this for node in tree.expressions] == [text, "after"]
