"""What a call needs beside a portion's rows, so that a partition need not be in memory."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.window.call_methods import CallMethod, choose_method
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.plan.windows import Bound, WindowCall, WindowFrame
from tests.plans import window_of

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("day", pa.date32())])
K, X = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "x", pa.float64())
HERE = Bound("current row")
AT_ONCE = {"needs_state_before": True}
PEERS = {"peers": True, "is_one_frame_a_group": True}
WHOLE = {"needs_state_before": True, "needs_state_after": True, "is_one_frame": True}
UNDIVIDED = {"peers": True, "undivided": True}

NEEDS: list[tuple[str, dict[str, Any]]] = [
    ("row_number() OVER (ORDER BY k)", {}),
    ("rank() OVER (ORDER BY k)", {"peers": True}),
    ("ntile(3) OVER (ORDER BY k)", {"all_rows": True}),
    ("cume_dist() OVER (ORDER BY k)", {"all_rows": True, "peers": True}),
    ("lead(x) OVER (ORDER BY k)", {"lookahead": 1}),
    ("lag(x, 2) OVER (ORDER BY k)", {"lookback": 2}),
    ("lag(x, -3) OVER (ORDER BY k)", {"lookahead": 3}),
    ("lag(x, 0) OVER (ORDER BY k)", {}),
    ("lag(x IGNORE NULLS) OVER (ORDER BY k)", {**AT_ONCE, "lookback": 1}),
    ("lead(x, 1 IGNORE NULLS) OVER (ORDER BY k)", {"needs_state_after": True, "lookahead": 1}),
    ("sum(x) OVER (ORDER BY k)", {**AT_ONCE, **PEERS}),
    ("sum(x) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND CURRENT ROW)", PEERS),
    (
        "sum(x) OVER (ORDER BY k GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        {"needs_state_after": True, **PEERS},
    ),
    ("sum(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)", WHOLE),
    (
        "sum(x) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        {**WHOLE, "peers": True},
    ),
    ("sum(x) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING)", AT_ONCE),
    ("sum(x) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND 4 PRECEDING)", {**AT_ONCE, "lookback": 4}),
    ("sum(x) OVER (ORDER BY k ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING)", {}),
    ("median(x) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING)", {"lookback": 3, "lookahead": 2}),
    (
        "sum(x) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING EXCLUDE TIES)",
        {"lookback": 3},
    ),
    (
        "sum(x) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP)",
        {"lookback": 3, "needs_state_after": True, **UNDIVIDED},
    ),
    ("sum(x) OVER (ORDER BY k RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW)", {**AT_ONCE, **UNDIVIDED}),
    ("count(DISTINCT x) OVER (ORDER BY k ROWS 2 PRECEDING)", {"lookback": 2}),
    ("max(DISTINCT x) OVER (ORDER BY k)", {**AT_ONCE, **PEERS}),
    ("any_value(x ORDER BY day) OVER (ORDER BY k)", {**AT_ONCE, **PEERS}),
]
IN_MEMORY = [
    "lag(x, k) OVER (ORDER BY k)",
    "lead(x, 2 IGNORE NULLS) OVER (ORDER BY k)",
    "lead(x, 1, 0 IGNORE NULLS) OVER (ORDER BY k)",
    "median(x) OVER (ORDER BY k)",
    "median(x) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
    "median(x) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "count(DISTINCT x) OVER (ORDER BY k)",
    "nth_value(x, 2) OVER (ORDER BY k)",
    "sum(x ORDER BY day) OVER (ORDER BY k)",
    "sum(x) OVER (ORDER BY k ROWS k PRECEDING)",
    "sum(x) OVER (ORDER BY k RANGE x PRECEDING)",
]


def _needs(call: WindowCall) -> dict[str, Any] | None:
    """What is not as for a call that needs nothing."""
    method = choose_method(call, CpuDevice())
    if method is None:
        return None
    nothing = CallMethod(method.call)
    names = [field.name for field in fields(method)]
    return {name: value for name in names if (value := getattr(method, name)) != getattr(nothing, name)}


def _call(sql: str) -> WindowCall:
    (call,) = window_of(sql, SCHEMA).calls
    return call


def _sum(unit: Any, start: Bound, end: Bound = HERE) -> WindowCall:
    return replace(_call("sum(x) OVER (ORDER BY k)"), frame=WindowFrame(unit, start, end))


@pytest.mark.parametrize(("sql", "needs"), NEEDS)
def test_what_a_call_needs(sql: str, needs: dict[str, Any]) -> None:
    assert _needs(_call(sql)) == needs


@pytest.mark.parametrize("sql", IN_MEMORY)
def test_what_must_be_in_memory(sql: str) -> None:
    assert _needs(_call(sql)) is None


@pytest.mark.parametrize(("sql", "needs"), NEEDS)
def test_what_looks_around(sql: str, needs: dict[str, Any]) -> None:
    method = choose_method(_call(sql), CpuDevice())
    assert method is not None
    assert method.looks_around == any(name.startswith("look") for name in needs)


@pytest.mark.parametrize("order", ["k", "day"])
def test_frames_by_value_reach_to_where_the_offset_says(order: str) -> None:
    """Rows around a portion are found by counting frames that end, or begin, with a row's peers."""
    call = _call(f"sum(x) OVER (ORDER BY {order} RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING)")
    start, end = call.frame.start, call.frame.end
    back, ahead = WindowFrame("range", start, HERE), WindowFrame("range", HERE, end)
    assert _needs(call) == {**UNDIVIDED, "reaches_back": (back,), "reaches_ahead": (ahead,)}
    open_end = _sum("range", start, Bound("unbounded following"))
    assert _needs(open_end) == {**UNDIVIDED, "reaches_back": (back,), "needs_state_after": True}


