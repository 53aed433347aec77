"""Functions of numpy's arrays give what a device gives, or leave the rows to it."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.recursion.by_column.expressions import column_function
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    LIMITS,
    column_from_arrow,
    columns_to_arrow,
    spread,
)
from bamquery.engine.operators.recursion.by_row.values import DATE, MOMENT, LeftToDeviceError, column_of
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

BOOLEAN, DOUBLE, TEXT = pa.bool_(), pa.float64(), pa.large_string()
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())
KINDS: tuple[pa.DataType, ...] = (*INTEGERS, HUGEINT, DOUBLE, BOOLEAN, DATE, MOMENT, TEXT)
DAY = 86_400 * 10**6
ROWS = 3


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if kind == BOOLEAN:
        return st.none() | st.booleans()
    if kind == DOUBLE:
        special = st.sampled_from([0.0, -0.0, -0.5, 2.5])
        return st.none() | st.floats(allow_nan=False, allow_infinity=False) | special
    if kind == TEXT:
        return st.none() | st.text("aAb\0é\U0001f986", max_size=3)
    low, high = LIMITS[kind]
    return st.none() | st.integers(low, high) | st.integers(max(low, -3), 3)


def constant(value: Any, kind: pa.DataType) -> Literal:
    return Literal(column_of([value], kind)[0])


def column(index: int, kind: pa.DataType) -> ColumnRef:
    return ColumnRef(index, "c", kind)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Expression, pa.RecordBatch]:
    """An expression over two columns of one type and a boolean, and some rows."""
    kind = draw(st.sampled_from(KINDS))
    one, other, truth = column(0, kind), column(1, kind), column(2, BOOLEAN)
    columns = [
        column_of(draw(st.lists(values(each), min_size=ROWS, max_size=ROWS)), each)
        for each in (kind, kind, BOOLEAN)
    ]
    some = constant(draw(values(kind)), kind)
    tests = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    found: list[Expression] = [
        Call(name, (one, draw(st.sampled_from([other, some]))), BOOLEAN)
        for name in (*tests, "is_distinct_from", "is_not_distinct_from")
    ]
    compared = Call("less", (one, some), BOOLEAN)
    found += [Call(name, (compared, truth), BOOLEAN) for name in ("and", "or")]
    found += [Call("not", (truth,), BOOLEAN)]
    found += [Call(name, (one,), BOOLEAN) for name in ("is_null", "is_not_null")]
    found += [
        Call("coalesce", (one, some, other), kind),
        Call("case", (truth, one, compared, some, other), kind),
        Call("in", (one, some, other), BOOLEAN),
    ]
    if kind in INTEGERS or kind in (HUGEINT, DOUBLE):
        found += [
            Call(name, (one, draw(st.sampled_from([other, some]))), kind)
            for name in ("add", "subtract", "multiply", "floor_divide", "modulo")
        ]
        found += [Call(name, (one,), kind) for name in ("abs", "negate")]
    if kind in INTEGERS:
        found += [Cast(one, to) for to in (*INTEGERS, HUGEINT, DOUBLE, TEXT)]
    if kind == HUGEINT:
        found += [Cast(one, to) for to in INTEGERS]
    if kind == TEXT:
        found += [Call("concat", (one, draw(st.sampled_from([other, some]))), TEXT)]
        found += [Call("upper", (one,), TEXT), Call("length", (one,), pa.int64())]
        found += [Call("replace", (one, some, other), TEXT)]
        start, length = draw(st.integers(1, 4)), draw(st.none() | st.integers(0, 3))
        places = [constant(start, pa.int64()), *([] if length is None else [constant(length, pa.int64())])]
        joined = Call("concat", (one, Call("lower", (other,), TEXT)), TEXT)
        found += [Call("substring", (joined, *places), TEXT), Call("length", (joined,), pa.int64())]
        found += [Call("concat", (some, Call("coalesce", (one, other), TEXT)), TEXT)]
    if kind == DOUBLE:
        found.append(Call("divide", (one, other), kind))
        found += [Call(name, (one,), kind) for name in ("sqrt", "floor", "ceil")]
    if kind in (DATE, MOMENT):
        found.append(Cast(one, MOMENT if kind == DATE else DATE))
    if kind == DATE:
        days = constant(draw(values(pa.int32())), pa.int32())
        found += [Call("add_days", (one, days), DATE), Call("days_between", (one, other), pa.int64())]
    if kind == MOMENT:
        span = Literal(
            pa.scalar((0, draw(st.integers(-400, 400)), draw(st.integers(-DAY, DAY)) * 1000), INTERVAL)
        )
        found += [Call(name, (one, span), MOMENT) for name in ("add_interval", "subtract_interval")]
    return draw(st.sampled_from(found)), pa.record_batch(columns, list("abc"))


@given(cases())
def test_as_a_device(case: tuple[Expression, pa.RecordBatch]) -> None:
    expression, frame = case
    texts = TextCodes()
    function = column_function(expression, texts)
    if function is None:
        assert expression.type == DOUBLE
        assert isinstance(expression, Call)
        assert expression.function in ("floor_divide", "modulo")
        return
    try:
        mine = function([column_from_arrow(each, texts) for each in frame.columns])
    except LeftToDeviceError:
        return
    array = columns_to_arrow([spread(mine, ROWS)], expression.type, texts)
    answer = CpuDevice().evaluate([expression], frame).column(0)
    assert answer.type == array.type
    assert repr(answer.to_pylist()) == repr(array.to_pylist())
    if expression.type in LIMITS and expression.type not in (TEXT, HUGEINT):
        low, high = mine.low, mine.high
        assert all(value is None or low <= value <= high for value in _stored(array))


def _stored(array: Any) -> list[int | None]:
    plain = {DATE: pa.int32(), MOMENT: pa.int64()}.get(array.type, array.type)
    found: list[int | None] = array.view(plain).to_pylist()
    return found


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_what_leaves_the_type_is_left_to_a_device(kind: pa.DataType) -> None:
    _, most = LIMITS[kind]
    expression = Call("add", (column(0, kind), constant(1, kind)), kind)
    function = column_function(expression, TextCodes())
    assert function is not None
    fits = function([column_from_arrow(pa.array([most - 1, None], kind), TextCodes())])
    assert (fits.values[0], fits.high) == (most, most)
    with pytest.raises(LeftToDeviceError):
        function([column_from_arrow(pa.array([0, most], kind), TextCodes())])
    with pytest.raises(ExecutionError):
        CpuDevice().evaluate([expression], pa.record_batch([pa.array([most], kind)], ["a"]))


def test_wide_bounds_are_looked_at_again() -> None:
    kind = pa.int8()
    function = column_function(Call("add", (column(0, kind), constant(100, kind)), kind), TextCodes())
    assert function is not None
    given = column_from_arrow(pa.array([1, 2], kind), TextCodes())._replace(low=-128, high=127)
    found = function([given])
    assert (found.values.tolist(), found.low, found.high) == ([101, 102], 101, 102)


@pytest.mark.parametrize(
    ("name", "kind", "row"),
    [
        ("divide", DOUBLE, (1.0, 0.0)),
        ("multiply", DOUBLE, (1e200, 1e200)),
        ("modulo", pa.int32(), (1, 0)),
        ("modulo", pa.int32(), (1, -2)),
        ("floor_divide", pa.int32(), (-1, 2)),
    ],
)
def test_what_is_special_is_left_to_a_device(name: str, kind: pa.DataType, row: tuple[Any, Any]) -> None:
    function = column_function(Call(name, (column(0, kind), column(1, kind)), kind), TextCodes())
    assert function is not None
    with pytest.raises(LeftToDeviceError):
        function([column_from_arrow(pa.array([value], kind), TextCodes()) for value in row])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.0, math.nan]),
        pa.array([math.inf]),
        pa.array([3 * 10**6], DATE),
        pa.array([1 << 63, None], HUGEINT),
    ],
)
def test_special_values_do_not_come_in(array: Any) -> None:
    with pytest.raises(LeftToDeviceError):
        column_from_arrow(array, TextCodes())


@pytest.mark.parametrize(
    "expression",
    [
        Call("ln", (column(0, DOUBLE),), DOUBLE),
        Call("reverse", (column(0, TEXT),), TEXT),
        Cast(column(0, HUGEINT), DOUBLE),
        Call("divide", (constant(1.0, DOUBLE), constant(0.0, DOUBLE)), DOUBLE),
        Cast(column(0, pa.int64()), pa.int32(), try_=True),
        Cast(column(0, DOUBLE), pa.int32()),
        Call("random", (), DOUBLE),
    ],
    ids=str,
)
def test_others_are_not_for_columns(expression: Expression) -> None:
    assert column_function(expression, TextCodes()) is None


def test_a_constant_zero_keeps_its_sign() -> None:
    function = column_function(
        Call("coalesce", (column(0, DOUBLE), constant(-0.0, DOUBLE)), DOUBLE), TextCodes()
    )
    assert function is not None
    found = function([column_from_arrow(pa.array([None, 0.0], DOUBLE), TextCodes())])
    assert repr(found.values.tolist()) == "[-0.0, 0.0]"
