"""Deep statements: planned and run on a stack with room for them, or an error that names the limit."""

from __future__ import annotations

import sys

import pytest

import bamquery
from bamquery.errors import SqlError
from bamquery.statement_context import deep_recursion


def _parentheses(levels: int) -> str:
    return "SELECT " + "(1+" * levels + "1" + ")" * levels


def _subqueries(levels: int) -> str:
    return "SELECT x FROM " + "(SELECT x + 1 AS x FROM " * levels + "(SELECT 1 AS x)" + ")" * levels


def _sum(terms: int) -> str:
    return "SELECT " + " + ".join(["x"] * terms) + " FROM range(2, 3) t(x)"


def _joins(tables: int) -> str:
    names = [f"(SELECT {i} AS a) t{i}" for i in range(tables)]
    return f"SELECT t0.a + t{tables - 1}.a FROM {', '.join(names)}"


@pytest.mark.parametrize(
    ("sql", "value"),
    [(_parentheses(400), 401), (_subqueries(300), 301), (_sum(700), 1400), (_joins(150), 149)],
    ids=["parentheses", "subqueries", "sum", "joins"],
)
def test_deep_statements_run(con: bamquery.Connection, sql: str, value: int) -> None:
    before = sys.getrecursionlimit()
    assert con.sql(sql).fetchall() == [(value,)]
    assert con.sql(f"EXPLAIN {sql}").fetchall()
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("sql", [_parentheses(1100), _sum(1100), _subqueries(1100)])
def test_depth_beyond_the_setting_is_refused_by_its_name(con: bamquery.Connection, sql: str) -> None:
    with pytest.raises(SqlError, match="max_expression_depth"):
        con.sql(sql)


def test_depth_is_a_setting(con: bamquery.Connection) -> None:
    con.set(max_expression_depth=20)
    with pytest.raises(SqlError, match="max_expression_depth, 20, levels"):
        con.sql(_parentheses(30))
    con.set(max_expression_depth=40)
    assert con.sql(_parentheses(30)).fetchall() == [(31,)]


def test_aliases_that_double_are_refused(con: bamquery.Connection) -> None:
    columns = ", ".join(f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, 40))
    with pytest.raises(SqlError, match="max_expression_parts"):
        con.sql(f"SELECT x AS a0, {columns} FROM range(2) t(x)")
    columns = ", ".join(f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, 9))
    assert con.sql(f"SELECT x AS a0, {columns} FROM range(1, 2) t(x)").fetchall()[0][-1] == 256


def test_without_a_large_stack_there_is_an_error_of_ours(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(work: object) -> object:
        raise RecursionError("no thread")

    monkeypatch.setattr(deep_recursion, "_start_thread", none)
    with pytest.raises(SqlError, match="nested too deeply"):
        con.sql(_parentheses(400))
    monkeypatch.undo()
    assert con.sql(_parentheses(400)).fetchall() == [(401,)]


def test_grouping_sets_are_limited_by_a_setting(con: bamquery.Connection) -> None:
    columns = ", ".join(f"c{i}" for i in range(5))
    values = ", ".join(f"{i} AS c{i}" for i in range(5))
    con.set(max_grouping_sets=31)
    with pytest.raises(SqlError, match="max_grouping_sets, 31"):
        con.sql(f"SELECT count(*) FROM (SELECT {values}) GROUP BY CUBE ({columns})")
    con.set(max_grouping_sets=32)
    assert len(con.sql(f"SELECT count(*) FROM (SELECT {values}) GROUP BY CUBE ({columns})").fetchall()) == 32
