"""All rules together: they come to an end, at one plan, which says the same columns."""

from __future__ import annotations

import pytest

from bamquery.plan.format import format_plan
from bamquery.plan.optimizer import RULES, optimize
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import plan_of

QUERIES = [
    sql
    for path in [
        FOLDER / "queries.txt",
        FOLDER / "column_names.txt",
        *sorted((FOLDER / "rules").glob("*.txt")),
    ]
    for sql, _ in GoldenFile(path).cases
]


@pytest.mark.parametrize("sql", QUERIES)
def test_comes_to_rest(sql: str) -> None:
    optimised = optimize(plan_of(sql))
    for rule in RULES:
        assert format_plan(rule(optimised), exact=True) == format_plan(optimised, exact=True), rule.__name__


@pytest.mark.parametrize("sql", QUERIES)
def test_keeps_columns(sql: str) -> None:
    plan = plan_of(sql)
    for rule in RULES:
        assert rule(plan).fields == plan.fields, rule.__name__
    assert optimize(plan).fields == plan.fields
