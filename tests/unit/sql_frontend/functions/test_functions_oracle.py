"""Functions over columns are DuckDB's: values that break things, random ones, nulls; values and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.plan.expressions import Expression
from bamquery.sql_frontend.statement_binder import bind
from tests import oracle as duck
from tests.devices.cases import pairs, single
from tests.plans import MemoryCatalog, SchemaOnly
from tests.strategies import arrays

TEXT = pa.large_string()
BLOB = pa.large_binary()
DOUBLE = pa.float64()
BIGINT = pa.int64()
INTEGER = pa.int32()
DATE = pa.date32()
TIME = pa.time64("us")
MOMENT = pa.timestamp("us")
RELAXED = settings(max_examples=6, deadline=None, derandomize=True)

_DATE_UNITS = ("year", "quarter", "month", "week", "day", "hour", "century", "decade", "millennium")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "ms", "us")


def _differences(units: Sequence[str]) -> str:
    calls = [f"{function}('{unit}', a, b)" for function in ("date_diff", "date_sub") for unit in units]
    return ";".join(calls)


CASES: dict[tuple[pa.DataType, ...], str] = {
    (DOUBLE,): """
        sign(a); cbrt(a); log2(a); log10(a); log(a); sin(a); cos(a); asin(a); acos(a); atan(a); cot(a);
        sinh(a); cosh(a); tanh(a); asinh(a); acosh(a); atanh(a); even(a); isnan(a); isinf(a);
        isfinite(a); signbit(a); trunc(a); trunc(a, 2); trunc(a, -2); round_even(a, 0);
        round_even(a, 1); degrees(a); radians(a); to_timestamp(a)::VARCHAR; constant_or_null(1, a)
        """,
    (pa.float32(),): """
        sign(a); isnan(a); signbit(a); trunc(a); trunc(a, 1); round_even(a, 0)
        """,
    (DOUBLE, DOUBLE): """
        atan2(a, b); nextafter(a, b); greatest(a, b); least(a, b, 1.5); fdiv(a, b)
        """,
    (BIGINT,): """
        sign(a); ~a; bit_count(a); hex(a); bin(a); trunc(a, -2); round_even(a, -1); format_bytes(a);
        formatReadableDecimalSize(a); to_base(a, 7); a >> 3; a << 3; make_timestamp(a); epoch_ms(a); @a
        """,
    (pa.int8(),): """
        sign(a); ~a; bit_count(a); a << 2; a >> 1; hex(a); trunc(a, -1); round_even(a, -1);
        factorial(a); chr(a); to_days(a); to_hours(a); make_date(a)
        """,
    (pa.uint8(),): """
        sign(a); ~a; bit_count(a); a << 2; a >> 1; hex(a); trunc(a, -1); round_even(a, -1)
        """,
    (pa.uint64(),): """
        sign(a); ~a; bit_count(a); hex(a); bin(a); a >> 9
        """,
    (BIGINT, BIGINT): """
        a & b; a | b; xor(a, b); a << b; a >> b; gcd(a, b); lcm(a, b); greatest(a, b, 0)
        """,
    (INTEGER, INTEGER): """
        a << b; a >> b; gcd(a, b); make_date(a, b, 1)
        """,
    (pa.decimal128(18, 3),): """
        sign(a); trunc(a); trunc(a, 1); trunc(a, -1); round_even(a, 1); round_even(a, -2)
        """,
    (pa.decimal128(38, 0),): """
        sign(a); trunc(a, -1); round_even(a, -1); bit_count(a::HUGEINT)
        """,
    (pa.decimal128(38, 0), pa.decimal128(38, 0)): """
        greatest(a, b); least(a, b)
        """,
    (TEXT,): """
        strlen(a); bit_length(a); ltrim(a); rtrim(a); trim(a, 'ax '); ltrim(a, 'a'); rtrim(a, 'ab');
        left(a, 2); left(a, -1); right(a, 2); right(a, -1); right(a, 0); lpad(a, 4, 'xy');
        rpad(a, 3, 'é'); replace(a, 'a', 'XX'); replace(a, '', 'X'); repeat(a, 2); reverse(a);
        split_part(a, 'a', 1); split_part(a, '', 2); split_part(a, 'b', -1); position('a' IN a);
        strpos(a, ''); translate(a, 'ab', 'é'); overlay(a, 'xyz', 2); overlay(a, '-', 1, 2);
        concat_ws('-', a, NULL, a); ascii(a); unicode(a); md5(a); sha1(a); sha256(a); encode(a);
        url_encode(a); url_decode(a); strip_accents(a); nfc_normalize(a); from_base64(a); hex(a);
        bin(a); unhex(a); unbin(a); ends_with(a, 'b'); regexp_escape(a); a LIKE 'a$%' ESCAPE '$';
        a ILIKE '%B\\%' ESCAPE '\'; a GLOB '*a*'; a GLOB '[!a]*'; a SIMILAR TO '.*[a-z]'; a ~ 'a|b';
        regexp_matches(a, 'A', 'i'); regexp_replace(a, '[aeiou]', '<\0>');
        regexp_replace(a, 'B|.$', '', 'gi'); regexp_extract(a, '(a)(.)', 2);
        regexp_extract(a, '.', 0, 's'); parse_filename(a); parse_dirpath(a); a ^@ 'a';
        left(a, length(a) - 1); lower(a) ~ 'a'; a::INTERVAL; levenshtein(a, 'ab'); jaccard(a, 'ab');
        hamming(a, 'a')
        """,
    (TEXT, TEXT): """
        a LIKE b; a ILIKE b; contains(a, b); starts_with(a, b); ends_with(a, b); position(b IN a);
        replace(a, b, 'x'); translate(a, b, 'xy'); trim(a, b); concat_ws(a, b, 'x'); greatest(a, b);
        least(a, b); levenshtein(a, b); damerau_levenshtein(a, b); hamming(a, b); jaccard(a, b);
        jaro_similarity(a, b); jaro_winkler_similarity(a, b); split_part(a, b, 1); overlay(a, b, 2, 1);
        a ^@ b
        """,
    (TEXT, BIGINT): """
        left(a, b % 5); right(a, b % 5); substring(a, b % 5); substring(a, b % 5, b % 3);
        repeat(a, b % 4); split_part(a, 'a', b % 3)
        """,
    (BLOB,): """
        octet_length(a); md5(a); sha256(a); hex(a); to_base64(a); decode(a)
        """,
    (DATE,): """
        last_day(a); dayname(a); monthname(a); century(a); decade(a); millennium(a); isoyear(a); era(a);
        yearweek(a); julian(a); epoch_ms(a); epoch_us(a); millisecond(a); nanosecond(a);
        date_trunc('century', a); date_trunc('isoyear', a); date_trunc('decade', a);
        date_trunc('dow', a); strftime(a, '%a %d %B %Y %j %U %W %V %G %u %w %y'); a + INTERVAL 1 MONTH;
        a - INTERVAL '1 day 1 hour'; a + INTERVAL (-13) MONTHS; a + TIME '01:02:03';
        time_bucket(INTERVAL 3 DAY, a); isfinite(a); time_bucket(INTERVAL 5 MONTH, a);
        time_bucket(INTERVAL 1 DAY, a, INTERVAL 2 HOUR); date_add(a, 3)
        """,
    (MOMENT,): """
        last_day(a); dayname(a); century(a); yearweek(a); julian(a); epoch_ms(a); epoch_us(a);
        millisecond(a); microsecond(a); nanosecond(a); date_trunc('millisecond', a);
        date_trunc('millennium', a); date_part('ms', a);
        strftime(a, '%H:%M:%S.%f %I %p %-d %-m %-H %-I %-y %% %g %c %x %X'); a::TIME;
        a + INTERVAL '1 month -1 day 25:00:00'; a - INTERVAL 1 MILLISECOND;
        a - TIMESTAMP '2000-01-31 12:00:00'; age(a, TIMESTAMP '2000-02-29 12:00:00');
        age(TIMESTAMP '2000-03-31', a); time_bucket(INTERVAL 15 MINUTE, a);
        time_bucket(INTERVAL 1 WEEK, a); time_bucket(INTERVAL 7 MONTH, a);
        time_bucket(INTERVAL 7 HOUR, a, TIMESTAMP '2001-02-03 04:05:06'); a AT TIME ZONE 'UTC' IS NULL;
        time_bucket(INTERVAL 2 MONTH, a, TIMESTAMP '2001-02-03 04:05:06')
        """,
    (TIME,): """
        hour(a); millisecond(a); microsecond(a); nanosecond(a); epoch(a); epoch_ms(a); epoch_us(a);
        epoch_ns(a); a + INTERVAL 5 HOUR; a - INTERVAL '1 day 25:00:00'
        """,
    (pa.timestamp("ns"),): """
        epoch_ns(a); epoch_us(a); nanosecond(a); microsecond(a); julian(a); a + INTERVAL 1 DAY;
        strftime(a, '%Y %f')
        """,
    (pa.timestamp("s"),): """
        epoch_ms(a); millisecond(a); a - INTERVAL 1 MONTH; dayname(a)
        """,
    (DATE, DATE): _differences(_DATE_UNITS),
    (MOMENT, MOMENT): _differences(_UNITS)
    + """;
        date_diff('isoyear', a, b); a - b; age(a, b); greatest(a, b); (a - b) < INTERVAL 1 DAY;
        (a - b) = (b - a); epoch(a - b); epoch_us(a - b); date_part('hour', a - b); -(a - b);
        (a - b)::VARCHAR; (a - b) / 2; date_trunc('day', a - b); normalized_interval(a - b);
        (a - b) + INTERVAL 1 MONTH
        """,
    (TIME, TIME): """
        date_diff('hour', a, b); date_sub('minute', a, b); date_diff('ms', a, b)
        """,
}
"""What is called, by the types of its arguments; semicolons between."""

LOOSE = (
    "gamma",
    "log",
    "sin",
    "cos",
    "tan",
    "cot",
    "h(a)",
    "cbrt",
    "jar",
    "epoch",
    "/",
    "degrees",
    "radians",
)
"""What may differ in the last bits."""


@pytest.fixture(scope="module")
def duckdb_oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck.connect() as connection:
        yield connection


def bound(sql: str, kinds: Sequence[pa.DataType]) -> Expression:
    """The expression over columns a and b of table t."""
    table = SchemaOnly("t", pa.schema(list(zip("ab", kinds, strict=False))))
    (statement,) = bind(f"SELECT {sql} FROM t", MemoryCatalog(table))
    plan: Any = statement
    return plan.plan.expressions[0]


def calls_of(kinds: tuple[pa.DataType, ...]) -> list[str]:
    return [call.strip() for call in CASES[kinds].split(";") if call.strip()]


def check(oracle: duckdb.DuckDBPyConnection, kinds: Sequence[pa.DataType], sql: str, columns: Any) -> None:
    tolerance = 1e-12 if any(word in sql for word in LOOSE) else 0.0
    duck.check(oracle, bound(sql, kinds), sql, columns, tolerance)


@pytest.mark.parametrize("kinds", CASES, ids=str)
def test_special_values(duckdb_oracle: duckdb.DuckDBPyConnection, kinds: tuple[pa.DataType, ...]) -> None:
    if len(kinds) == 1:
        columns = single(kinds[0])
    elif kinds[0] == kinds[1]:
        columns = pairs(kinds[0], 120)
    else:
        columns = [pairs(kinds[0], 60)[0], pairs(kinds[1], 60)[1]]
    for sql in calls_of(kinds):
        check(duckdb_oracle, kinds, sql, columns)


@RELAXED
@given(data=st.data())
@pytest.mark.parametrize("kinds", CASES, ids=str)
def test_random_values(
    duckdb_oracle: duckdb.DuckDBPyConnection, kinds: tuple[pa.DataType, ...], data: st.DataObject
) -> None:
    # DuckDB cuts its own messages within a character.
    calls = [call for call in calls_of(kinds) if call not in ("unhex(a)", "unbin(a)")]
    sql = data.draw(st.sampled_from(calls))
    size = data.draw(st.integers(1, 20))
    columns = [data.draw(arrays(kind, size=size)) for kind in kinds]
    check(duckdb_oracle, kinds, sql, columns)
