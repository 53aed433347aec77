"""VALUES of many rows: asked between any two of them whether to go on, and parameters named in one pass."""

from __future__ import annotations

import sys
from typing import Any

from sqlglot import exp

from bamquery.sql_frontend import parameters
from bamquery.sql_frontend.binder.sources.from_clause import bind_values
from bamquery.sql_frontend.parser.parser import parse
from bamquery.statement_context.cancellation import use_cancellation_check


def test_each_constant_asks_whether_to_go_on() -> None:
    asked = 0
    before_each: list[int] = []

    def ask() -> None:
        nonlocal asked
        asked += 1

    def folded(value: Any) -> Any:
        before_each.append(asked)
        return value

    sql = "SELECT * FROM (VALUES " + ", ".join(f"({i}, '{i}')" for i in range(50)) + ")"
    values = parse(sql)[0].find(exp.Values)
    assert values is not None
    with use_cancellation_check(ask):
        plan = bind_values(values, sql, folded)
    assert [len(field.name) for field in plan.fields] == [4, 4]
    assert len(before_each) == 100
    assert len(set(before_each)) == 100


def test_names_of_parameters_are_looked_at_once() -> None:
    sql = "SELECT " + ", ".join("?" * 200)
    trees = parse(sql)
    looked = 0

    def count(frame: object, event: str, function: Any) -> None:
        nonlocal looked
        looked += event == "c_call" and function.__name__ == "isdigit"

    sys.setprofile(count)
    try:
        parameters.fill(trees, sql, list(range(200)))
    finally:
        sys.setprofile(None)
    assert 0 < looked <= 1000
