"""Expressions that programs may compute, at random, over batches of two columns of each type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

BOOL, LONG, DOUBLE, DATE = pa.bool_(), pa.int64(), pa.float64(), pa.date32()
PRICE, WIDE = pa.decimal128(15, 2), pa.decimal128(38, 4)
MOMENT, TIME = pa.timestamp("us"), pa.time64("us")

_FIRST_DAY, _LAST_DAY = (datetime.date(y, m, d) for y, m, d in ((1, 1, 1), (9999, 12, 31)))
_DAYS = st.dates(_FIRST_DAY, _LAST_DAY).map(lambda day: day.toordinal() - 719_163)
_DAY_MICROSECONDS = 86_400 * 10**6
_CLOCK = st.integers(0, _DAY_MICROSECONDS) | st.sampled_from([0, _DAY_MICROSECONDS - 1, _DAY_MICROSECONDS])
_UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
_FRACTIONS = ["millisecond", "microsecond"]
_PARTS = [*_UNITS, *_FRACTIONS, "dayofweek", "isodow", "dayofyear", "isoyear", "decade", "century", "era"]
_LENGTHS = [*_UNITS, *_FRACTIONS, "isoyear", "decade", "century", "millennium"]

_VALUES: dict[pa.DataType, Any] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 5),
    LONG: st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.float32(): st.floats(width=32),
    DOUBLE: st.floats() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    BOOL: st.booleans(),
    # Of stored numbers, so that there are years that Python's calendar has not.
    DATE: _DAYS | _DAYS | st.integers(-(2**31) + 2, 2**31 - 2),
    MOMENT: st.builds(lambda day, clock: day * _DAY_MICROSECONDS + clock, _DAYS, _CLOCK)
    | st.integers(-(2**63) + 2, 2**63 - 2),
    TIME: _CLOCK,
    PRICE: st.integers(-(10**15) + 1, 10**15 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    WIDE: st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-4)),
}
_NUMBERS = [pa.int8(), pa.int32(), LONG, pa.uint16(), DOUBLE, PRICE]
KINDS = list(_VALUES)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Two columns of each type, so that there is something to compare; some begin with an offset."""
    rows = draw(st.integers(1, 40))
    skipped = draw(st.integers(0, 9))
    columns = []
    for kind in KINDS:
        for _ in range(2):
            nullable = draw(st.booleans())
            values = st.none() | _VALUES[kind] if nullable else _VALUES[kind]
            found = draw(st.lists(values, min_size=rows + skipped, max_size=rows + skipped))
            columns.append(pa.array(found, kind).slice(skipped))
    return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])


def column_of(kind: pa.DataType, which: int) -> ColumnRef:
    """One of the two of a type."""
    index = 2 * KINDS.index(kind) + which
    return ColumnRef(index, str(index), kind)


def _literals(kind: pa.DataType) -> st.SearchStrategy[Expression]:
    return (st.none() | _VALUES[kind]).map(lambda value: Literal(pa.scalar(value, kind)))


def _leaves(kind: pa.DataType) -> st.SearchStrategy[Expression]:
    columns = st.sampled_from([column_of(kind, 0), column_of(kind, 1)])
    return columns | columns | columns | _literals(kind)


@st.composite
def expressions_of_type(draw: st.DrawFn, kind: pa.DataType, depth: int) -> Expression:
    """An expression of a type."""
    if depth == 0:
        return draw(_leaves(kind))
    if kind == BOOL:
        return draw(conditions(depth))
    ways = ["leaf", "case", "coalesce"]
    if kind in (DATE, MOMENT):
        ways += ["cast_moment", "cast_moment"]
    if kind == MOMENT:
        ways += ["date_trunc", "date_trunc"]
    if kind in (pa.int8(), pa.int32(), LONG, DOUBLE, PRICE):
        ways += ["add", "subtract", "negate", "abs"]
    if kind in (pa.int8(), pa.int32(), LONG, DOUBLE):
        ways += ["multiply"]
    if kind in (pa.int8(), pa.int32(), LONG):
        ways += ["floor_divide", "modulo"]
    if kind == DOUBLE:
        ways += ["divide"]
    if kind in _NUMBERS:
        ways += ["cast"]
    if kind == LONG:
        ways += ["date_part", "date_diff"]
    way = draw(st.sampled_from(ways))
    one = expressions_of_type(kind, depth - 1)
    if way == "leaf":
        return draw(_leaves(kind))
    if way == "case":
        return Call("case", (draw(conditions(depth - 1)), draw(one), draw(one)), kind)
    if way in ("negate", "abs"):
        return Call(way, (draw(one),), kind)
    if way in ("date_part", "date_trunc", "date_diff"):
        return draw(_of_moments(way, kind, depth))
    if way == "cast_moment":
        return Cast(draw(expressions_of_type(MOMENT if kind == DATE else DATE, depth - 1)), kind)
    if way == "cast":
        sources = [source for source in (*_NUMBERS, pa.float32(), BOOL) if source != kind]
        return Cast(draw(expressions_of_type(draw(st.sampled_from(sources)), depth - 1)), kind)
    return Call(way, (draw(one), draw(one)), kind)


@st.composite
def _of_moments(draw: st.DrawFn, way: str, kind: pa.DataType, depth: int) -> Expression:
    """A part of a moment, its beginning, or what lies between two."""
    own = MOMENT if way == "date_trunc" else draw(st.sampled_from([DATE, MOMENT, TIME]))
    units = {"date_part": _PARTS, "date_trunc": [u for u in _LENGTHS if u != "era"], "date_diff": _LENGTHS}[
        way
    ]
    if own == TIME:
        units = ["hour", "minute", "second", *_FRACTIONS]
    unit = Literal(pa.scalar(draw(st.sampled_from(units)), pa.large_string()))
    one = expressions_of_type(own, depth - 1)
    if way == "date_diff":
        return Call(way, (draw(one), draw(one), unit), kind)
    return Call(way, (unit, draw(one)), kind)


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> Expression:
    """Of truth values."""
    if depth == 0:
        return draw(_leaves(BOOL))
    way = draw(st.sampled_from(["compare", "compare", "and", "or", "not", "null", "in"]))
    kind = draw(st.sampled_from([k for k in KINDS if k != BOOL]))
    if way == "compare":
        names = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
        sides = (draw(expressions_of_type(kind, depth - 1)), draw(expressions_of_type(kind, depth - 1)))
        return Call(draw(st.sampled_from(names)), sides, BOOL)
    if way in ("and", "or"):
        return Call(way, (draw(conditions(depth - 1)), draw(conditions(depth - 1))), BOOL)
    if way == "not":
        return Call("not", (draw(conditions(depth - 1)),), BOOL)
    if way == "null":
        test = draw(st.sampled_from(["is_null", "is_not_null"]))
        return Call(test, (draw(expressions_of_type(kind, depth - 1)),), BOOL)
    members = draw(st.lists(_literals(kind), min_size=1, max_size=5))
    return Call("in", (draw(expressions_of_type(kind, depth - 1)), *members), BOOL)


def written(columns: list[Any]) -> list[list[str]]:
    """Values so that NaN equals NaN, and zeros differ by their signs; moments as they are stored."""
    return [[repr(value) for value in _as_numbers(column).to_pylist()] for column in columns]


def _as_numbers(column: Any) -> Any:
    if not pa.types.is_temporal(column.type):
        return column
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
