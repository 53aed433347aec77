"""INSERT statements are read back by both engines as the values, and the types, that they were made of."""

from __future__ import annotations

import io
import math
import struct
from datetime import date, time
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bamquery
from bamquery.data_types.names import type_name
from bamquery.output.display_options import DisplayOptions
from bamquery.output.inserts import write_inserts
from bamquery.output.literals import identifier, literals
from tests.selection.effort import effort

UTC_MOMENTS = st.integers(-60_000_000_000_000_000, 200_000_000_000_000_000)
"""Microseconds from the year 69 to 8307."""


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    numbers = st.integers(-most, most) | st.sampled_from([-most, most])
    return numbers.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): integers(64),
    pa.uint8(): integers(8, signed=False),
    pa.uint16(): integers(16, signed=False),
    pa.uint32(): integers(32, signed=False),
    pa.uint64(): integers(64, signed=False),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(38, 0): decimals(38, 0),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.decimal128(2, 2): decimals(2, 2),
    pa.decimal128(18, 3): decimals(18, 3),
    pa.large_string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.sampled_from(["", "'", "''", ";", "--", "\\", "$1", "?", "a\0b", "\0", "\r\n", "NULL", "\x1b[0m"]),
    pa.large_binary(): st.binary(max_size=6) | st.sampled_from([b"'", b"\\x41", b'"', b"\\", b"\x00"]),
    pa.date32(): st.dates() | st.sampled_from([date(1, 1, 1), date(9999, 12, 31)]),
    pa.time64("us"): st.times() | st.just(time(23, 59, 59, 999_999)),
    pa.timestamp("us"): UTC_MOMENTS,
    pa.timestamp("us", "UTC"): UTC_MOMENTS,
    pa.timestamp("s"): st.integers(-60_000_000_000, 200_000_000_000),
    pa.timestamp("ms"): st.integers(-60_000_000_000_000, 200_000_000_000_000),
    pa.timestamp("ns"): st.integers(-(1 << 62), 1 << 62),
}
"""Every type that tables hold, with values of it."""


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 4))
    columns = [
        pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
        for kind, values in VALUES.items()
    ]
    return pa.Table.from_arrays(columns, [f'c"{i}' for i in range(len(columns))])


def created(table: pa.Table, name: str) -> str:
    columns = ", ".join(f"{identifier(field.name)} {type_name(field.type)}" for field in table.schema)
    return f"CREATE TABLE {identifier(name)} ({columns})"


def inserts(table: pa.Table, name: str) -> str:
    out = io.BytesIO()
    assert write_inserts(table.to_batches(), table.schema, out, DisplayOptions(table_name=name)) == len(table)
    return out.getvalue().decode()


def bits(table: pa.Table) -> list[list[Any]]:
    """The values, so that -0.0 is not 0.0 and every NaN is one."""

    def exact(value: Any) -> Any:
        if isinstance(value, float):
            return "nan" if math.isnan(value) else struct.pack("<d", value)
        return value

    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())  # noqa: PLW2901 (nanoseconds are no datetime)
        columns.append([exact(value) for value in column.to_pylist()])
    return columns


@pytest.fixture(scope="module")
def engines() -> Any:
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    with bamquery.connect() as con:
        yield con, duck


@pytest.mark.long
@settings(max_examples=effort(12, 500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables())
def test_both_engines_read_the_values_back(engines: Any, table: pa.Table) -> None:
    con, duck = engines
    name = 'odd "name"; --'
    duck.execute(f"CREATE OR REPLACE {created(table, name).removeprefix('CREATE ')}")
    duck.execute(inserts(table, name))
    found = duck.sql(f"SELECT * FROM {identifier(name)}").to_arrow_table()
    assert bits(found) == bits(table)
    con.sql(f"CREATE OR REPLACE {created(table, name).removeprefix('CREATE ')}")
    con.sql(inserts(table, name))
    assert bits(con.sql(f"SELECT * FROM {identifier(name)}").to_arrow()) == bits(table)


@settings(max_examples=10, deadline=None)
@given(table=tables())
def test_literals_have_their_types(engines: Any, table: pa.Table) -> None:
    """But for integers and decimals without digits after the point, which are as wide as they must be."""
    con, duck = engines
    named = [c for c in table.columns if not (pa.types.is_integer(c.type) or pa.types.is_boolean(c.type))]
    named = [c for c in named if c.type not in (pa.float32(), pa.decimal128(38, 0))]
    pairs = [
        (literal, type_name(column.type))
        for column in named
        for literal, value in zip(literals(column.combine_chunks()), column, strict=True)
        if value.is_valid
    ]
    if pairs:
        types = [kind for _, kind in pairs]
        asked = ", ".join(f"typeof({literal})" for literal, _ in pairs)
        assert list(duck.execute(f"SELECT {asked}").fetchall()[0]) == types
        assert con.sql(f"SELECT {', '.join(literal for literal, _ in pairs)}").types == types


@pytest.mark.parametrize(
    "text",
    [
        "1 month 2 days",
        "-1 months -2 days -01:00:00.5",
        "00:00:00",
        "100 years",
        "-00:00:00.000001",
    ],
)
def test_intervals(engines: Any, text: str) -> None:
    con, duck = engines
    column = con.sql(f"SELECT '{text}'::INTERVAL AS i").to_arrow()["i"].combine_chunks()
    (literal,) = literals(column)
    assert con.sql(f"SELECT {literal} AS i").to_arrow()["i"].to_pylist() == column.to_pylist()
    assert duck.execute(f"SELECT {literal} = '{text}'::INTERVAL").fetchall() == [(True,)]


@pytest.mark.parametrize(
    "value", ["'24:00:00'::TIME", "'0044-03-15 (BC)'::DATE", "'0044-03-15 (BC) 12:00:00'::TIMESTAMP"]
)
def test_values_that_python_has_not(engines: Any, value: str) -> None:
    con, duck = engines
    query = f"SELECT ({value})::VARCHAR"
    column = con.sql(f"SELECT {value} AS x").to_arrow()["x"].combine_chunks()
    assert literals(column) == [value]
    assert duck.execute(query).fetchall() == con.sql(query).fetchall()


def test_rows_are_split_among_statements() -> None:
    many = inserts(pa.table({"a": range(2500)}), "t")
    assert many.count("INSERT INTO") == 3
    assert many.count(";") == 3
    large = inserts(pa.table({"s": ["x" * 400_000] * 5}), "t")
    assert large.count("INSERT INTO") == 2
