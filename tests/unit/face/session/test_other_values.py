"""A query asked with other values for its parameters is not planned anew, and answers as if it were."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bamquery
from bamquery.errors import BamQueryError
from bamquery.session import optimized_plans, statement_cache

ROWS = """
SELECT range AS a, range % 7 AS b, range / 4.0 AS f, (range * 0.25)::DECIMAL(10, 2) AS m,
       'name ' || range AS s, DATE '2024-01-01' + range::INTEGER AS d,
       TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * range AS t
FROM range(100)
"""
Values = list[Any] | dict[str, Any]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "t.bq", device="cpu", threads=1) as con:
        con.sql(f"CREATE TABLE t AS {ROWS}; CREATE TABLE u AS SELECT a, b, s FROM t WHERE a < 40")
        yield con


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were bound."""
    texts: list[str] = []
    bind = statement_cache.bind

    def noted(text: str, *rest: Any) -> Any:
        texts.append(text)
        return bind(text, *rest)

    monkeypatch.setattr(statement_cache, "bind", noted)
    return texts


def answer(con: bamquery.Connection, text: str, values: Values) -> object:
    try:
        relation = con.sql(text, values)
        table = relation.to_arrow()
        kinds = [str(kind) for kind in table.schema.types]
        return table.schema.names, kinds, table.to_pylist(), relation.explain()
    except BamQueryError as error:
        return type(error), str(error)


def anew(con: bamquery.Connection, text: str, values: Values) -> object:
    """The answer without a plan of before, or the error."""
    con.set("plan_cache", False)
    try:
        return answer(con, text, values)
    finally:
        con.set("plan_cache", True)


SERVED: dict[str, tuple[str, Values, Values]] = {
    "a number": ("SELECT a FROM t WHERE a > ?", [90], [7]),
    "by number": ("SELECT a FROM t WHERE a > $2 AND b < $1", [3, 90], [5, 7]),
    "by name": (
        "SELECT a FROM t WHERE a > $least AND b < $most",
        {"least": 9, "most": 3},
        {"least": 8, "most": 5},
    ),
    "twice": ("SELECT a FROM t WHERE a = $1 OR b = $1", [3], [5]),
    "beside a constant": ("SELECT a FROM t WHERE a > ? AND b = 3", [50], [20]),
    "a negative number": ("SELECT a FROM t WHERE a - 50 > ?", [-9], [-2]),
    "a double": ("SELECT a FROM t WHERE f > ?", [1.5], [20.25]),
    "a double of numpy's": ("SELECT a FROM t WHERE f > ?", [np.float64(1.5)], [np.float64(20.25)]),
    "a decimal": ("SELECT a FROM t WHERE m < ?", [Decimal("1.25")], [Decimal("9.75")]),
    "a string": ("SELECT a FROM t WHERE s = ?", ["name 5"], ["it's"]),
    "a string that is a date": ("SELECT a FROM t WHERE d < ?", ["2024-02-01"], ["2024-03-05"]),
    "a pattern": ("SELECT a FROM t WHERE s LIKE ?", ["%9"], ["name 3%"]),
    "a date": ("SELECT a FROM t WHERE d < ?", [datetime.date(2024, 2, 1)], [datetime.date(2024, 3, 5)]),
    "a timestamp": (
        "SELECT a FROM t WHERE t < ?",
        [datetime.datetime(2024, 1, 2, 3, 4)],
        [datetime.datetime(2024, 1, 3)],
    ),
    "an interval": (
        "SELECT a FROM t WHERE d < DATE '2024-01-03' + ?",
        [datetime.timedelta(days=9)],
        [datetime.timedelta(days=3)],
    ),
    "a column of the answer": ("SELECT a + ? AS x, ? AS y FROM t WHERE a < ?", [1, "p", 9], [2, "q", 5]),
    "a column without a name": ("SELECT a + ? FROM t WHERE a < 5", [1], [2]),
    "members": ("SELECT a FROM t WHERE b IN (?, ?)", [1, 3], [2, 5]),
    "a joined table": ("SELECT count(*) AS n FROM t, u WHERE t.a = u.a AND u.s < ?", ["name 3"], ["name 2"]),
    "null and truth": ("SELECT a FROM t WHERE a < ? AND coalesce(?, ?)", [9, None, True], [5, None, True]),
    "bytes": ("SELECT a FROM t WHERE s::BLOB > ?", [b"name 5"], [b"\x00\xff"]),
}
PLANNED_ANEW: dict[str, tuple[str, Values, Values]] = {
    "LIMIT": ("SELECT a FROM t ORDER BY a LIMIT ?", [3], [5]),
    "null": ("SELECT a FROM t WHERE a < ?", [9], [None]),
    "a larger integer": ("SELECT a + ? AS x FROM t", [1], [10000000000000]),
    "another sign": ("SELECT a + ? AS x FROM t", [1], [-1]),
    "another type": ("SELECT a + ? AS x FROM t", [1], [1.0]),
    "a wider decimal": ("SELECT m * ? AS x FROM t", [Decimal("1.5")], [Decimal("1.55")]),
    "another truth": ("SELECT a FROM t WHERE a < 5 AND ?", [True], [False]),
    "no date": ("SELECT a FROM t WHERE d = ?", ["2024-01-03"], ["2024-02-30"]),
    "equal to another": ("SELECT a FROM t WHERE a = ? OR a = ?", [1, 2], [2, 2]),
    "equal to a constant": ("SELECT a FROM t WHERE a = ? OR a = 2", [1], [2]),
    "a share": ("SELECT quantile_cont(a, ?) AS q FROM t", [0.5], [0.2]),
    "division by zero": ("SELECT a // ? AS x FROM t", [2], [0]),
    "hours of a day": (
        "SELECT a FROM t WHERE d < DATE '2024-01-03' + ?",
        [datetime.timedelta(days=9)],
        [datetime.timedelta(days=3, hours=5)],
    ),
    "a unit": ("SELECT date_trunc(?, d) AS x FROM t", ["month"], ["year"]),
    "a number beyond the type": ("SELECT count(*) AS n FROM t WHERE b < ?", [3], [3000000000]),
    "other names": ("SELECT a FROM t WHERE a = $x", {"x": 1}, {"X": 2}),
    "one too many": ("SELECT a FROM t WHERE a = ?", [1], [1, 2]),
    "one too few": ("SELECT a FROM t WHERE a = ?", [1], []),
    "of no type": ("SELECT a FROM t WHERE a = ?", [1], [[1, 2]]),
    "too many digits": ("SELECT a FROM t WHERE a = ?", [1], [10**40]),
}