@pytest.mark.parametrize(
    ("sql", "function", "filtered"),
    [
        ("first_value(x) OVER (ORDER BY k)", "first", False),
        ("first_value(x IGNORE NULLS) OVER (ORDER BY k)", "first", True),
        ("last_value(x IGNORE NULLS) OVER (ORDER BY k)", "last", True),
        ("lag(x IGNORE NULLS) OVER (ORDER BY k)", "last", True),
        ("lead(x IGNORE NULLS) OVER (ORDER BY k)", "first", True),
        ("max(DISTINCT x) OVER (ORDER BY k)", "max", False),
    ],
)
def test_calls_of_which_a_state_is_kept(sql: str, function: str, filtered: bool) -> None:
    """As aggregates, which know no IGNORE NULLS: a filter says which rows are there."""
    method = choose_method(_call(sql), CpuDevice())
    assert method is not None
    kept = method.call
    assert (kept.call.function, kept.call.arguments[0], kept.call.distinct) == (function, X, False)
    assert not kept.ignore_nulls
    assert kept.call.filter == (Call("is_not_null", (X,), pa.bool_()) if filtered else None)


@pytest.mark.parametrize("unit", ["rows", "groups"])
def test_a_number_below_zero_is_for_those_who_refuse_it(unit: str) -> None:
    below = Bound("preceding", Literal(pa.scalar(-1, pa.int64())))
    assert _needs(_sum(unit, below)) is None
    assert _needs(_sum(unit, Bound("preceding", Literal(pa.scalar(0, pa.int64()))))) is not None


TWO = Literal(pa.scalar(2, pa.int64()))


@pytest.mark.parametrize(
    "offset",
    [
        Call("multiply", (K, TWO), pa.int64()),  # keeps no order
        Call("subtract", (TWO, K), pa.int64()),
        Call("subtract", (K, K), pa.int64()),
        Call("subtract", (ColumnRef(7, "other", pa.int64()), TWO), pa.int64()),
        TWO,
    ],
)
def test_offsets_that_may_put_later_rows_bounds_earlier(offset: Expression) -> None:
    assert _needs(_sum("range", Bound("preceding", offset, K))) is None
