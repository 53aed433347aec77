"""Functions of rows give what a device gives, or leave the row to it."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.recursion.by_row.expressions import row_function
from bamquery.engine.operators.recursion.by_row.values import (
    DATE,
    MOMENT,
    LeftToDeviceError,
    column_of,
    rows_of,
)
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

BOOLEAN, TEXT, DOUBLE = pa.bool_(), pa.large_string(), pa.float64()
NUMBERS = (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), HUGEINT, DOUBLE)
KINDS: tuple[pa.DataType, ...] = (*NUMBERS, TEXT, BOOLEAN, DATE, MOMENT)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
ARITHMETIC = ("add", "subtract", "multiply", "floor_divide", "modulo")
DAY = 86_400 * 10**6
PARTS = ("year", "quarter", "month", "day", "dayofweek", "isodow", "dayofyear", "week")
DISTINCTNESS = ("is_distinct_from", "is_not_distinct_from")


def bounds(kind: pa.DataType) -> tuple[int, int]:
    if kind == HUGEINT:
        return 1 - 10**38, 10**38 - 1
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if kind == BOOLEAN:
        return st.none() | st.booleans()
    if kind == TEXT:
        return st.none() | st.text("aAé\U0001f986 \0", max_size=4)
    if kind == DOUBLE:
        return (
            st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 2.5])
        )
    if kind in (DATE, MOMENT):
        unit = 1 if kind == DATE else DAY
        days = st.integers(-719_162, 2_932_896) | st.integers(10_000, 12_000)
        return st.none() | st.builds(lambda day, rest: day * unit + rest, days, st.integers(0, unit - 1))
    low, high = bounds(kind)
    return st.none() | st.integers(low, high) | st.integers(max(low, -3), 3)


def constant(value: Any, kind: pa.DataType) -> Literal:
    return Literal(column_of([value], kind)[0])


def column(index: int, kind: pa.DataType) -> ColumnRef:
    return ColumnRef(index, "c", kind)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Expression, tuple[Any, ...], tuple[pa.DataType, ...]]:
    """An expression over two columns of one type and a boolean, and a row."""
    kind = draw(st.sampled_from(KINDS))
    one, other, truth = column(0, kind), column(1, kind), column(2, BOOLEAN)
    row = draw(st.tuples(values(kind), values(kind), values(BOOLEAN)))
    some = constant(draw(values(kind)), kind)
    found: list[Expression] = [Call(name, (one, other), BOOLEAN) for name in (*COMPARISONS, *DISTINCTNESS)]
    compared = Call("less", (one, some), BOOLEAN)
    found += [Call(name, (compared, truth), BOOLEAN) for name in ("and", "or")]
    found += [
        Call("not", (truth,), BOOLEAN),
        Call("is_null", (one,), BOOLEAN),
        Call("is_not_null", (one,), BOOLEAN),
    ]
    found += [
        Call("coalesce", (one, some, other), kind),
        Call("case", (truth, one, compared, some, other), kind),
    ]
    if kind != DOUBLE:
        found.append(Call("in", (one, some, constant(row[1], kind)), BOOLEAN))
    if kind in NUMBERS:
        found += [
            Call(name, (one, other), kind)
            for name in ("add", "subtract", "multiply", "floor_divide", "modulo")
        ]
        found += [Call("abs", (one,), kind)]
        if not pa.types.is_unsigned_integer(kind):
            found.append(Call("negate", (one,), kind))
    if kind in NUMBERS[:-1]:
        found += [Cast(one, to) for to in (*NUMBERS, TEXT)]
    if kind == DOUBLE:
        found.append(Call("divide", (one, other), kind))
        found += [Call(name, (one,), kind) for name in ("sqrt", "floor", "ceil")]
    if kind == TEXT:
        found.append(Call("concat", (one, other), kind))
    if kind == TEXT:
        found += [Call(name, (one,), TEXT) for name in ("upper", "lower")]
        found += [Call("length", (one,), pa.int64()), Call("replace", (one, some, other), TEXT)]
        start, length = draw(st.integers(-3, 5)), draw(st.none() | st.integers(-2, 4))
        places = constant(start, pa.int64()), constant(length, pa.int64())
        found.append(Call("substring", (one, *places), TEXT))
    if kind in (DATE, MOMENT):
        unit = constant(draw(st.sampled_from(PARTS)), TEXT)
        found += [Call("date_part", (unit, one), pa.int64()), Cast(one, MOMENT if kind == DATE else DATE)]
    if kind == DATE:
        days = constant(draw(values(pa.int32())), pa.int32())
        found += [Call("add_days", (one, days), DATE), Call("days_between", (one, other), pa.int64())]
    if kind == MOMENT:
        parts = draw(st.tuples(st.integers(-50, 50), st.integers(-400, 400), st.integers(-DAY, DAY)))
        span = Literal(pa.scalar((*parts[:2], parts[2] * 1000), INTERVAL))
        found += [Call(name, (one, span), MOMENT) for name in ("add_interval", "subtract_interval")]
    return draw(st.sampled_from(found)), row, (kind, kind, BOOLEAN)


def is_left_out(expression: Expression) -> bool:
    """Whether it is of those that only a device computes for all rows."""
    match expression:
        case Cast(argument=argument, type=kind):
            return (argument.type, kind) == (HUGEINT, DOUBLE)
        case Call(function="floor_divide" | "modulo", type=kind):
            return kind == DOUBLE
        case Call(function="date_part", arguments=(unit, _)):
            return unit == constant("week", TEXT)
        case Call(function="substring", arguments=(_, start, length)):
            places = [place.value.as_py() for place in (start, length) if isinstance(place, Literal)]
            return places[0] < 1 or (places[1] is not None and places[1] < 0)
        case _:
            return False


@given(cases())
def test_as_a_device(case: tuple[Expression, tuple[Any, ...], tuple[pa.DataType, ...]]) -> None:
    expression, row, kinds = case
    function = row_function(expression)
    if function is None:
        assert is_left_out(expression)
        return
    frame = pa.record_batch(
        [column_of([value], kind) for value, kind in zip(row, kinds, strict=True)], list("abc")
    )
    try:
        mine = function(row)
    except LeftToDeviceError:
        return
    device = CpuDevice()
    answer = device.evaluate([expression], frame).column(0)
    assert answer.type == expression.type
    assert repr(rows_of([answer], 1)) == repr([(mine,)])


@pytest.mark.parametrize("kind", NUMBERS[:-1], ids=str)
def test_what_leaves_the_type_is_left_to_a_device(kind: pa.DataType) -> None:
    _, most = bounds(kind)
    expression = Call("add", (column(0, kind), Literal(pa.scalar(1, kind))), kind)
    function = row_function(expression)
    assert function is not None
    assert function((most - 1,)) == most
    with pytest.raises(LeftToDeviceError):
        function((most,))
    with pytest.raises(ExecutionError):
        CpuDevice().evaluate([expression], pa.record_batch([pa.array([most], kind)], ["a"]))


@pytest.mark.parametrize(
    ("name", "kind", "row"),
    [
        ("divide", DOUBLE, (1.0, 0.0)),
        ("multiply", DOUBLE, (1e200, 1e200)),
        ("modulo", pa.int32(), (1, 0)),
        ("modulo", pa.int32(), (-1, 2)),
        ("floor_divide", pa.int32(), (-1, 2)),
        ("concat", TEXT, ("a" * 1000, "b" * 1000)),
    ],
)
def test_what_is_special_is_left_to_a_device(name: str, kind: pa.DataType, row: tuple[Any, ...]) -> None:
    function = row_function(Call(name, (column(0, kind), column(1, kind)), kind))
    assert function is not None
    with pytest.raises(LeftToDeviceError):
        function(row)


def test_roots_of_negative_numbers_are_left_to_a_device() -> None:
    function = row_function(Call("sqrt", (column(0, DOUBLE),), DOUBLE))
    assert function is not None
    assert repr(function((-0.0,))) == "-0.0"
    with pytest.raises(LeftToDeviceError):
        function((-1.0,))


@pytest.mark.parametrize("value", [math.nan, math.inf, "x" * 2000])
def test_special_values_do_not_come_in(value: object) -> None:
    with pytest.raises(LeftToDeviceError):
        rows_of([pa.array([value])], 1)


@pytest.mark.parametrize(
    "expression",
    [
        Call("ln", (column(0, DOUBLE),), DOUBLE),
        Call("add", (column(0, pa.date32()), Literal(pa.scalar(1, pa.int32()))), pa.date32()),
        Cast(column(0, pa.date32()), TEXT),
        Cast(column(0, TEXT), pa.int32()),
        Cast(column(0, pa.int64()), pa.int32(), try_=True),
        Call("random", (), DOUBLE),
    ],
    ids=str,
)
def test_others_are_not_for_rows(expression: Expression) -> None:
    assert row_function(expression) is None
