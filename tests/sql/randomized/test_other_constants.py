"""Random queries with other constants: the plan is the one that planning them anew makes."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import BamQueryError
from bamquery.plan.assumptions import Assumptions
from bamquery.plan.expressions import Cast, Literal, walk
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import expressions_of, nodes_of
from bamquery.session.known_query import KnownQuery
from bamquery.session.optimized_plans import optimized_plan
from bamquery.text.statement_text import Place
from tests.selection.effort import effort
from tests.sql.randomized.joins import joins, set_operations, subqueries
from tests.sql.randomized.queries import queries, simple_conditions, table_of
from tests.sql.randomized.windows import group_queries, window_queries

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
ANY = (
    queries()
    | simple_conditions()
    | joins()
    | subqueries()
    | set_operations()
    | window_queries()
    | group_queries()
)
_CONSTANT = re.compile(r"'(?:[^']|'')*'|(?<![\w.'])\d+(?:\.\d+)?(?![\w.'])")
_BY_NUMBER = re.compile(r"(?:\bBY (?:[\w ]*, )*|LIMIT |OFFSET |EXISTS \(SELECT )$", re.IGNORECASE)
_NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "007",
    "100",
    "127",
    "128",
    "70000",
    "3000000000",
    "99999999999999999999",
)
_DECIMALS = ("0.0", "0.5", "1.0", "1.5", "1.50", "2.25", "99.99", "100000.0", "0.000001")
_STRINGS = (
    *("", "a", "b", "ab", "it''s", "x y", "a%", "%", "1", "1.5", "-3", "year", "red", "true", "1 day", "inf"),
    *("2024-01-01", "2024-02-29", "2023-02-29", "2024-01-01 12:00:00", "\n", "\\"),
)


@pytest.fixture(scope="module")
def database() -> Iterator[Connection]:
    with bamquery.connect(device="cpu", threads=1) as connection:
        connection.load("r", table_of(rows=120, seed=7))
        for number in (1, 2):
            connection.load(f"r{number}", table_of(rows=50 * number, seed=number))
        yield connection


def exchange(sql: str, choose: random.Random) -> str:
    """The text with some of its constants exchanged, most of them for what is alike."""
    rate = choose.choice((0.1, 0.3, 0.8))
    known: dict[str, str] = {}
    alike = choose.random() < 0.7  # what was equal is equal

    def other(found: re.Match[str]) -> str:
        written = found[0]
        if _BY_NUMBER.search(sql, 0, found.start()) and choose.random() < 0.9:
            return written
        if alike and written in known:
            return known[written]
        known[written] = made = _other_constant(written, choose) if choose.random() < rate else written
        return made

    return _CONSTANT.sub(other, sql)


def _other_constant(written: str, choose: random.Random) -> str:
    if written.startswith("'"):
        if choose.random() < 0.3:
            return f"'{choose.choice(_STRINGS)}'"
        return re.sub(r"\d", lambda digit: str(choose.randint(0, 2)), written)
    if choose.random() < 0.7:
        return re.sub(r"\d", lambda digit: str(choose.randint(1, 9)), written)
    return choose.choice(_DECIMALS if "." in written or choose.random() < 0.1 else _NUMBERS)


def _places(plan: Plan) -> list[Place]:
    found = [
        node for one in nodes_of(plan) for expression in expressions_of(one) for node in walk(expression)
    ]
    return [node.place for node in found if isinstance(node, Cast) and node.place is not None]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, Literal):
        return format_expression(value, exact=True)
    if is_dataclass(value):
        return f"{type(value).__name__}{_text(tuple(getattr(value, one.name) for one in fields(value)))}"
    return str(value)


def _written(plan: Plan) -> list[str]:
    """All of a plan: of each node its kind, columns, own expressions and all else but what is below."""
    lines = []
    for node in nodes_of(plan):
        own = [
            _text(getattr(node, one.name))
            for one in fields(node)
            if one.name
            not in ("child", "left", "right", "inputs", "first", "step", "source", "batch", "table")
        ]
        expressions = [format_expression(one, exact=True) for one in expressions_of(node)]
        columns = [(field.name, str(field.type)) for field in node.fields]
        lines.append(f"{type(node).__name__} {columns} {expressions} {own}")
    return lines


def outcome(database: Connection, sql: str, values: list[Any] | None = None, *, anew: bool) -> Any:
    """What a text is planned to, or the error that it is refused with."""
    database.set("plan_cache", not anew)
    try:
        relation = database.sql(sql, values)
        bound = relation._plan
        # Twice, as an earlier one may be asked for again.
        plans = [bound, optimized_plan(bound)]
        relation.run().close()
        return [(relation.columns, relation.types, _written(plan), _places(plan)) for plan in plans]
    except BamQueryError as error:
        return type(error), str(error)


def _first_difference(one: Any, other: Any) -> str:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return next((_first_difference(a, b) for a, b in zip(one, other, strict=True) if a != b), "")
    return f"{one}\nanew: {other}"


def _differences(database: Connection, sql: str, seed: int, hits: Counter[str]) -> list[str]:
    choose = random.Random(seed)
    texts = (sql, *(exchange(sql, choose) for _ in range(4)), sql)
    return _differences_of(database, [(text, None) for text in texts], hits)


def _differences_of(
    database: Connection, statements: list[tuple[str, list[Any] | None]], hits: Counter[str]
) -> list[str]:
    query = KnownQuery.query

    def counted(self: KnownQuery, text: str, constants: Any, catalog: Any) -> Any:
        found = query(self, text, constants, catalog)
        if constants != self.constants:
            hits["served" if found is not None else "not served"] += 1
        return found

    found = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KnownQuery, "query", counted)
        for text, values in statements:
            mine = outcome(database, text, values, anew=False)
            anew = outcome(database, text, values, anew=True)
            if mine != anew:
                found.append(f"{text} {values}\nafter {statements[0]}\n{_first_difference(mine, anew)}")
    return found


def _with_values(sql: str, choose: random.Random) -> list[tuple[str, list[Any] | None]]:
    """The text with parameters in the places of some of its constants, and values like these for them."""
    written: list[str] = []

    def place(found: re.Match[str]) -> str:
        by_number = _BY_NUMBER.search(sql, 0, found.start()) is not None
        after_a_word = (
            re.search(r"[A-Za-z] $", sql[: found.start()]) is not None
        )  # DATE '...', INTERVAL '...'
        if by_number or (after_a_word and found[0].startswith("'")) or choose.random() < 0.2:
            return found[0]
        written.append(found[0])
        return "?"

    text = _CONSTANT.sub(place, sql)
    others = [
        [_other_constant(one, choose) if choose.random() < 0.6 else one for one in written] for _ in range(4)
    ]
    return [(text, [_value(one, choose) for one in values]) for values in (written, *others, written)]


def _value(written: str, choose: random.Random) -> Any:
    if choose.random() < 0.03:
        return choose.choice((None, True, b"a", dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 12)))
    if written.startswith("'"):
        return written[1:-1].replace("''", "'")
    if "." not in written:
        return int(written) if choose.random() < 0.9 else -int(written)
    return Decimal(written) if choose.random() < 0.7 else float(written)


def test_random_texts_are_served_by_plans_of_others(database: Connection) -> None:
    """Or the test below would prove nothing."""
    hits: Counter[str] = Counter()
    for seed, sql in enumerate(3 * _FIXED):
        assert not _differences(database, sql, seed, hits)
    assert hits["served"] > len(_FIXED)


def test_random_values_are_served_by_plans_of_others(database: Connection) -> None:
    hits: Counter[str] = Counter()
    for seed, sql in enumerate(3 * _FIXED):
        assert not _differences_of(database, _with_values(sql, random.Random(seed)), hits)
    assert hits["served"] > len(_FIXED)


@pytest.mark.parametrize("fault", ["fix", "note"])
def test_what_is_not_noted_of_values_is_found(
    database: Connection, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(Assumptions, fault, lambda *arguments: None)
    assert any(
        _differences_of(database, _with_values(sql, random.Random(seed)), Counter())
        for seed in range(20)
        for sql in _FIXED
    )


@pytest.mark.parametrize("fault", ["fix", "note"])
def test_what_is_not_noted_is_found(
    database: Connection, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Plans that assume something without saying so are not those that planning anew makes."""
    monkeypatch.setattr(Assumptions, fault, lambda *arguments: None)
    assert any(_differences(database, sql, seed, Counter()) for seed in range(20) for sql in _FIXED)