@pytest.mark.parametrize("case", SERVED.values(), ids=SERVED)
def test_other_values_are_not_planned_anew(
    con: bamquery.Connection,
    bound: list[str],
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, Values, Values],
) -> None:
    text, first, second = case
    expected = [anew(con, text, values) for values in (first, second)]
    con.sql(text, first).run().close()
    bound.clear()
    monkeypatch.setattr(optimized_plans, "optimize", lambda plan: pytest.fail("it was optimised"))
    assert [answer(con, text, values) for values in (second, first, second)] == [
        expected[1],
        expected[0],
        expected[1],
    ]
    assert bound == []


@pytest.mark.parametrize("case", [*SERVED.values(), *PLANNED_ANEW.values()], ids=(*SERVED, *PLANNED_ANEW))
def test_answers_are_those_of_a_new_plan(con: bamquery.Connection, case: tuple[str, Values, Values]) -> None:
    """Rows, names, types and what EXPLAIN says, or the error with its place."""
    text, first, second = case
    for values in (first, second, first, second, second):
        assert answer(con, text, values) == anew(con, text, values), values


def test_values_of_an_iterator_are_taken_once(con: bamquery.Connection) -> None:
    for number in (5, 6):
        assert con.sql("SELECT a FROM t WHERE a = ?", iter([number])).fetchall() == [(number,)]


def test_a_variable_takes_the_place_of_a_value(con: bamquery.Connection) -> None:
    text = "SELECT a FROM t WHERE a = $one OR a = $two"
    for value in (1, 2):
        con.sql(f"SET VARIABLE two = {value}")
        assert con.sql(text, {"one": 7}).fetchall() == [(value,), (7,)]
    con.sql("RESET VARIABLE two")
    with pytest.raises(BamQueryError, match=r"no value for parameter \$two"):
        con.sql(text, {"one": 7})


def test_so_many_or_long_values_are_planned_each_time(con: bamquery.Connection, bound: list[str]) -> None:
    many = "SELECT a FROM t WHERE a IN (" + ", ".join("?" * 300) + ")"
    for text, values in ((many, list(range(300))), ("SELECT a FROM t WHERE s = ?", ["x" * 70_000])):
        bound.clear()
        for _ in range(2):
            con.sql(text, values).run().close()
        assert bound == [text, text]


def test_a_text_with_values_is_no_text_without(con: bamquery.Connection) -> None:
    assert con.sql("SELECT a FROM t WHERE a = ?", [1]).fetchall() == [(1,)]
    with pytest.raises(BamQueryError, match="there is no value for parameter"):
        con.sql("SELECT a FROM t WHERE a = ?")
