"""Conditions told by keys are true of exactly the values of which they are computed to be true."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.sources.key_conditions import MOST_INTERVALS, key_condition
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members
from bamquery.storage.statistics.order_keys import KeyCondition, order_key

NAN = float("nan")
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, -3, -1, 0, 1, 2, 127]),
    (pa.uint16(), [0, 1, 2, 7, 65535]),
    (pa.int64(), [-(2**63), -1, 0, 1, 5, 2**63 - 1]),
    (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    (pa.float64(), [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 1.5, float("inf"), NAN]),
    (pa.float32(), [float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), NAN]),
    (pa.decimal128(20, 2), [Decimal("-99.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("7.25")]),
    (pa.date32(), [datetime.date(1969, 12, 30), datetime.date(1970, 1, 1), datetime.date(2001, 2, 3)]),
    (pa.timestamp("us"), [datetime.datetime(1960, 1, 1), datetime.datetime(2001, 2, 3, 4, 5, 6)]),
    (pa.time64("us"), [datetime.time(0), datetime.time(23, 59, 59)]),
    (pa.bool_(), [False, True]),
]
COMPARISONS = [
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("is_distinct_from", "is_not_distinct_from"),
]


def literal(value: Any, kind: pa.DataType) -> Literal:
    return Literal(pa.scalar(value, kind))


@st.composite
def conditions(draw: st.DrawFn, kind: pa.DataType, values: list[Any], depth: int = 3) -> Expression:
    """Whatever may be said of one column by comparisons with constants."""
    column = ColumnRef(0, "x", kind)
    some = st.sampled_from([*values, None])
    form = draw(st.integers(0, 8 if depth else 5))
    match form:
        case 0 | 1:
            pair = [column, literal(draw(some), kind)]
            return Call(draw(st.sampled_from(COMPARISONS)), tuple(draw(st.permutations(pair))), pa.bool_())
        case 2:
            options = draw(st.lists(some, min_size=1, max_size=4))
            return Call("in", (column, *(literal(option, kind) for option in options)), pa.bool_())
        case 3:
            return Call(draw(st.sampled_from(["is_null", "is_not_null"])), (column,), pa.bool_())
        case 4:
            return literal(draw(st.sampled_from([True, False, None])), pa.bool_())
        case 5:
            return column if kind == pa.bool_() else Call("is_null", (column,), pa.bool_())
        case 6:
            return Call("not", (draw(conditions(kind, values, depth - 1)),), pa.bool_())
        case _:
            parts = draw(st.lists(conditions(kind, values, depth - 1), min_size=2, max_size=3))
            return Call(draw(st.sampled_from(["and", "or"])), tuple(parts), pa.bool_())


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_keys_pass_where_the_condition_is_true(data: st.DataObject) -> None:
    kind, values = data.draw(st.sampled_from(VALUES))
    condition = data.draw(conditions(kind, values))
    found = key_condition(condition, kind)
    assert isinstance(found, KeyCondition)
    assert list(found.intervals) == sorted(found.intervals)
    batch = pa.record_batch([pa.array([*values, None], kind)], ["x"])
    passing = set(CpuDevice().matching_positions(condition, batch).tolist())
    for place, value in enumerate(values):
        key = order_key(pa.scalar(value, kind))
        assert any(low <= key <= high for low, high in found.intervals) == (place in passing), value
    assert found.nulls == (len(values) in passing)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (
            Call("less", (ColumnRef(0, "x", pa.int32()), ColumnRef(1, "y", pa.int32())), pa.bool_()),
            "more than",
        ),
        (Call("less", (ColumnRef(0, "x", pa.int32()), literal(1, pa.int64())), pa.bool_()), "more than"),
        (Call("divide", (ColumnRef(0, "x", pa.int32()), literal(1, pa.int32())), pa.bool_()), "more than"),
        (Cast(ColumnRef(0, "x", pa.int32()), pa.bool_()), "more than"),
        (
            Call(
                "in", (ColumnRef(0, "x", pa.int32()), Members(pa.array(range(999), pa.int32()))), pa.bool_()
            ),
            "names 999 values",
        ),
    ],
)
def test_other_conditions_are_refused_with_their_reason(condition: Expression, reason: str) -> None:
    found = key_condition(condition, pa.int32())
    assert isinstance(found, str)
    assert reason in found


def test_members_are_a_list() -> None:
    column = ColumnRef(0, "x", pa.int32())
    members = Members(pa.array(np.arange(0, 2 * MOST_INTERVALS, 2), pa.int32()))
    found = key_condition(Call("in", (column, members), pa.bool_()), pa.int32())
    assert isinstance(found, KeyCondition)
    assert len(found.intervals) == MOST_INTERVALS
    many = Call("not", (Call("in", (column, members), pa.bool_()),), pa.bool_())
    assert isinstance(key_condition(many, pa.int32()), str)  # one interval more
