"""Ibis's expressions on a sample of taxi trips, with DuckDB's backend of Ibis as the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from ibis import _

import bamquery.integrations.ibis as integration

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis's, of DuckDB

SAMPLE = Path(__file__).resolve().parents[4] / "queries/sample/yellow_2025-01_head.parquet"

EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    # Rows and columns.
    "select": lambda t: t.select("fare_amount", "tip_amount"),
    "mutate": lambda t: t.mutate(total=_.fare_amount + _.tip_amount).select("total", "payment_type"),
    "drop": lambda t: t.drop("fare_amount", "extra").limit(0),
    "rename": lambda t: t.select("fare_amount").rename(fare="fare_amount"),
    "filter": lambda t: t.filter(_.trip_distance > 5, _.payment_type == 1).select("trip_distance"),
    "filter or": lambda t: t.filter((_.trip_distance > 20) | (_.tip_amount > 15)).select("tip_amount"),
    "isin": lambda t: t.filter(_.payment_type.isin([1, 3])).select("payment_type"),
    "notin": lambda t: t.filter(_.payment_type.notin([1, 3])).select("payment_type"),
    "between": lambda t: t.filter(_.trip_distance.between(2, 3)).select("trip_distance"),
    "distinct": lambda t: t.select("payment_type", "vendor_id").distinct(),
    "distinct on": lambda t: t.order_by("trip_distance").distinct(on="payment_type").select("payment_type"),
    "order by": lambda t: (
        t.order_by(_.fare_amount.desc(), _.tip_amount, _.pickup).select("fare_amount").head(9)
    ),
    "limit offset": lambda t: t.order_by("pickup", "fare_amount").select("pickup").limit(5, offset=7),
    "count": lambda t: t.count(),
    "nunique": lambda t: t.payment_type.nunique(),
    "value counts": lambda t: t.payment_type.value_counts(),
    "topk": lambda t: t.payment_type.topk(2),
    "drop null": lambda t: t.drop_null("flag").count(),
    "fill null": lambda t: t.flag.fill_null("?").value_counts(),
    "describe count": lambda t: t.flag.isnull().sum(),
    "sample table": lambda t: t.limit(3).count(),
    # Aggregates.
    "aggregate": lambda t: t.aggregate(n=_.count(), mean=_.fare_amount.mean(), top=_.fare_amount.max()),
    "group by": lambda t: t.group_by("payment_type").agg(n=_.count(), fares=_.fare_amount.sum()),
    "group by two": lambda t: t.group_by("payment_type", "vendor_id").agg(lowest=_.tip_amount.min()),
    "group by expression": lambda t: t.group_by(long=_.trip_distance > 3).agg(n=_.count()),
    "having": lambda t: t.group_by("payment_type").having(_.count() > 100).agg(n=_.count()),
    "where in aggregate": lambda t: t.fare_amount.sum(where=_.payment_type == 1),
    "count where": lambda t: t.count(where=t.tip_amount > 2),
    "std var": lambda t: t.aggregate(a=_.fare_amount.std(), b=_.fare_amount.var(how="pop")),
    "median": lambda t: t.fare_amount.median(),
    "quantile": lambda t: t.fare_amount.quantile(0.9),
    "corr": lambda t: t.fare_amount.corr(t.trip_distance, how="pop"),
    "covariance": lambda t: t.fare_amount.cov(t.trip_distance),
    "any all": lambda t: t.aggregate(a=(_.tip_amount > 50).any(), b=(_.tip_amount >= 0).all()),
    "argmax": lambda t: t.aggregate(far=_.trip_distance.argmax(_.total_amount)),
    "mode": lambda t: t.payment_type.mode(),
    "group concat": lambda t: (
        t.select("payment_type")
        .distinct()
        .payment_type.cast("string")
        .group_concat(",", order_by=_.payment_type)
    ),
    "bit or": lambda t: t.payment_type.bit_or(),
    "approx nunique is exact": lambda t: t.select("payment_type").distinct().payment_type.approx_nunique(),
    "kurtosis": lambda t: t.fare_amount.kurtosis(how="sample").round(6),
    # Joins and sets.
    "inner join": lambda t: small(t).join(small(t).view(), "payment_type").count(),
    "left join": lambda t: small(t).left_join(codes(t), "payment_type"),
    "outer join": lambda t: small(t).outer_join(codes(t), "payment_type"),
    "semi join": lambda t: t.semi_join(codes(t), "payment_type").count(),
    "anti join": lambda t: t.anti_join(codes(t), "payment_type").count(),
    "cross join": lambda t: small(t).cross_join(codes(t)).count(),
    "join on inequality": lambda t: (
        (s := small(t)).join(c := codes(t), s.payment_type < c.payment_type).count()
    ),
    "asof join": lambda t: (
        t.select(at=_.pickup, fare=_.fare_amount)
        .asof_join(t.filter(_.tip_amount > 10).group_by(at=_.pickup).agg(tip=_.tip_amount.max()), "at")
        .select("at", "fare", "tip")
    ),
    "union": lambda t: small(t).union(small(t)),
    "union distinct": lambda t: small(t).union(small(t), distinct=True),
    "intersect": lambda t: small(t).select("payment_type").intersect(codes(t).select("payment_type")),
    "difference": lambda t: small(t).select("payment_type").difference(codes(t).select("payment_type")),
    "in subquery": lambda t: t.filter(_.payment_type.isin(codes(t).payment_type)).count(),
    "scalar subquery": lambda t: t.filter(_.fare_amount > t.fare_amount.mean()).count(),
    # Windows.
    "row number": lambda t: small(t).mutate(r=ibis.row_number().over(order_by=_.payment_type)),
    "rank": lambda t: small(t).mutate(r=ibis.rank().over(order_by=_.n.desc())),
    "cumsum": lambda t: small(t).mutate(c=_.n.cumsum(order_by=_.payment_type)),
    "lag lead": lambda t: small(t).mutate(
        a=_.n.lag().over(order_by=_.payment_type), b=_.n.lead().over(order_by=_.payment_type)
    ),
    "group window": lambda t: (
        t.group_by("payment_type")
        .mutate(share=_.fare_amount / _.fare_amount.sum())
        .aggregate(s=_.share.sum().round(6))
    ),
    "rows frame": lambda t: small(t).mutate(
        m=_.n.mean().over(ibis.window(preceding=1, following=1, order_by=_.payment_type))
    ),
    "ntile": lambda t: small(t).mutate(q=ibis.ntile(2).over(order_by=_.payment_type)),
    "qualify": lambda t: (
        t.filter(_.fare_amount == _.fare_amount.max().over(group_by=_.payment_type))
        .select("payment_type", "fare_amount")
        .distinct()
    ),
    "first last": lambda t: small(t).mutate(
        a=_.n.first().over(order_by=_.payment_type), b=_.n.last().over(order_by=_.payment_type)
    ),
    # Numbers.
    "arithmetic": lambda t: one(t, (_.fare_amount * 2 - _.tip_amount / 3 + 1) ** 2),
    "floor division": lambda t: one(t, _.payment_type // 2),
    "modulo": lambda t: one(t, _.payment_type % 2),
    "round": lambda t: one(t, _.trip_distance.round(1)),
    "ceil floor": lambda t: one(t, _.trip_distance.ceil() + _.trip_distance.floor()),
    "abs sign": lambda t: one(t, (-_.fare_amount).abs() + (-_.fare_amount).sign()),
    "sqrt ln": lambda t: one(t, (_.trip_distance + 1).ln() + _.trip_distance.abs().sqrt()),
    "log10 exp": lambda t: one(t, (_.trip_distance + 1).log10() + (_.trip_distance / 100).exp()),
    "trigonometry": lambda t: one(t, _.trip_distance.sin() + _.trip_distance.cos() + _.trip_distance.atan()),
    "greatest least": lambda t: one(t, ibis.greatest(_.fare_amount, 10.0) - ibis.least(_.tip_amount, 1.0)),
    "clip": lambda t: one(t, _.fare_amount.clip(lower=5, upper=20)),
    "nullif": lambda t: one(t, _.tip_amount.nullif(0)),
    "case": lambda t: one(
        t, ibis.cases((_.payment_type == 1, "card"), (_.payment_type == 2, "cash"), else_="?")
    ),
    "ifelse": lambda t: one(t, (_.tip_amount > 0).ifelse("tip", "none")),
    "bucket": lambda t: one(t, _.trip_distance.bucket([0, 1, 5, 100])),
    "histogram": lambda t: one(t, _.fare_amount.between(0, 5).cast("int64")),
    "cast": lambda t: one(t, _.fare_amount.cast("decimal(12,2)")),
    "cast to string": lambda t: one(t, _.payment_type.cast("string") + "x"),
    "try cast": lambda t: one(t, _.payment_type.cast("string").concat("x").try_cast("int64")),
    "bitwise": lambda t: one(t, (_.payment_type & 1) | 4),
    "is nan": lambda t: one(t, _.fare_amount.isnan()),
    # Texts.
    "upper lower": lambda t: text(t, _.word.upper() + _.word.lower()),
    "length": lambda t: text(t, _.word.length()),
    "substring": lambda t: text(t, _.word.substr(1, 2)),
    "slice": lambda t: text(t, _.word[1:3]),
    "left right": lambda t: text(t, _.word.left(2) + _.word.right(1)),
    "strip": lambda t: text(t, (" " + _.word + " ").strip()),
    "replace": lambda t: text(t, _.word.replace("a", "-")),
    "contains": lambda t: text(t, _.word.contains("as")),
    "startswith": lambda t: text(t, _.word.startswith("c") & ~_.word.endswith("h")),
    "like": lambda t: text(t, _.word.like("c%") | _.word.ilike("%CARD%")),
    "regex search": lambda t: text(t, _.word.re_search("^c[ar]")),
    "regex replace": lambda t: text(t, _.word.re_replace("[aeiou]", "*")),
    "regex extract": lambda t: text(t, _.word.re_extract("([a-z])s", 1)),
    "find": lambda t: text(t, _.word.find("s")),
    "pad": lambda t: text(t, _.word.lpad(8, "*") + _.word.rpad(8, "-")),
    "reverse repeat": lambda t: text(t, _.word.reverse() + _.word.repeat(2)),
    "capitalize": lambda t: text(t, _.word.capitalize()),
    "ascii": lambda t: text(t, _.word.ascii_str()),
    "find in set": lambda t: text(t, _.word.find_in_set(["cash", "card"])),
    "levenshtein": lambda t: text(t, _.word.levenshtein("cart")),
    # Times.
    "parts": lambda t: one(t, _.pickup.year() * 100 + _.pickup.month() + _.pickup.hour() + _.pickup.minute()),
    "day of week": lambda t: one(t, _.pickup.day_of_week.index() + _.pickup.day_of_year()),
    "day name": lambda t: one(t, _.pickup.day_of_week.full_name()),
    "week quarter": lambda t: one(t, _.pickup.week_of_year() + _.pickup.quarter()),
    "truncate": lambda t: one(t, _.pickup.truncate("D")),
    "date": lambda t: one(t, _.pickup.date()),
    "time": lambda t: one(t, _.pickup.time()),
    "strftime": lambda t: one(t, _.pickup.strftime("%Y/%m/%d")),
    "plus interval": lambda t: one(t, _.pickup + ibis.interval(hours=3)),
    "interval of a number": lambda t: one(t, _.pickup + _.payment_type.as_interval("D")),
    "delta": lambda t: one(t, _.dropoff.delta(_.pickup, unit="minute")),
    "difference of times": lambda t: t.filter(_.dropoff - _.pickup > ibis.interval(seconds=1800)).count(),
    "timestamp literal": lambda t: t.filter(_.pickup < ibis.timestamp("2025-01-01 00:30:00")).count(),
    "date literal": lambda t: t.filter(_.pickup.date() >= ibis.date("2025-01-01")).count(),
    "epoch": lambda t: one(t, _.pickup.epoch_seconds()),
    "seconds": lambda t: one(t, _.pickup.second() + _.pickup.millisecond()),
    "group by month": lambda t: t.group_by(m=_.pickup.truncate("M")).agg(n=_.count(), s=_.fare_amount.sum()),
}


def small(t: Any) -> Any:
    return t.group_by("payment_type").agg(n=_.count())


def codes(t: Any) -> Any:
    return ibis.memtable(pa.table({"payment_type": [1, 2, 99], "word": ["card", "cash", "other"]}))


def one(t: Any, expression: Any) -> Any:
    return t.select(x=expression)


def text(t: Any, expression: Any) -> Any:
    return (
        t.limit(1)
        .select(k=_.payment_type * 0)
        .cross_join(codes(t))
        .select("word")
        .select("word", x=expression)
    )


def renamed(table: Any) -> Any:
    names = {name.lower(): name for name in table.columns}
    return table.select(
        vendor_id=names["vendorid"],
        pickup=names["tpep_pickup_datetime"],
        dropoff=names["tpep_dropoff_datetime"],
        flag=names["store_and_fwd_flag"],
        **{
            name: names[name]
            for name in (
                *("trip_distance", "payment_type", "fare_amount", "extra", "tip_amount", "tolls_amount"),
                "total_amount",
            )
        },
    )


@pytest.fixture(scope="module")
def tables() -> tuple[Any, Any]:
    ours = integration.connect()
    ours.con.native_connection.load("trips", SAMPLE)
    theirs = ibis.duckdb.connect()
    return renamed(ours.table("trips")), renamed(theirs.read_parquet(SAMPLE))


def rows(answer: Any) -> list[tuple[Any, ...]]:
    table = answer.as_table().to_pyarrow()
    made = [tuple(value(cell) for cell in row.values()) for row in table.to_pylist()]
    return sorted(made, key=lambda row: tuple((cell is None, str(cell)) for cell in row))


def value(cell: Any) -> Any:
    if isinstance(cell, float):
        return None if math.isnan(cell) else float(f"{cell:.9g}")
    return cell


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_has_duckdbs_answer(name: str, tables: tuple[Any, Any]) -> None:
    ours, theirs = (EXPRESSIONS[name](table) for table in tables)
    assert ours.as_table().schema() == theirs.as_table().schema()
    assert rows(ours) == rows(theirs)
