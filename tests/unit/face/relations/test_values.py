"""Python values of every type, held against DuckDB's."""

from __future__ import annotations

import math
from datetime import UTC, datetime, time
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import bamquery

EXPRESSIONS = """
NULL
TRUE
1::TINYINT
1::UTINYINT
9223372036854775807
18446744073709551615::UBIGINT
1::HUGEINT
-99999999999999999999999999999999999999::HUGEINT
0.1::FLOAT
1e300
'NaN'::DOUBLE
'-inf'::FLOAT
1.50::DECIMAL(5,2)
0::DECIMAL(4,4)
-0.0000000001::DECIMAL(38,10)
'text'
''
'a\\x00b'::BLOB
DATE '2024-02-29'
DATE '0001-01-01'
DATE '9999-12-31'
DATE '10000-01-01'
'0044-03-15 (BC)'::DATE
TIMESTAMP '2024-02-29 12:34:56.789'
TIMESTAMP '12000-01-01 00:00:01.5'
'0044-03-15 (BC) 10:00:00'::TIMESTAMP
TIMESTAMP_S '2024-01-01 00:00:00'
TIMESTAMP_MS '2024-01-01 00:00:00.123'
TIMESTAMP_NS '2024-01-01 00:00:00.123456789'
TIMESTAMP '2024-03-01' - TIMESTAMP '2024-02-01 01:00:00'
TIME '12:34:56.789'
TIME '24:00:00'
INTERVAL 5 DAY
INTERVAL 3 MONTH
INTERVAL '1 year 2 days 3 hours'
INTERVAL '-1 day 02:30'
INTERVAL '-13 months -0.000001 seconds'
CAST(NULL AS INTERVAL)
sum(1)
count(*)
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_as_duckdb(con: bamquery.Connection, expression: str) -> None:
    sql = f"SELECT {expression}"
    [(wanted,)] = duckdb.sql(sql).fetchall()
    [(value,)] = con.sql(sql).fetchall()
    assert type(value) is type(wanted)
    assert value == wanted or (math.isnan(value) and math.isnan(wanted))


def test_one_column_of_many_kinds(con: bamquery.Connection) -> None:
    """Values that Python has no type for do not change those beside them."""
    con.load(
        "t",
        pa.table(
            {
                "day": pa.array([0, 2**24, None], pa.int32()).cast(pa.date32()),
                "instant": pa.array([0, 2**60, None], pa.timestamp("us", "UTC")),
                "t": pa.array([0, 86_400_000_000, None], pa.int64()).cast(pa.time64("us")),
                "s": pa.array([0, 86_400, None], pa.int32()).cast(pa.time32("s")),
            }
        ),
    )
    assert con.table("t").fetchall() == [
        (datetime(1970, 1, 1).date(), datetime(1970, 1, 1, tzinfo=UTC), time(0), time(0)),
        ("47904-06-17", "38504-08-17 21:30:06.846976+00", "24:00:00", "24:00:00"),
        (None, None, None, None),
    ]
    assert "24:00:00" in repr(con.table("t"))


def test_tables(con: bamquery.Connection) -> None:
    shown = repr(con.sql("SELECT TIME '24:00:00' AS a, '0044-03-15 (BC)'::DATE AS b"))
    for text in ("24:00:00", "0044-03-15 (BC)"):
        assert text in shown


def test_sums_are_ints_and_decimals_decimals(con: bamquery.Connection) -> None:
    rows = con.sql("SELECT sum(a), sum(b), avg(a) FROM (VALUES (1, 1.5)) t(a, b)")
    assert [type(value) for value in rows.fetchone() or ()] == [int, Decimal, float]


def test_the_end_of_a_day_is_stored(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t (a TIME DEFAULT '24:00:00', b INTEGER)")
    con.sql("INSERT INTO t VALUES ('24:00', 1), ('10:00', 2)")
    con.sql("INSERT INTO t (b) VALUES (3)")
    con.sql("ALTER TABLE t ADD COLUMN c TIME DEFAULT '24:00:00'")
    assert con.sql("SELECT b, c FROM t WHERE a = '24:00' ORDER BY b").fetchall() == [
        (1, "24:00:00"),
        (3, "24:00:00"),
    ]
