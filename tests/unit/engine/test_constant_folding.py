"""Constants that only a device can compute are literals before a plan is optimised."""

from __future__ import annotations

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.constant_folding import fold_constants, fold_expression
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, walk
from bamquery.plan.nodes import Project
from tests.plans import plan_of


def folded(sql: str) -> list[Expression]:
    plan = fold_constants(plan_of(sql))
    assert isinstance(plan, Project)
    return list(plan.expressions)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("upper('a') || lpad('b', 3, '-')", "A--b"),
        ("make_date(2024, 2, 28 + 1)", "2024-02-29"),
        ("strftime(DATE '2024-01-31' + INTERVAL 1 MONTH, '%d.%m.')", "29.02."),
        ("CAST(INTERVAL '90 minutes' AS VARCHAR)", "01:30:00"),
        ("CASE WHEN sqrt(4) > 1 THEN hex(255) ELSE 'no' END", "FF"),
        ("regexp_extract('trip 12', '[0-9]+')", "12"),
    ],
)
def test_constants(sql: str, text: str) -> None:
    (literal,) = folded(f"SELECT {sql}")
    assert isinstance(literal, Literal)
    assert str(literal.value) == text


def test_what_would_fail_is_left_to_fail() -> None:
    (call,) = folded("SELECT CASE WHEN id > 0 THEN chr(-1) END FROM trips")
    assert any(isinstance(part, Call) and part.function == "chr" for part in walk(call))
    with bamquery.connect() as database:
        assert database.sql("SELECT CASE WHEN 1 > 2 THEN chr(-1) END").fetchall() == [(None,)]
        with pytest.raises(ExecutionError, match="-1 is not the number of a Unicode character"):
            database.sql("SELECT chr(-1)").fetchall()


def test_columns_are_left_alone() -> None:
    column = ColumnRef(0, "a", pa.large_string())
    call = Call("upper", (column,), pa.large_string())
    assert fold_expression(call) == call


def test_now_is_one_moment_of_a_run() -> None:
    with bamquery.connect() as database:
        relation = database.sql(
            "SELECT now(), now() - now() = INTERVAL 0 SECONDS, current_date = now()::DATE, "
            "localtimestamp = now()::TIMESTAMP, localtime = localtimestamp::TIME FROM (VALUES (1), (2)) v(i)"
        )
        first, second = relation.fetchall()
        assert first == second
        assert first[1:] == (True, True, True, True)
        assert relation.fetchall()[0][0] > first[0]


def test_scans_prune_by_what_was_folded() -> None:
    with bamquery.connect() as database:
        database.sql("CREATE TABLE days AS SELECT DATE '2024-01-01' + i AS day FROM (VALUES (1), (40)) v(i)")
        plan = database.sql("SELECT day FROM days WHERE day > last_day(make_date(2024, 1, 5))").explain()
        assert "filter: (day > '2024-01-31')" in plan


def test_what_takes_long_is_left_to_the_query() -> None:
    (call,) = folded("SELECT levenshtein(repeat('ab', 100000), repeat('ba', 100000))")
    assert isinstance(call, Call)
    (literal,) = folded("SELECT levenshtein(repeat('ab', 100), repeat('ba', 100))")
    assert isinstance(literal, Literal)
    assert literal.value.as_py() == 2
