"""Parts and truncation of dates and timestamps, and days, against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Literal
from tests.oracle import check, evaluate
from tests.strategies import TIMESTAMPS, array, arrays, specials

DATES = (pa.date32(), *TIMESTAMPS)
UNITS = {
    **dict.fromkeys(["year", "quarter", "month", "day", "hour", "minute", "second", "week", "isodow"]),
    "dayofweek": "dow",
    "dayofyear": "doy",
}


def unit_literal(unit: str | None) -> Literal:
    return Literal(pa.scalar(unit, pa.large_string()))


def reference(kind: pa.DataType) -> ColumnRef:
    return ColumnRef(0, "a", kind)


@pytest.mark.parametrize("kind", DATES, ids=type_name)
@pytest.mark.parametrize("unit", UNITS)
def test_parts(oracle: duckdb.DuckDBPyConnection, unit: str, kind: pa.DataType) -> None:
    call = Call("date_part", (unit_literal(unit), reference(kind)), pa.int64())
    check(oracle, call, f"date_part('{UNITS[unit] or unit}', a)", [array([*specials(kind), None], kind)])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), unit=st.sampled_from(sorted(UNITS)))
def test_parts_of_random_dates(oracle: duckdb.DuckDBPyConnection, data: st.DataObject, unit: str) -> None:
    # DuckDB reads nanoseconds as the nearest microsecond, which may be in the next year.
    kind = data.draw(st.sampled_from([kind for kind in DATES if kind != pa.timestamp("ns")]))
    call = Call("date_part", (unit_literal(unit), reference(kind)), pa.int64())
    check(oracle, call, f"date_part('{UNITS[unit] or unit}', a)", [data.draw(arrays(kind))])


@pytest.mark.parametrize("kind", DATES, ids=type_name)
@pytest.mark.parametrize("unit", UNITS)
def test_truncation(oracle: duckdb.DuckDBPyConnection, unit: str, kind: pa.DataType) -> None:
    call = Call("date_trunc", (unit_literal(unit), reference(kind)), kind)
    sql = f"date_trunc('{UNITS[unit] or unit}', a)::{type_name(kind)}"
    if kind == pa.timestamp("ns"):
        sql = f"date_trunc('{UNITS[unit] or unit}', a::TIMESTAMP)::TIMESTAMP_NS"
    check(oracle, call, sql, [array([*specials(kind), None], kind)])


@pytest.mark.parametrize("kind", DATES, ids=type_name)
def test_epoch(oracle: duckdb.DuckDBPyConnection, kind: pa.DataType) -> None:
    call = Call("epoch", (reference(kind),), pa.float64())
    check(oracle, call, "epoch(a)", [array([*specials(kind), None], kind)], tolerance=1e-15)


def test_years_before_the_first_and_after_the_32767th() -> None:
    days = array([-719_163, -1_000_000_000, 1_000_000_000, None], pa.date32())
    batch = pa.record_batch([days], ["a"])
    call = Call("date_part", (unit_literal("year"), reference(pa.date32())), pa.int64())
    assert evaluate(call, batch) == [0, -2735938, 2739877, None]


@pytest.mark.parametrize("function", ["date_part", "date_trunc"])
def test_a_null_unit_gives_null(function: str) -> None:
    kind = pa.int64() if function == "date_part" else pa.date32()
    batch = pa.record_batch([array([1, None], pa.date32())], ["a"])
    assert evaluate(Call(function, (unit_literal(None), reference(pa.date32())), kind), batch) == [None, None]


@pytest.mark.parametrize("function", ["date_part", "date_trunc"])
def test_constants(function: str) -> None:
    kind = pa.int64() if function == "date_part" else pa.date32()
    batch = pa.record_batch([array([1, None], pa.date32())], ["a"])
    day = Literal(array([18_262], pa.date32())[0])
    expected = 2020 if function == "date_part" else 18_262
    assert evaluate(Call(function, (unit_literal("year"), day), kind), batch) == [expected] * 2


def test_truncation_below_the_earliest_value_is_an_error() -> None:
    kind = pa.timestamp("us")
    batch = pa.record_batch([array([None, -(2**63) + 5], kind)], ["a"])
    with pytest.raises(ExecutionError, match="TIMESTAMP overflow: the year begins before"):
        CpuDevice().evaluate([Call("date_trunc", (unit_literal("year"), reference(kind)), kind)], batch)


def test_days(oracle: duckdb.DuckDBPyConnection) -> None:
    dates, days = (
        array([0, 18_262, None, -5, 1], pa.date32()),
        pa.array([1, -400, 2, None, 10_000], pa.int32()),
    )
    later = Call("add_days", (reference(pa.date32()), ColumnRef(1, "b", pa.int32())), pa.date32())
    check(oracle, later, "a + b", [dates, days])
    others = array([5, 5, 5, None, -3], pa.date32())
    between = Call("days_between", (reference(pa.date32()), ColumnRef(1, "b", pa.date32())), pa.int64())
    check(oracle, between, "a - b", [dates, others])


def test_days_beyond_all_dates_are_an_error() -> None:
    batch = pa.record_batch([array([2**31 - 1], pa.date32())], ["a"])
    one = Literal(pa.scalar(1, pa.int32()))
    with pytest.raises(ExecutionError, match="DATE overflow"):
        CpuDevice().evaluate([Call("add_days", (reference(pa.date32()), one), pa.date32())], batch)