_FIXED = (
    "SELECT count(*) AS n FROM r WHERE i < 3 AND m > 1.25 AND s LIKE 'a%'",
    "SELECT sum(i * 2) AS x, max(CASE WHEN t > DATE '2024-01-01' THEN 1 ELSE 7 END) AS y FROM r WHERE j <> 7",
    "SELECT i + 1 AS a, j AS b FROM r WHERE k = 2 OR k = 7 ORDER BY 1, 2 LIMIT 9",
    "SELECT count(*) AS n FROM r x, r y, r z WHERE x.i = y.i AND y.j = z.j AND x.u < 3 AND z.s > 'b'",
    "SELECT i FROM r WHERE i > (SELECT avg(j) FROM r WHERE k < 3) AND p < TIMESTAMP '2024-01-01 12:00:00'",
    "SELECT i, sum(j + 1) OVER (PARTITION BY k ORDER BY i) AS x FROM r WHERE u < 200 AND NOT i = 100",
    "SELECT b, quantile_cont(d, 0.5) AS q FROM r WHERE i < 7 GROUP BY b HAVING count(*) > 2",
)


@pytest.mark.long
@settings(max_examples=effort(60, 4000), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(sql=ANY, seed=st.integers(0, 1 << 30))
def test_plans(database: Connection, sql: str, seed: int) -> None:
    assert not _differences(database, sql, seed, Counter())


@pytest.mark.long
@settings(max_examples=effort(40, 4000), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(sql=ANY, seed=st.integers(0, 1 << 30))
def test_plans_with_values(database: Connection, sql: str, seed: int) -> None:
    assert not _differences_of(database, _with_values(sql, random.Random(seed)), Counter())
