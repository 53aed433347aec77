"""Calls over windows of rows give what a device gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.recursion.by_row.values import DATE, LeftToDeviceError, column_of, rows_of
from bamquery.engine.operators.recursion.by_row.windows import windowed_rows
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, Literal, SortKey
from bamquery.plan.windows import Bound, WindowCall, WindowFrame

BIGINT, TEXT = pa.int64(), pa.large_string()
KINDS = (BIGINT, pa.int32(), TEXT, DATE)
COLUMNS = tuple(
    ColumnRef(place, name, kind) for place, (name, kind) in enumerate(zip("abcd", KINDS, strict=True))
)
ROW = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.integers(-2, 2),
    st.none() | st.text("aAé", max_size=1),
    st.none() | st.integers(10_000, 10_002),
)
WHOLE = WindowFrame("rows", end=Bound("unbounded following"))


def call(
    name: str, *arguments: Expression, kind: pa.DataType = BIGINT, frame: WindowFrame | None = None
) -> WindowCall:
    return WindowCall(AggregateCall(name, arguments, kind), frame or WindowFrame())


def number(value: int) -> Literal:
    return Literal(pa.scalar(value, BIGINT))


@st.composite
def calls(draw: st.DrawFn) -> WindowCall:
    one = draw(st.sampled_from(COLUMNS))
    found = [call(name) for name in ("row_number", "rank", "dense_rank")]
    for name in ("lag", "lead"):
        found.append(call(name, one, number(1), Literal(pa.scalar(None, one.type)), kind=one.type))
        found.append(call(name, COLUMNS[0], number(draw(st.integers(-2, 3))), COLUMNS[0]))
    found += [call("min", one, kind=one.type, frame=WHOLE), call("count", one, frame=WHOLE)]
    return draw(st.sampled_from(found))


def window(partition: tuple[Expression, ...], order: tuple[SortKey, ...], *found: WindowCall) -> nodes.Window:
    child = nodes.Values(pa.record_batch([column_of([], kind) for kind in KINDS], list("abcd")))
    return nodes.Window(child, partition, order, found, tuple(map(str, range(len(found)))))


def sort_keys(count: int) -> st.SearchStrategy[list[SortKey]]:
    key = st.builds(SortKey, st.sampled_from(COLUMNS), st.booleans(), st.booleans())
    return st.lists(key, max_size=count)


@given(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(st.sampled_from(COLUMNS), max_size=2, unique=True),
    sort_keys(2),
    st.lists(calls(), min_size=1, max_size=3),
)
def test_as_a_device(
    rows: list[Any], partition: list[ColumnRef], order: list[SortKey], found: list[WindowCall]
) -> None:
    plan = window(tuple(partition), tuple(order), *found)
    function = windowed_rows(plan)
    assert function is not None
    device = CpuDevice()
    frame = pa.record_batch(
        [column_of(c, k) for c, k in zip(zip(*rows, strict=True), KINDS, strict=True)], list("abcd")
    )
    ordered = device.sort(frame, [*map(SortKey, partition), *order]) if partition or order else frame
    theirs = rows_of([*ordered.columns, *device.window(plan, ordered).columns], len(rows))
    assert sorted(map(repr, function(rows))) == sorted(map(repr, theirs))


def test_aggregates_of_all_rows_without_an_order() -> None:
    function = windowed_rows(window((), (), call("max", COLUMNS[0])))
    assert function is not None
    rows = [(1, 0, "", 0), (None, 0, "", 0), (3, 0, "", 0)]
    assert [row[-1] for row in function(rows)] == [3, 3, 3]


@pytest.mark.parametrize(
    "plan",
    [
        window((), (SortKey(COLUMNS[0]),), call("max", COLUMNS[0])),
        window((), (SortKey(COLUMNS[0]),), call("ntile", number(2))),
        window((), (), call("lag", COLUMNS[0], COLUMNS[0], number(0))),
        window((), (), call("first_value", COLUMNS[0])),
        window((), (SortKey(ColumnRef(0, "x", pa.float64())),), call("row_number")),
        window(
            (),
            (),
            WindowCall(AggregateCall("lag", (COLUMNS[0], number(1), number(0)), BIGINT), ignore_nulls=True),
        ),
    ],
    ids=lambda plan: f"{plan.calls[0].call.function}",
)
def test_others_are_not_for_rows(plan: nodes.Window) -> None:
    assert windowed_rows(plan) is None


def test_many_rows_are_left_to_a_device() -> None:
    function = windowed_rows(window((), (), call("row_number")))
    assert function is not None
    with pytest.raises(LeftToDeviceError):
        function([(1, 1, "", 0)] * 1000)
