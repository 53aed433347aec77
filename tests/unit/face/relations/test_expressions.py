"""Expressions as objects: the plan of the SQL that they stand for, DuckDB's answers, errors with places."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bamquery
from bamquery import Expression, col, expr, fn, lit, when
from bamquery.errors import SqlError
from tests import oracle
from tests.selection.effort import effort

TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, -4, 5, 0], pa.int64()),
        "b": pa.array([3, None, 3, 2, -1, 0], pa.int64()),
        "x": pa.array([0.5, -1.25, None, 3.0, 100.0, 0.0], pa.float64()),
        "s": pa.array(["it's", "", None, '"q"', "A%b_c", "abc"], pa.string()),
        "day": pa.array([datetime.date(2024, 1, day) for day in range(1, 7)], pa.date32()),
    }
)


@pytest.fixture(scope="module")
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect() as connection:
        connection.load("t", TABLE)
        yield connection


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with oracle.connect() as connection:
        connection.register("t", TABLE)
        yield connection


Pair = tuple[Any, str]
"""An object or constant, and SQL written by another hand: with all its parentheses."""


def constants() -> st.SearchStrategy[Pair]:
    integers = st.integers(-9, 9).map(lambda n: (n, str(n)))
    return integers | st.sampled_from([(1.5, "CAST('1.5' AS DOUBLE)"), (-0.25, "CAST('-0.25' AS DOUBLE)")])


def texts() -> st.SearchStrategy[Pair]:
    words = st.sampled_from(["it's", "%b%", "", "abc", '"q"', "-- no", "\\", "ä\n"])
    leaf = words.map(lambda text: (lit(text), "'" + text.replace("'", "''") + "'"))
    column = st.just((col("s"), "s"))
    return (leaf | column).flatmap(
        lambda pair: st.sampled_from([pair, (fn.upper(pair[0]), f"upper({pair[1]})")])
    )


def binary(symbol: str, python: Any) -> Any:
    def make(pair: tuple[Pair, Pair]) -> Pair:
        (left, left_sql), (right, right_sql) = pair
        return python(left, right), f"(({left_sql}) {symbol} ({right_sql}))"

    return make


def numbers(depth: int) -> st.SearchStrategy[Pair]:
    column = st.sampled_from([(col("a"), "a"), (col("b"), "b"), (col("x"), "x")])
    if not depth:
        return column
    below = numbers(depth - 1)
    two = st.tuples(below, below)
    mixed = st.tuples(below, constants()) | st.tuples(constants(), below) | two
    return (
        below
        | mixed.map(binary("+", lambda a, b: a + b))
        | mixed.map(binary("-", lambda a, b: a - b))
        | mixed.map(binary("*", lambda a, b: a * b))
        | below.map(lambda p: (-p[0], f"(-({p[1]}))"))
        | below.map(lambda p: (p[0].abs(), f"abs({p[1]})"))
        | st.tuples(below, constants()).map(
            lambda p: (p[0][0].fill_null(p[1][0]), f"coalesce({p[0][1]}, {p[1][1]})")
        )
        | st.tuples(conditions(depth - 1), below, below).map(
            lambda p: (
                when(p[0][0]).then(p[1][0]).otherwise(p[2][0]),
                f"CASE WHEN {p[0][1]} THEN {p[1][1]} ELSE {p[2][1]} END",
            )
        )
    )


def conditions(depth: int) -> st.SearchStrategy[Pair]:
    below = numbers(max(depth - 1, 0))
    two = st.tuples(below, below | constants())
    leaf = (
        two.map(binary("<", lambda a, b: a < b))
        | two.map(binary("<=", lambda a, b: a <= b))
        | two.map(binary(">", lambda a, b: a > b))
        | two.map(binary(">=", lambda a, b: a >= b))
        | two.map(binary("=", lambda a, b: a == b))
        | two.map(binary("<>", lambda a, b: a != b))
        | below.map(lambda p: (p[0].is_null(), f"(({p[1]}) IS NULL)"))
        | below.map(lambda p: (p[0].is_not_null(), f"(({p[1]}) IS NOT NULL)"))
        | below.map(lambda p: (p[0].is_in([1, -2, 3]), f"(({p[1]}) IN (1, -2, 3))"))
        | st.tuples(below, below).map(
            lambda p: (p[0][0].between(-2, p[1][0]), f"(({p[0][1]}) BETWEEN -2 AND ({p[1][1]}))")
        )
        | st.tuples(texts(), texts()).map(binary("=", lambda a, b: a == b))
        | st.tuples(texts(), texts()).map(
            lambda p: (p[0][0].like(p[1][0]), f"(({p[0][1]}) LIKE ({p[1][1]}))")
        )
    )
    if not depth:
        return leaf
    inner = conditions(depth - 1)
    pairs = st.tuples(inner, inner)
    return (
        leaf
        | pairs.map(binary("AND", lambda a, b: a & b))
        | pairs.map(binary("OR", lambda a, b: a | b))
        | inner.map(lambda p: (~p[0], f"(NOT ({p[1]}))"))
    )


@pytest.mark.long
@settings(max_examples=effort(40, 2000))
@given(number=numbers(3), condition=conditions(3))
def test_objects_and_sql_make_the_same_plan_and_duckdb_agrees(con, duck, number: Pair, condition: Pair):
    t = con.table("t")
    (value, value_sql), (test, test_sql) = number, condition
    objects = t.select("day", value.alias("n"), c=test).filter(col("c") | expr("c IS NULL"))
    text = t.select("day", f"{value_sql} AS n", f"{test_sql} AS c").filter("c OR c IS NULL")
    assert objects._plan == text._plan
    # Without a name, an expression is called the same, however it came about.
    assert t.select(value, test)._plan == t.select(value_sql, test_sql)._plan
    inner = f"SELECT *, {value_sql} AS n, {test_sql} AS c FROM t"
    theirs = oracle.ask(duck, f"SELECT day, n, c FROM ({inner}) WHERE c OR c IS NULL ORDER BY day")
    ours = objects.order("day").to_arrow()
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        for one, two in zip(oracle.plain(mine), oracle.plain(other), strict=True):
            assert oracle.same(one, two, 1e-12)


WINDOWS = [
    (fn.row_number().over(order_by=col("day").desc()), "row_number() OVER (ORDER BY day DESC)"),
    (col("x").sum().over("s", "day"), "sum(x) OVER (PARTITION BY s ORDER BY day)"),
    (
        col("a").sum().over(order_by="day", rows=(-1, 1)),
        "sum(a) OVER (ORDER BY day ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    ),
    (
        col("a").count().over(order_by=["day"], rows=(None, 0)),
        "count(a) OVER (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ),
    (
        fn.max(col("a")).over(
            order_by="day -- days", frame="RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW"
        ),
        "max(a) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)",
    ),
    (fn.lag(col("a"), 1, -1).over(order_by="day"), "lag(a, 1, -1) OVER (ORDER BY day)"),
    (
        col("a").sum().filter(col("b") > 0).over([col("s").is_null(), "b > 2"]),
        "sum(a) FILTER (WHERE b > 0) OVER (PARTITION BY s IS NULL, b > 2)",
    ),
]


@pytest.mark.parametrize(("made", "sql"), WINDOWS, ids=[sql for _, sql in WINDOWS])
def test_windows(con, duck, made: Expression, sql: str) -> None:
    t = con.table("t")
    assert t.select("day", made.alias("w"))._plan == t.select("day", f"{sql} AS w")._plan
    ours = t.select("day", w=made).order("day").fetchall()
    assert ours == duck.sql(f"SELECT day, {sql} AS w FROM t ORDER BY day").fetchall()


AGGREGATES = [
    (col("a").sum(), "sum(a)"),
    (col("x").mean(), "avg(x)"),
    (col("a").n_unique(), "count(DISTINCT a)"),
    (col("a").min(), "min(a)"),
    (col("s").max(), "max(s)"),
    (col("a").count(), "count(a)"),
    (fn.count(), "count(*)"),
    (col("x").median(), "median(x)"),
    (col("x").quantile(0.25), "quantile_cont(x, 0.25)"),
    (col("x").std(), "stddev_samp(x)"),
    (col("x").var(), "var_samp(x)"),
    (fn.string_agg(col("s"), "|", order_by=col("day").desc()), "string_agg(s, '|' ORDER BY day DESC)"),
    (fn.sum(col("a")).filter("b > 0"), "sum(a) FILTER (WHERE b > 0)"),
    (col("a").sum() + fn.max(col("b")) * 2, "sum(a) + max(b) * 2"),
    (fn.first(col("s"), order_by="day DESC"), "first(s ORDER BY day DESC)"),
]


@pytest.mark.parametrize(("made", "sql"), AGGREGATES, ids=[sql for _, sql in AGGREGATES])
def test_aggregates(con, duck, made: Expression, sql: str) -> None:
    t = con.table("t")
    ours = t.aggregate(v=made, by=col("b").is_null().alias("k")).order("k").fetchall()
    theirs = duck.sql(f"SELECT b IS NULL AS k, {sql} AS v FROM t GROUP BY k ORDER BY k").fetchall()
    for mine, other in zip(ours, theirs, strict=True):
        assert all(oracle.same(one, two, 1e-12) for one, two in zip(mine, other, strict=True))


VALUES = [
    (None, "INTEGER"),
    (True, "BOOLEAN"),
    (7, "INTEGER"),
    (2**40, "BIGINT"),
    (2**100, "DECIMAL(38,0)"),
    (1.5, "DOUBLE"),
    (1e300, "DOUBLE"),
    (float("inf"), "DOUBLE"),
    ("it's; DROP TABLE t --", "VARCHAR"),
    ('"', "VARCHAR"),
    ("", "VARCHAR"),
    ("\\x41' || 'b", "VARCHAR"),
    (b"\x00'\xff", "BLOB"),
    (Decimal("-1.50"), "DECIMAL(3,2)"),
    (datetime.date(1969, 12, 31), "DATE"),
    (datetime.time(23, 59, 59, 999999), "TIME"),
    (datetime.datetime(2024, 2, 29, 12, 30, 0, 1), "TIMESTAMP"),
    (datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC), "TIMESTAMP WITH TIME ZONE"),
    (datetime.timedelta(days=-1, seconds=3), "INTERVAL"),
]


@pytest.mark.parametrize(("value", "kind"), VALUES, ids=[repr(value) for value, _ in VALUES])
def test_python_values_become_constants_of_their_types(con, value, kind) -> None:
    one = con.sql("SELECT 1 AS one")
    made = one.select(lit(value).alias("v"), same=lit(value).is_not_distinct_from(value))
    assert made.types[0] == kind
    assert made.fetchall() == [(value, True)]
    # As a parameter.
    assert con.sql("SELECT $v AS v", {"v": value}).types == [kind]
    assert one.select(v=lit(value))._plan == one.select(v=expr(lit(value).sql))._plan


def test_scalars_of_libraries(con) -> None:
    one = con.sql("SELECT 1 AS one")
    made = one.select(
        a=lit(np.int64(3)),
        b=lit(np.float64(0.5)),
        c=lit(np.bool_(True)),
        d=lit(pd.Timestamp("2024-01-02 03:04:05")),
        e=lit(pd.NaT),
        f=lit(pa.scalar(5)),
        g=lit(np.datetime64("2024-01-02")),
        h=np.int64(4),
    )
    assert made.fetchall() == [
        (3, 0.5, True, datetime.datetime(2024, 1, 2, 3, 4, 5), None, 5, datetime.date(2024, 1, 2), 4)
    ]
    for wrong in ([1], {"a": 1}, object(), Decimal("NaN")):
        with pytest.raises(TypeError, match="cannot be a constant"):
            lit(wrong)


def test_names_of_any_characters(con) -> None:
    names = ['we"ird', "select", "a b", "x;--", "Ä'ß", "1", "a.b", "*", "self", "new\nline"]
    relation = con.from_arrow(pa.table({name: [place] for place, name in enumerate(names)}))
    for place, name in enumerate(names):
        assert relation.select(col(name)).fetchall() == [(place,)]
        assert relation.select(col(name)).columns == [name]
        assert relation.select(col(name).alias(f"{name}!")).columns == [f"{name}!"]
        assert relation[name].fetchall() == [(place,)]
        assert relation.drop(name).columns == [other for other in names if other != name]
        assert relation.rename({name: "other"}).columns[place] == "other"
        assert relation.with_columns(**{name: col(name) + 1}).fetchall()[0][place] == place + 1
        assert relation.filter(col(name) == place).order(col(name).desc()).distinct(on=col(name)).shape == (
            1,
            len(names),
        )
        assert relation.aggregate(n="count(*)", by=col(name)).columns == [name, "n"]
        assert relation.join(relation, on=name).columns.count(name) == 1
        assert relation.join(relation, on=col(name)).shape == (1, 2 * len(names) - 1)
    with pytest.raises(ValueError, match="name is empty"):
        col("")


def test_a_number_as_an_object_is_a_position_in_order_as_in_duckdb(con) -> None:
    relation = con.values((1, 2), (2, 1))
    assert relation.order(lit(2)).fetchall() == [(2, 1), (1, 2)]
    assert relation.order(lit(2).desc()).fetchall() == [(1, 2), (2, 1)]
    assert relation.order("2").fetchall() == [(2, 1), (1, 2)]
    assert relation.aggregate("count(*)", by=lit(1)).fetchall() == [(1, 2)]


ERRORS = [
    (lambda t: t.filter(col("aa") > 3), '"aa" > 3', '"aa"'),
    (lambda t: t.filter("aa > 3"), "aa > 3", "aa"),
    (lambda t: t.select("a", x=col("b") + col("c") * 2), '"b" + "c" * 2 AS "x"', '"c"'),
    (lambda t: t.select("a,\n  nope"), "  nope", "nope"),
    (lambda t: t.aggregate(fn.sum(col("y")), by="a"), 'sum("y")', '"y"'),
    (lambda t: t.order(col("y").desc()), '"y" DESC', '"y"'),
    (lambda t: t.with_columns(a=fn.upper(col("S_"))), 'upper("S_")', '"S_"'),
    (lambda t: t.join(t, on=col("self", "a") == col("other", "z")), '"self"."a" = "other"."z"', '"other"'),
    (lambda t: t.filter("a ="), "a =", ""),
    (lambda t: t.select("upper(a"), "upper(a", ""),
    (lambda t: t.sql("SELECT q FROM self"), "SELECT q FROM self", "q"),
    (lambda t: t.group_by("w").agg("count(*)"), "w", "w"),
]


@pytest.mark.parametrize(("use", "line", "word"), ERRORS, ids=[line for _, line, _ in ERRORS])
def test_errors_show_the_expression_and_the_place(con, use, line: str, word: str) -> None:
    with pytest.raises(SqlError) as caught:
        use(con.table("t").set_alias("self"))
    _, shown, caret = str(caught.value).splitlines()[:3]
    label, _, text = shown.partition(": ")
    assert text == line
    assert label.startswith("line ")
    place = caret.index("^") - len(label) - 2
    assert text[place:].startswith(word)
    assert word or place == len(text)


def test_misuse_is_an_error_at_once() -> None:
    a, b = col("a"), col("b")
    uses: list[tuple[Any, type[Exception], str]] = [
        (lambda: a > 1 and b > 1, TypeError, "write & for and"),
        (lambda: a or b, TypeError, "write & for and"),
        (lambda: not a, TypeError, "~ for not"),
        (lambda: 1 < a < 3, TypeError, "between"),
        (lambda: 1 in a, TypeError, "is_in"),
        (lambda: list(a), TypeError, "one expression"),
        (lambda: a == None, TypeError, r"is_null\(\)"),  # noqa: E711
        (lambda: {a: 1}, TypeError, "unhashable"),
        (lambda: a.is_in("xyz"), TypeError, "is_in takes a list"),
        (lambda: a.alias("x") + 1, TypeError, "unsupported operand"),
        (lambda: 1 + a.alias("x"), TypeError, "unsupported operand"),
        (lambda: a + b.alias("x"), TypeError, "alias.. comes last"),
        (lambda: fn.sum(a.desc()), TypeError, "asc.. and desc.. come last"),
        (lambda: a.cast("INT) OR (1"), ValueError, "not how a type is spelled"),
        (lambda: a.cast(list), TypeError, "no type for Python's list"),
        (lambda: a + object(), TypeError, "cannot be a constant"),
        (lambda: fn.nope, AttributeError, r"no function nope\(\)"),
        (lambda: fn.summ, AttributeError, 'Did you mean "sum"'),
        (lambda: expr("a) OR (b"), SqlError, "one expression"),
        (lambda: expr("a, b"), SqlError, "one expression"),
        (lambda: expr(""), SqlError, "empty"),
        (lambda: expr("a; DROP TABLE t"), SqlError, "syntax error"),
        (lambda: a.sum().over(rows=(1, -1)), ValueError, "the first one comes first"),
        (lambda: a.sum().over(rows=(0, 1), frame="ROWS CURRENT ROW"), TypeError, "not both"),
        (lambda: a.sum().over(frame="), (a"), SqlError, "frame is a window's|syntax error"),
        (lambda: a.sum().over(order_by="a LIMIT 1"), SqlError, "expressions"),
        (lambda: a.sum().filter("a) (b"), SqlError, "one expression|syntax"),
        (col, TypeError, "takes a column's name"),
        (lambda: col(3), TypeError, "name is SQL in a str|not int"),  # type: ignore[arg-type]
    ]
    for use, kind, message in uses:
        with pytest.raises(kind, match=message):
            use()


def test_types(con) -> None:
    one = con.sql("SELECT '7' AS s")
    made = one.select(
        a=col("s").cast(int),
        b=col("s").cast("DECIMAL(9, 2)"),
        c=col("s").cast(pa.int16()),
        d=lit("x").try_cast(float),
        e=col("s").cast(bytes),
        f=lit("2024-01-01").cast(datetime.date),
    )
    assert made.types == ["BIGINT", "DECIMAL(9,2)", "SMALLINT", "DOUBLE", "BLOB", "DATE"]
    assert made.fetchall() == [(7, Decimal("7.00"), 7, None, b"7", datetime.date(2024, 1, 1))]


def test_every_function_of_the_registry_is_an_attribute(con) -> None:
    assert {"sum", "date_trunc", "row_number", "upper", "coalesce", "lag"} <= set(dir(fn))
    assert len(dir(fn)) > 250
    assert repr(fn.date_trunc("month", col("day"))) == "date_trunc('month', \"day\")"
    months = con.table("t").aggregate("count(*)", by=fn.date_trunc("month", col("day")).alias("m"))
    assert months.columns[0] == "m"
    assert [(str(month)[:10], count) for month, count in months.fetchall()] == [("2024-01-01", 6)]
    assert (
        con.table("t").select(fn.if_(col("a") > 1, "more", "less").alias("x")).order("x").limit(1).fetchall()
    )


def test_is_in_of_nothing(con) -> None:
    t = con.table("t")
    assert len(t.filter(col("a").is_in([]))) == 0
    assert len(t.filter(~col("a").is_in([]))) == 6
    assert len(t.filter(col("a").is_in(np.array([1, 2])))) == 2


def test_deep_chains(con) -> None:
    t = con.table("t")
    for place in range(100):
        t = t.filter(col("a") != place + 100).with_columns(a=col("a") + 1)
    assert sorted(row[0] for row in t.fetchall() if row[0] is not None) == [96, 100, 101, 102, 105]
    wide: Expression = col("a") == 0
    for place in range(100):
        wide = wide | (col("a") == place)
    assert len(con.table("t").filter(wide)) == 4
