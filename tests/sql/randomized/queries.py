"""Random tables and random queries over them, in the SQL that BamQuery and DuckDB share.

Values are few and small, so that they meet each other, and so that what overflows is rare.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.sql.randomized import functions as random_functions

NAN, INFINITY = float("nan"), float("inf")
_INTEGERS = [0, 1, -1, 2, 3, -3, 7, 10, 100, -100]
_DOUBLES = [0.0, -0.0, 0.5, -1.5, 2.25, 100.0, NAN, INFINITY, -INFINITY]
_DAY = datetime.date(2024, 1, 1)
_NOON = datetime.datetime(2024, 1, 1, 12)
_SECONDS = [-43_201, -43_200, 0, 1, 59, 43_199, 43_200]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), _INTEGERS),
    "j": (pa.int64(), _INTEGERS),
    "k": (pa.int8(), _INTEGERS),
    "u": (pa.uint16(), [0, 1, 2, 3, 200]),
    "d": (pa.float64(), [*_DOUBLES, 1e10]),
    "f": (pa.float32(), _DOUBLES),
    "m": (pa.decimal128(6, 2), [Decimal(x) for x in ("0.00", "1.25", "-2.50", "99.99")]),
    "s": (pa.large_string(), ["", "a", "A", "b", "ab", "aé", "b%", "x y"]),
    "g": (pa.dictionary(pa.int8(), pa.large_string()), ["red", "green", "blue"]),
    "t": (pa.date32(), [_DAY + datetime.timedelta(days) for days in (-2, -1, 0, 1, 30, 59, 60)]),
    "p": (
        pa.timestamp("us"),
        [_NOON + datetime.timedelta(seconds=s, microseconds=m) for s in _SECONDS for m in (0, 500_000)],
    ),
    "q": (pa.timestamp("s"), [_NOON + datetime.timedelta(seconds=seconds) for seconds in _SECONDS]),
    "b": (pa.bool_(), [True, False]),
}
_NUMBERS = ("i", "j", "k", "u", "d", "f", "m")
_TEXTS = ("s", "g")
_MOMENTS = ("t", "p", "q")

Draw = st.DrawFn


def table_of(rows: int, seed: int) -> pa.Table:
    """A table with every column, one value in five null."""
    choose = random.Random(seed)
    columns = []
    for kind, values in COLUMNS.values():
        chosen = [choose.choice(values) if choose.random() > 0.2 else None for _ in range(rows)]
        if pa.types.is_dictionary(kind):
            columns.append(pa.array(chosen, kind.value_type).dictionary_encode().cast(kind))
        else:
            columns.append(pa.array(chosen, kind))
    return pa.table(columns, names=list(COLUMNS))


def tables() -> st.SearchStrategy[pa.Table]:
    """Tables of few rows."""
    return st.builds(table_of, st.sampled_from([0, 1, 2, 5, 30, 100]), st.integers(0, 1000))


def _one(draw: Draw, *makers: Callable[[], str]) -> str:
    return draw(st.sampled_from(makers))()


def number(draw: Draw, depth: int) -> str:
    """An expression that is a number."""

    def column() -> str:
        return draw(st.sampled_from(_NUMBERS))

    def literal() -> str:
        return draw(st.sampled_from(["0", "1", "2", "-3", "100", "1.5", "0.25", "2e0", "NULL"]))

    def arithmetic() -> str:
        operator = draw(st.sampled_from(["+", "-", "*", "/", "//", "%"]))
        return f"({number(draw, depth - 1)} {operator} {number(draw, depth - 1)})"

    def function() -> str:
        name = draw(st.sampled_from(["abs", "-", "floor", "ceil", "round"]))
        return f"{name}({number(draw, depth - 1)})"

    def of_others() -> str:
        return draw(
            st.sampled_from(
                ["length(s)", "year(t)", "month(p)", "hour(p)", "dayofweek(t)", "(t - DATE '2024-01-01')"]
            )
        )

    def choice() -> str:
        arms = f"{number(draw, depth - 1)} ELSE {number(draw, depth - 1)}"
        return f"CASE WHEN {truth(draw, depth - 1)} THEN {arms} END"

    def fallback() -> str:
        return f"COALESCE({number(draw, depth - 1)}, {number(draw, depth - 1)})"

    def nullif() -> str:
        return f"NULLIF({number(draw, depth - 1)}, {number(draw, depth - 1)})"

    if depth <= 0:
        return _one(draw, column, column, literal)
    called = _called(draw, random_functions.NUMBERS, depth)
    return _one(
        draw, column, literal, arithmetic, arithmetic, function, of_others, choice, fallback, nullif, called
    )


def text(draw: Draw, depth: int) -> str:
    """An expression that is a string."""

    def column() -> str:
        return draw(st.sampled_from(_TEXTS))

    def literal() -> str:
        return draw(st.sampled_from(["'a'", "''", "'b%'", "'red'", "NULL::VARCHAR"]))

    def function() -> str:
        shape = draw(
            st.sampled_from(["lower({})", "upper({})", "trim({})", "substring({}, 2)", "left({}, 1)"])
        )
        return shape.format(text(draw, depth - 1))

    def joined() -> str:
        return f"({text(draw, depth - 1)} || {text(draw, depth - 1)})"

    def choice() -> str:
        arms = f"{text(draw, depth - 1)} ELSE {text(draw, depth - 1)}"
        return f"CASE WHEN {truth(draw, depth - 1)} THEN {arms} END"

    if depth <= 0:
        return _one(draw, column, literal)
    called = _called(draw, random_functions.TEXTS, depth)
    return _one(draw, column, literal, function, joined, choice, called)


def moment(draw: Draw, depth: int) -> str:
    """An expression that is a date or a timestamp."""

    def column() -> str:
        return draw(st.sampled_from(_MOMENTS))

    def literal() -> str:
        return draw(
            st.sampled_from(["DATE '2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00.5'", "DATE '2024-02-29'"])
        )

    def derived() -> str:
        return draw(
            st.sampled_from(["t + 1", "t - 30", "p::DATE", "date_trunc('month', t)", "date_trunc('hour', p)"])
        )

    if depth <= 0:
        return _one(draw, column, literal)
    return _one(draw, column, literal, derived, _called(draw, random_functions.MOMENTS, depth))


def truth(draw: Draw, depth: int) -> str:
    """A condition."""
    comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])

    def column() -> str:
        return "b"

    def compared(of: Callable[[Draw, int], str]) -> Callable[[], str]:
        return lambda: f"{of(draw, depth - 1)} {draw(comparison)} {of(draw, depth - 1)}"

    def sargable() -> str:
        name = draw(st.sampled_from(_NUMBERS))
        bound = draw(st.sampled_from(["1", "2.5", "-0.5", "1e0", "0.1e0", "300", "-1000", "'2'", "1e300"]))
        return f"{name} {draw(comparison)} {bound}"

    def dated() -> str:
        day = "DATE '2024-01-01'"
        bounds = ["'2024-01-01'", day, "'2024-01-01 12:00:00'", "TIMESTAMP '2024-01-01 00:30:00'"]
        name = draw(st.sampled_from([*_MOMENTS, "p::DATE"]))
        return f"{name} {draw(comparison)} {draw(st.sampled_from(bounds))}"

    def listed() -> str:
        name = draw(st.sampled_from(["i", "j", "d", "m"]))
        negation = draw(st.sampled_from(["", "NOT "]))
        return (
            f"{name} {negation}IN ({draw(st.sampled_from(['1', '1, 2', '1, 2.5', '0, NULL', '1.5, 2.5']))})"
        )

    def between() -> str:
        return f"{number(draw, 0)} BETWEEN {number(draw, 0)} AND {number(draw, 0)}"

    def distinct() -> str:
        of = draw(st.sampled_from([number, text]))
        negation = draw(st.sampled_from(["", "NOT "]))
        return f"{of(draw, 0)} IS {negation}DISTINCT FROM {of(draw, 0)}"

    def null() -> str:
        of = draw(st.sampled_from([number, text, moment]))
        return f"({of(draw, depth - 1)}) IS {draw(st.sampled_from(['', 'NOT ']))}NULL"

    def pattern() -> str:
        operator = draw(st.sampled_from(["LIKE", "NOT LIKE", "ILIKE"]))
        wanted = draw(st.sampled_from(["'a%'", "'%'", "'_'", "'B%'"]))
        return f"{text(draw, 0)} {operator} {wanted}"

    def connected() -> str:
        operator = draw(st.sampled_from(["AND", "OR"]))
        return f"({truth(draw, depth - 1)} {operator} {truth(draw, depth - 1)})"

    def negated() -> str:
        return f"(NOT {truth(draw, depth - 1)})"

    if depth <= 0:
        return _one(draw, column, sargable, dated, listed)
    return _one(
        draw,
        *(column, compared(number), compared(text), compared(moment), sargable, sargable, dated, listed),
        *(between, distinct, null, pattern, connected, connected, negated),
        _called(draw, random_functions.TRUTHS, depth),
    )


def _called(draw: Draw, shapes: tuple[str, ...], depth: int) -> Callable[[], str]:
    of = {"n": number, "t": text, "m": moment}
    return lambda: random_functions.call(draw, shapes, of, depth - 1)


def aggregate(draw: Draw) -> str:
    """A call of an aggregate function."""

    def counted() -> str:
        of = draw(st.sampled_from([number, text, moment]))
        return f"count({draw(st.sampled_from(['', 'DISTINCT ']))}{of(draw, 1)})"

    def summed() -> str:
        distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
        return f"{draw(st.sampled_from(['sum', 'avg']))}({distinct}{number(draw, 1)})"

    def extreme() -> str:
        of = draw(st.sampled_from([number, text, moment]))
        return f"{draw(st.sampled_from(['min', 'max']))}({of(draw, 1)})"

    def spread() -> str:
        return (
            f"{draw(st.sampled_from(['stddev', 'var_pop']))}({draw(st.sampled_from(['i', 'j', 'm', 'k']))})"
        )

    def logical() -> str:
        return f"{draw(st.sampled_from(['bool_and', 'bool_or']))}({truth(draw, 1)})"

    call = _one(draw, lambda: "count(*)", counted, summed, extreme, spread, logical)
    return f"{call} FILTER (WHERE {truth(draw, 1)})" if draw(st.integers(0, 4)) == 0 else call


@st.composite
def simple_conditions(draw: Draw) -> str:
    """Many small conditions side by side: the shapes that rules on expressions look for."""
    comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])

    def against_number() -> str:
        bound = draw(
            st.sampled_from(["2.5", "-0.5", "1", "1e0", "2.5e0", "0.1e0", "300", "-1e300", "1.25", "1.251"])
        )
        return f"{draw(st.sampled_from(_NUMBERS))} {draw(comparison)} {bound}"

    def against_moment() -> str:
        bound = draw(
            st.sampled_from(
                [
                    "DATE '2024-01-01'",
                    "TIMESTAMP '2024-01-01 12:00:00'",
                    "TIMESTAMP '2024-01-01 12:00:00.5'",
                    "TIMESTAMP '2024-01-31 00:00:00'",
                ]
            )
        )
        return f"{draw(st.sampled_from([*_MOMENTS, 'p::DATE', 'q::DATE']))} {draw(comparison)} {bound}"

    def one_of() -> str:
        name = draw(st.sampled_from(["i", "k", "s"]))
        values = st.sampled_from(["'a'", "'b'", "'A'"] if name == "s" else ["1", "2", "3", "2.5"])
        return " OR ".join(f"{name} = {draw(values)}" for _ in range(draw(st.integers(1, 3))))

    def plain() -> str:
        return _one(draw, against_number, against_number, against_moment, one_of)

    def both() -> str:
        return f"({plain()}) {draw(st.sampled_from(['AND', 'OR']))} ({plain()})"

    def negated() -> str:
        return f"NOT ({_one(draw, plain, both)})"

    items = [_one(draw, plain, plain, negated, both) for _ in range(12)]
    return f"SELECT {_aliased(items)} FROM r"


SOURCES = [
    "(SELECT * FROM r ORDER BY ALL LIMIT 7 OFFSET 1) r",
    "(SELECT * EXCLUDE (i, d), i + 1 AS i, -d AS d FROM r WHERE i > -3 OR b) r",
    "(SELECT DISTINCT * FROM r WHERE k IS NOT NULL) r",
    "(SELECT i, b, s, max(j) AS j, sum(u) AS u, min(k) AS k, avg(m) AS d, max(f) AS f, min(m) AS m, "
    "max(g) AS g, min(t) AS t, max(p) AS p, count(*) AS n, min(q) AS q FROM r GROUP BY i, b, s) r",
    "(SELECT i, i AS j, k, u, d, f, m, s, g, t, p, q, b FROM (SELECT * FROM r WHERE d > 0) WHERE i < 100) r",
]
"""What stands in FROM instead of the table: queries with the same columns."""


@st.composite
def queries(draw: Draw) -> str:
    """A query whose answer does not depend on the order that rows come in."""
    of = (number, text, moment, truth)
    source = draw(st.sampled_from(["r", "r", "r", *SOURCES]))
    where = f" WHERE {truth(draw, 3)}" if draw(st.booleans()) else ""
    match draw(st.sampled_from(("rows", "distinct", "conditions", "totals", "groups", "groups"))):
        case "rows" | "distinct" as shape:
            items = [draw(st.sampled_from(of))(draw, 2) for _ in range(draw(st.integers(1, 4)))]
            keyword = "SELECT DISTINCT" if shape == "distinct" else "SELECT"
            return f"{keyword} {_aliased(items)} FROM {source}{where}{_order(draw, len(items))}"
        case "conditions":
            items = [truth(draw, draw(st.integers(0, 3))) for _ in range(6)]
            return f"SELECT {_aliased(['i', *items])} FROM {source}{where}{_order(draw, 7)}"
        case "totals":
            items = [aggregate(draw) for _ in range(draw(st.integers(1, 4)))]
            return f"SELECT {_aliased(items)} FROM {source}{where}"
        case _:
            keys = [draw(st.sampled_from(of))(draw, 1) for _ in range(draw(st.integers(1, 2)))]
            items = keys + [aggregate(draw) for _ in range(draw(st.integers(0, 3)))]
            having = f" HAVING {aggregate(draw)} IS NOT NULL" if draw(st.integers(0, 3)) == 0 else ""
            by = "ALL" if draw(st.booleans()) else ", ".join(str(i + 1) for i in range(len(keys)))
            order = _order(draw, len(items))
            return f"SELECT {_aliased(items)} FROM {source}{where} GROUP BY {by}{having}{order}"


def _aliased(items: list[str]) -> str:
    return ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))


def _order(draw: Draw, count: int) -> str:
    """Every column, so that the order is one and LIMIT takes the same rows."""
    if draw(st.booleans()):
        return ""
    ways = st.sampled_from(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
    terms = [f"{i + 1}{draw(ways)}" for i in draw(st.permutations(range(count)))]
    limit = draw(st.sampled_from(["", " LIMIT 5", " LIMIT 3 OFFSET 2", " OFFSET 4"]))
    return f" ORDER BY {', '.join(terms)}{limit}"
