"""Relations made from relations, with DuckDB's relations as the oracle where these have the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import bamquery
from bamquery import col, fn
from bamquery.errors import CatalogError, SqlError
from tests import oracle

TRIPS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "kind": pa.array([0, 1, 2, None] * 3, pa.int64()),
        "fare": pa.array([1.5 * n if n % 5 else None for n in range(12)], pa.float64()),
        "note": pa.array(["x", "it's", None, "y"] * 3, pa.string()),
    }
)
KINDS = pa.table({"kind": pa.array([0, 1, 1, 7, None], pa.int64()), "name": ["a", "b", "c", "z", "?"]})


@pytest.fixture(scope="module")
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect() as connection:
        connection.load("trips", TRIPS)
        connection.load("kinds", KINDS)
        yield connection


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with oracle.connect() as connection:
        connection.register("arrow_trips", TRIPS)
        connection.register("arrow_kinds", KINDS)
        connection.execute("CREATE TABLE trips AS FROM arrow_trips; CREATE TABLE kinds AS FROM arrow_kinds")
        yield connection


def rows(found: Any) -> list[str]:
    """In any order, so that nulls can be compared."""
    return sorted(repr(tuple(row)) for row in found)


SAME: list[Callable[[Any, Any], Any]] = [
    lambda t, k: t.filter("fare > 3 AND kind IS NOT NULL"),
    lambda t, k: t.project("id + 1 AS next, upper(note)"),
    lambda t, k: t.select("id", "note"),
    lambda t, k: t.aggregate("sum(fare), count(*)"),
    lambda t, k: (
        t.aggregate("kind, sum(fare) AS s", "kind")
        if isinstance(t, duckdb.DuckDBPyRelation)
        else t.aggregate("sum(fare) AS s", by="kind")
    ),
    lambda t, k: t.order("kind DESC NULLS FIRST, id").limit(5, 2),
    lambda t, k: t.sort("id").offset(9),
    lambda t, k: t.order("id").head(3),
    lambda t, k: t.project("kind, note").distinct(),
    lambda t, k: t.with_columns(fare="id", more="fare"),
    lambda t, k: t.rename(fare="price", id="number"),
    lambda t, k: t.drop("fare", "note"),
    lambda t, k: t.group_by("kind").agg("count(*)"),
    lambda t, k: t["note"],
    lambda t, k: t.union(t.filter("id < 3")),
    lambda t, k: t.project("kind").intersect(k.project("kind")),
    lambda t, k: t.project("kind").except_(k.project("kind")),
    lambda t, k: t.project("id, note").union_by_name(t.project("note AS note, fare")),
    lambda t, k: t.project("id, note").union_by_name(t.project("note AS note, id"), all=False),
    lambda t, k: t.cross(k),
    *(
        lambda t, k, how=how, on=on: t.join(k, on, how=how)
        for how in ("inner", "left", "right", "outer", "semi", "anti")
        for on in ("kind", "trips.kind = kinds.kind", "trips.kind + 1 > kinds.kind AND name <> 'c'")
    ),
    lambda t, k: t.set_alias("a").join(t.set_alias("b"), "a.id = b.id + 1"),
    lambda t, k: t.set_alias("a").filter("a.id > 3"),
    lambda t, k: t.describe(),
    lambda t, k: t.value_counts("kind"),
    lambda t, k: t.value_counts("note"),
    lambda t, k: t.unique("kind"),
    lambda t, k: t.query("them", "SELECT kind, count(*) FROM them GROUP BY kind"),
    lambda t, k: t.select_types(["BIGINT"]),
    lambda t, k: t.select_dtypes(["VARCHAR", "DOUBLE"]),
    lambda t, k: t.materialize(),
    *(
        lambda t, k, name=name: getattr(t, name)("fare", "kind", "", "kind")
        for name in ("sum", "avg", "mean", "min", "max", "median", "stddev", "std", "var_samp", "variance")
    ),
    *(
        lambda t, k, name=name: getattr(t.filter("fare > 0").order("id"), name)("fare")
        for name in (
            "sum",
            "count",
            "fsum",
            "favg",
            "geomean",
            "product",
            "stddev_pop",
            "var_pop",
            "any_value",
        )
    ),
    *(
        lambda t, k, name=name: getattr(t, name)("id")
        for name in ("bit_and", "bit_or", "bit_xor", "mode", "last")
    ),
    *(lambda t, k, name=name: getattr(t, name)("id > 3") for name in ("bool_and", "bool_or")),
    lambda t, k: t.count("*"),
    lambda t, k: t.sum("fare", window_spec="OVER (ORDER BY id)", projected_columns="id"),
    lambda t, k: t.arg_max("note", "id"),
    lambda t, k: t.arg_min("note", "id", "kind"),
    lambda t, k: t.quantile("id"),
    lambda t, k: t.quantile_cont("fare", 0.3),
    lambda t, k: t.quantile_disc("fare", 0.3, "kind"),
    lambda t, k: t.order("id").string_agg("note", "; "),
    *(
        lambda t, k, name=name: getattr(t, name)("OVER (PARTITION BY kind ORDER BY fare)", "id")
        for name in ("row_number", "rank", "dense_rank", "rank_dense", "percent_rank", "cume_dist")
    ),
    lambda t, k: t.n_tile("OVER (ORDER BY id)", 5, "id"),
    *(
        lambda t, k, name=name: getattr(t, name)("note", "OVER (ORDER BY id)", projected_columns="id")
        for name in ("first_value", "last_value", "lag", "lead")
    ),
    lambda t, k: t.nth_value("note", "OVER (ORDER BY id)", 2, projected_columns="id"),
]


@pytest.mark.parametrize("use", SAME, ids=range(len(SAME)))
def test_the_same_as_duckdb(con, duck, use) -> None:
    theirs = use(duck.table("trips"), duck.table("kinds"))
    ours = use(con.table("trips"), con.table("kinds"))
    assert len(ours.columns) == len(theirs.columns)
    for one, two in zip(sorted(ours.fetchall(), key=repr), sorted(theirs.fetchall(), key=repr), strict=True):
        for a, b in zip(one, two, strict=True):
            assert a == b or oracle.same(a, b, 1e-12), (one, two)


def test_names_of_columns_as_duckdb_gives_them(con, duck) -> None:
    for use in (
        lambda t, k: t.join(k, "kind"),
        lambda t, k: t.join(k, "trips.kind = kinds.kind"),
        lambda t, k: t.project("id + 1, upper(note)"),
        lambda t, k: t.aggregate("sum(fare)"),
        lambda t, k: t.value_counts("kind"),
        lambda t, k: t.describe(),
    ):
        ours = use(con.table("trips"), con.table("kinds")).columns
        assert ours == use(duck.table("trips"), duck.table("kinds")).columns


def test_joins_by_names_and_conditions(con) -> None:
    t, k = con.table("trips"), con.table("kinds")
    by_name = t.join(k, "kind")
    for same in (
        t.join(k, on="KIND"),
        t.join(k, on=["kind"]),
        t.join(k, using="kind"),
        t.join(k, using=["kind"]),
        t.join(k, on=col("kind")),
        t.join(k, on=[col("kind")]),
    ):
        assert same._plan == by_name._plan
    sql = con.sql("FROM trips JOIN kinds ON trips.kind = kinds.kind").fetchall()
    for same in (
        t.join(k, col("trips", "kind") == col("kinds", "kind")),
        t.filter("true").join(k, "trips.kind = kinds.kind"),
        con.sql("FROM trips").join(con.sql("FROM kinds"), "self.kind = other.kind"),
        con.sql("FROM trips").join(k, "self.kind = kinds.kind"),
    ):
        assert rows(same.fetchall()) == rows(sql)
    twice = t.join(t, "self.id = other.id")
    assert twice.columns == ["id", "kind", "fare", "note"] * 2
    assert twice["id_1"].columns == ["id_1"]
    assert "id_1" in twice
    assert twice.drop("id_1").select("id").columns == ["id"]


def test_asof_joins(con, duck) -> None:
    prices = {"symbol": ["a", "a", "b"], "moment": [1, 5, 2], "price": [10, 20, 30]}
    asked = {"symbol": ["a", "a", "b", "b"], "moment": [4, 9, 1, 2]}
    left, right = con.from_dict(asked), con.from_dict(prices)
    sql = "FROM l ASOF {} JOIN r USING (symbol, moment) ORDER BY ALL"
    for how, kind in (("asof", ""), ("asof_left", "LEFT")):
        theirs = oracle.ask(duck, sql.format(kind), l=pa.table(asked), r=pa.table(prices)).to_pylist()
        assert (
            left.join(right, on=["symbol", "moment"], how=how).order("ALL").to_arrow().to_pylist() == theirs
        )
        condition = "self.symbol = other.symbol AND self.moment >= other.moment"
        assert len(left.join(right, condition, how=how)) == len(theirs)


def test_set_operations_distinct(con, duck) -> None:
    a, b = con.values((1,), (1,), (2,), (2,), (3,)), con.values((1,), (2,), (2,), (4,))
    for method, sql in (("union", "UNION"), ("intersect", "INTERSECT"), ("except_", "EXCEPT")):
        for distinct in (False, True):
            asked = f"VALUES (1),(1),(2),(2),(3) {sql} {'' if distinct else 'ALL'} VALUES (1),(2),(2),(4)"
            assert rows(getattr(a, method)(b, distinct=distinct).fetchall()) == rows(
                duck.sql(asked).fetchall()
            )
    one, two = con.sql("SELECT 1 AS a, 2 AS b"), con.sql("SELECT 3 AS b, 4 AS c")
    assert one.union(two, by_name=True).columns == ["a", "b", "c"]
    assert one.union(two, by_name=True).fetchall() == [(1, 2, None), (None, 3, 4)]
    with pytest.raises(SqlError, match="columns"):
        one.union(con.sql("SELECT 1"))


def test_distinct_on(con, duck) -> None:
    t = con.table("trips")
    theirs = duck.sql("SELECT DISTINCT ON (kind) * FROM trips ORDER BY id DESC").fetchall()
    assert rows(t.distinct("kind", order_by="id DESC").fetchall()) == rows(theirs)
    assert rows(t.distinct(on=[col("kind")], order_by=col("id").desc()).fetchall()) == rows(theirs)
    assert len(t.distinct(on=["kind", "note"])) == 4


def test_samples(con) -> None:
    many = con.sql("FROM range(100_000) AS t(n)")
    assert len(many.sample(10)) == 10
    assert many.sample(10, seed=3).fetchall() == many.sample(10, seed=3).fetchall()
    assert 0 < len(many.sample(percent=1.5, seed=1)) < 20_000
    assert 0 < len(many.sample(percent=1, method="bernoulli", seed=1)) < 5_000
    assert many.sample(percent=1, method="bernoulli", seed=1).columns == ["n"]
    for wrong, kind in (
        ({}, TypeError),
        ({"count": 1, "percent": 1}, TypeError),
        ({"count": -1}, ValueError),
        ({"percent": "1"}, TypeError),
        ({"percent": 1, "method": "x"}, ValueError),
        ({"count": 1, "method": "system"}, TypeError),
        ({"percent": 101}, SqlError),
    ):
        with pytest.raises(kind):
            many.sample(**wrong)


def test_what_it_looks_like(con, capsys) -> None:
    t = con.table("trips")
    assert len(t) == 12
    assert t.shape == (12, 4)
    assert t.dtypes == t.types == ["BIGINT", "BIGINT", "DOUBLE", "VARCHAR"]
    assert "fare" in t
    assert "FARE" in t
    assert "fares" not in t
    assert 3 not in t
    assert list(t) == t.fetchall() == list(t.iter_rows())
    assert t[["note", "ID"]].columns == ["note", "id"]
    assert t.description[0] == ("id", "BIGINT", None, None, None, None, None)
    t.order("id").show(max_rows=2)
    shown = capsys.readouterr().out
    assert "it's" in shown
    assert "the first 2 rows" in shown
    assert len(con.sql("SELECT 1 WHERE false")) == 0
    for wrong, kind, message in (
        (lambda: t["fares"], CatalogError, 'no column "fares".*"fare"'),
        (lambda: t[["id", "nope"]], CatalogError, "nope"),
        (lambda: t[0], TypeError, "a column's name or a list"),
        (lambda: t[:3], TypeError, "a column's name or a list"),
        (lambda: t[[]], TypeError, "a column's name or a list"),
        (lambda: bool(t), TypeError, "neither true nor false"),
        (lambda: t.fare, AttributeError, r"relation\['fare'\]"),
        (lambda: t.filtr, AttributeError, 'Did you mean "filter"'),
        (lambda: t.pivot, AttributeError, "SQL has no PIVOT"),
        (lambda: t.drop("nope"), CatalogError, 'drop: there is no column "nope"'),
        (t.drop, TypeError, "at least one"),
        (lambda: t.rename({"nope": "x"}), CatalogError, "nope"),
        (lambda: t.join(t), TypeError, "takes on or using"),
        (lambda: t.join(t, "id", how="cross"), TypeError, "takes no condition"),
        (lambda: t.join(t, "id", using="id"), TypeError, "not both"),
        (lambda: t.join(t, on=["nope"]), CatalogError, "nope"),
        (lambda: t.join(t, on=[]), TypeError, "at least one"),
        (lambda: t.join(t, on="id", how="iner"), ValueError, 'Did you mean "inner"'),
        (lambda: t.join(TRIPS, on="id"), TypeError, "other is a relation, not Table"),
        (t.with_columns, TypeError, "at least one"),
        (t.select, TypeError, "at least one"),
        (t.filter, TypeError, "at least one"),
        (t.group_by, TypeError, "at least one"),
        (lambda: t.sql("SELECT 1; SELECT 2"), SqlError, "one statement"),
    ):
        with pytest.raises(kind, match=message):
            wrong()


def test_relations_of_other_connections_do_not_go_together(con) -> None:
    with bamquery.connect() as other:
        there = other.sql("SELECT 1 AS id")
        with pytest.raises(SqlError, match="only be used by the connection"):
            con.table("trips").join(there, "id")
        with pytest.raises(SqlError, match="only be used by the connection"):
            con.table("trips").union(there)


def test_nothing_changes_what_it_was_made_of(con) -> None:
    t = con.table("trips").order("id")
    before = t.fetchall()
    t.filter("id > 3")
    t.with_columns(id="0")
    t.set_alias("other")
    t.rename(id="x")
    assert t.fetchall() == before
    assert t.alias == "trips"


def test_expressions_may_ask_the_relation_itself(con) -> None:
    t = con.table("trips").filter("fare IS NOT NULL")
    above = t.filter("fare > (SELECT avg(fare) FROM self)")
    average = sum(row[2] for row in t.fetchall()) / len(t)
    assert rows(above.fetchall()) == rows(row for row in t.fetchall() if row[2] > average)
    assert t.sql("WITH n AS (SELECT count(*) AS c FROM self) SELECT c FROM n").fetchall() == [(len(t),)]


def test_keys_with_names(con) -> None:
    t = con.table("trips")
    by_kind = sorted(map(repr, t.aggregate("count(*)", by="kind + 1").fetchall()))
    for keys in ("kind + 1 AS k", col("kind") + 1, (col("kind") + 1).alias("k"), ["kind + 1 as k"]):
        assert sorted(map(repr, t.aggregate("count(*)", by=keys).fetchall())) == by_kind
    two = t.aggregate(n="count(*)", by=["kind AS k", "CAST(id > 5 AS INTEGER)"])
    assert two.columns[0] == "k"
    assert len(two) == 8
    with pytest.raises(SqlError, match='no column "kinds"'):
        t.aggregate("count(*)", by="kinds AS k")


def test_figures_of_columns_with_the_names_of_figures(con, duck) -> None:
    sql = "SELECT 1 AS aggr, 2.5 AS number, 'x' AS c0_count UNION ALL SELECT 3, NULL, 'y'"
    assert con.sql(sql).describe().fetchall() == duck.sql(sql).describe().fetchall()


def test_aggregates_of_objects(con) -> None:
    t = con.table("trips")
    grouped = t.group_by("kind", (col("id") > 5).alias("late"))
    assert grouped.agg(n=fn.count(), s=col("fare").sum()).columns == ["kind", "late", "n", "s"]
    assert grouped.count().columns == ["kind", "late", "count"]
    assert t.aggregate(n=fn.count(), by=["kind", col("note")]).columns == ["kind", "note", "n"]
    assert t.aggregate("count(*) AS n", one=1).fetchall() == [(12, 1)]
