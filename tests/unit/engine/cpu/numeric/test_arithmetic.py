"""Arithmetic and rounding against DuckDB: all pairs of special values, and random ones."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from tests.oracle import check
from tests.strategies import DECIMALS, FLOATS, INTEGERS, array, arrays, specials

NUMBERS = (*INTEGERS, *FLOATS)
OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "modulo": "%",
}


def column(kind: pa.DataType, index: int = 0) -> ColumnRef:
    return ColumnRef(index, "ab"[index], kind)


def literal(value: object, kind: pa.DataType) -> Literal:
    return Literal(pa.scalar(value, kind))


def pairs(kind: pa.DataType) -> list[pa.Array]:
    """Two columns with every pair of special values, nulls included."""
    chosen = [*specials(kind), None]
    left, right = zip(*product(chosen, chosen), strict=True)
    return [array(left, kind), array(right, kind)]


def decimal_call(function: str, kind: pa.Decimal128Type) -> Expression:
    """As the binder makes it: sums have one more digit, products all digits of both."""
    if function == "multiply":
        # Numbers of one 64-bit word stay in one.
        most = 18 if kind.precision <= 18 else 38
        result = pa.decimal128(min(2 * kind.precision, most), 2 * kind.scale)
        return Call(function, (column(kind), column(kind, 1)), result)
    extra = 0 if function == "modulo" else 1
    result = pa.decimal128(min(kind.precision + extra, 38), kind.scale)
    arguments = [column(kind), column(kind, 1)]
    if result != kind:
        return Call(function, tuple(Cast(argument, result) for argument in arguments), result)
    return Call(function, tuple(arguments), result)


@pytest.mark.parametrize(
    ("function", "kind"),
    [(f, kind) for f in OPERATORS for kind in (FLOATS if f == "divide" else NUMBERS)],
    ids=str,
)
def test_numbers(oracle: duckdb.DuckDBPyConnection, function: str, kind: pa.DataType) -> None:
    call = Call(function, (column(kind), column(kind, 1)), kind)
    check(oracle, call, f"a {OPERATORS[function]} b", pairs(kind))


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (f, kind)
        for f in ("add", "subtract", "multiply", "modulo")
        for kind in DECIMALS
        if f != "multiply" or 2 * kind.scale <= 38
    ],
    ids=str,
)
def test_decimals(oracle: duckdb.DuckDBPyConnection, function: str, kind: pa.Decimal128Type) -> None:
    check(oracle, decimal_call(function, kind), f"a {OPERATORS[function]} b", pairs(kind))


def test_whole_decimals_divide_toward_zero(oracle: duckdb.DuckDBPyConnection) -> None:
    kind = pa.decimal128(38, 0)
    call = Call("floor_divide", (column(kind), column(kind, 1)), kind)
    check(oracle, call, "a::HUGEINT // b::HUGEINT", pairs(kind))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), function=st.sampled_from(["add", "subtract", "multiply", "floor_divide", "modulo"]))
def test_random_numbers(oracle: duckdb.DuckDBPyConnection, data: st.DataObject, function: str) -> None:
    kind = data.draw(st.sampled_from(NUMBERS))
    columns = [data.draw(arrays(kind, size=12)) for _ in range(2)]
    call = Call(function, (column(kind), column(kind, 1)), kind)
    check(oracle, call, f"a {OPERATORS[function]} b", columns)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), function=st.sampled_from(["add", "subtract", "multiply", "modulo"]))
def test_random_decimals(oracle: duckdb.DuckDBPyConnection, data: st.DataObject, function: str) -> None:
    kind = data.draw(st.sampled_from([kind for kind in DECIMALS if kind.scale < 19]))
    columns = [data.draw(arrays(kind, size=12)) for _ in range(2)]
    check(oracle, decimal_call(function, kind), f"a {OPERATORS[function]} b", columns)


@pytest.mark.parametrize("kind", [*NUMBERS, *DECIMALS], ids=type_name)
@pytest.mark.parametrize(("function", "sql"), [("negate", "-a"), ("abs", "abs(a)")])
def test_signs(oracle: duckdb.DuckDBPyConnection, function: str, sql: str, kind: pa.DataType) -> None:
    check(oracle, Call(function, (column(kind),), kind), sql, [array([*specials(kind), None], kind)])


@pytest.mark.parametrize("function", ["sqrt", "ln", "exp"])
def test_roots_and_logarithms(oracle: duckdb.DuckDBPyConnection, function: str) -> None:
    kind = pa.float64()
    values = array([*specials(kind), None, 2.0, 710.0], kind)
    check(oracle, Call(function, (column(kind),), kind), f"{function}(a)", [values], tolerance=1e-15)


def test_powers(oracle: duckdb.DuckDBPyConnection) -> None:
    kind = pa.float64()
    call = Call("power", (column(kind), column(kind, 1)), kind)
    check(oracle, call, "power(a, b)", pairs(kind), tolerance=1e-15)


@pytest.mark.parametrize("kind", [*FLOATS, *DECIMALS], ids=type_name)
@pytest.mark.parametrize("function", ["floor", "ceil"])
def test_floor_and_ceil(oracle: duckdb.DuckDBPyConnection, function: str, kind: pa.DataType) -> None:
    result = pa.decimal128(kind.precision, 0) if pa.types.is_decimal(kind) else kind
    check(
        oracle,
        Call(function, (column(kind),), result),
        f"{function}(a)",
        [array([*specials(kind), None], kind)],
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in NUMBERS if not pa.types.is_unsigned_integer(kind)], ids=type_name
)
@pytest.mark.parametrize("digits", [0, 1, 2, 9, 40, -1, -2, -5, -19, -40])
def test_round_numbers(oracle: duckdb.DuckDBPyConnection, digits: int, kind: pa.DataType) -> None:
    call = Call("round", (column(kind), literal(digits, pa.int32())), kind)
    check(oracle, call, f"round(a, {digits})", [array([*specials(kind), 15, 25, 45, None], kind)])


@pytest.mark.parametrize("kind", DECIMALS, ids=type_name)
@pytest.mark.parametrize("digits", [0, 1, 2, 9, 40, -1, -2, -5, -19, -40])
def test_round_decimals(oracle: duckdb.DuckDBPyConnection, digits: int, kind: pa.Decimal128Type) -> None:
    result = pa.decimal128(kind.precision, min(kind.scale, max(digits, 0)))
    call = Call("round", (column(kind), literal(digits, pa.int32())), result)
    # DuckDB makes 0 of a null here, and more digits of all nines than its type has.
    small = [value for value in specials(kind) if abs(value) < Decimal(10) ** (kind.precision - 1)]
    check(oracle, call, f"round(a, {digits})", [array(small or [Decimal(0)], kind)])
    assert CpuDevice().evaluate([call], pa.record_batch([pa.nulls(1, kind)], ["a"])).column(0).null_count == 1


def test_round_overflow_is_an_error() -> None:
    batch = pa.record_batch([pa.array([1, 255], pa.uint8())], ["a"])
    call = Call("round", (column(pa.uint8()), literal(-1, pa.int32())), pa.uint8())
    with pytest.raises(ExecutionError, match="UTINYINT overflow: rounding to multiples of 10 gives 260"):
        CpuDevice().evaluate([call], batch)


@pytest.mark.parametrize(
    ("function", "values", "kind", "words"),
    [
        ("add", [[100], [28]], pa.int8(), "TINYINT overflow: 100 \\+ 28 "),
        ("negate", [[-128]], pa.int8(), "TINYINT overflow: --128 "),
        ("floor_divide", [[-128], [-1]], pa.int8(), "TINYINT overflow: -128 // -1 "),
        ("add", [[Decimal(99)], [Decimal(1)]], pa.decimal128(2, 0), "DECIMAL\\(2,0\\) overflow: 99 \\+ 1 "),
    ],
)
def test_overflow_names_operation_type_and_values(
    function: str, values: list[list[object]], kind: pa.DataType, words: str
) -> None:
    columns = [pa.array([1, None, *chosen], kind) for chosen in values]
    batch = pa.RecordBatch.from_arrays(columns, ["a", "b"][: len(columns)])
    call = Call(function, tuple(column(kind, i) for i in range(len(columns))), kind)
    with pytest.raises(ExecutionError, match=words):
        CpuDevice().evaluate([call], batch)


@pytest.mark.parametrize("constant_first", [False, True])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(38, 10)], ids=type_name)
def test_constants_count_as_columns_of_them(
    oracle: duckdb.DuckDBPyConnection, kind: pa.DataType, constant_first: bool
) -> None:
    other = literal(Decimal("1.5") if pa.types.is_decimal(kind) else 3, kind)
    shown = f"{other.value.as_py()}::{type_name(kind)}"
    arguments = (other, column(kind)) if constant_first else (column(kind), other)
    for function in ("add", "subtract", "modulo"):
        symbol = OPERATORS[function]
        sql = f"{shown} {symbol} a" if constant_first else f"a {symbol} {shown}"
        check(oracle, Call(function, arguments, kind), sql, [array([*specials(kind), None], kind)])


def test_constants_alone_give_a_constant() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2])], ["a"])
    call = Call("add", (literal(1, pa.int64()), literal(2, pa.int64())), pa.int64())
    assert CpuDevice().evaluate([call], batch).column(0).to_pylist() == [3, 3]
