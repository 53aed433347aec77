"""What statements become, what they are refused for, and what their columns are called."""

from __future__ import annotations

import dataclasses

import pytest

from bamquery.data_types.names import type_name
from bamquery.errors import SqlError
from bamquery.plan.bound_statements import ColumnFigures
from bamquery.plan.format import format_plan
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import plan_of, statement_of


def _error(sql: str) -> str:
    with pytest.raises(SqlError) as caught:
        statement_of(sql)
    return f"{type(caught.value).__name__}\n{caught.value}"


def _statement(sql: str) -> str:
    statement = statement_of(sql)
    parts = []
    for field in filter(lambda one: one.repr, dataclasses.fields(statement)):
        name = "plan" if field.name == "asked" else field.name
        value = getattr(statement, name)
        if name == "plan":
            value = "\n" + format_plan(value, exact=True)
        elif name == "fields":
            value = ", ".join(f"{f.name} {type_name(f.type)}" for f in value)
        elif name == "figures":
            value = "".join(map(_figures_text, value))
        elif name == "statement":
            value = "\n" + _statement_text(value)
        parts.append(f"{name}: {value}")
    return "\n".join([type(statement).__name__, *parts])


def _figures_text(part: ColumnFigures) -> str:
    plans = [("", part.plan), *part.ordered]
    return "".join(f"\n{name}\n{format_plan(plan, exact=True)}" for name, plan in plans)


def _statement_text(statement: object) -> str:
    plan = getattr(statement, "plan")  # noqa: B009
    return f"{type(statement).__name__}\n{format_plan(plan, exact=True)}"


def _columns(sql: str) -> str:
    return "\n".join(f"{field.name}: {type_name(field.type)}" for field in plan_of(sql).fields)


@pytest.mark.parametrize("name", ["syntax_errors", "unsupported", "binder_errors"])
def test_errors(name: str) -> None:
    GoldenFile(FOLDER / f"{name}.txt").check(_error)


def test_statements() -> None:
    GoldenFile(FOLDER / "statements.txt").check(_statement)


@pytest.mark.parametrize("name", ["queries", "joins"])
def test_queries(name: str) -> None:
    GoldenFile(FOLDER / f"{name}.txt").check(lambda sql: format_plan(plan_of(sql), exact=True))


def test_column_names() -> None:
    GoldenFile(FOLDER / "column_names.txt").check(_columns)
