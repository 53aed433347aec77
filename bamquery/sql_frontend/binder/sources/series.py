"""range() and generate_series() in FROM: their arguments, to the rows they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.data_types.type_groups import INTERVAL
from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.literals.conversion import count
from bamquery.plan.nodes import Plan, Scan, Values
from bamquery.plan.series import Series
from bamquery.sql_frontend.binder.catalog import FoldConstants
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.file_options import arguments
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions.coercion import coerce, is_null, is_string_literal
from bamquery.sql_frontend.functions.operators import literal
from bamquery.sql_frontend.sql_types import type_name

_BIGINT: Final = pa.int64()
_ONE: Final = literal(1, _BIGINT)
_ZERO: Final = literal(0, _BIGINT)
_MICROSECONDS_PER_DAY: Final = 86_400_000_000
_NANOSECONDS_PER_MICROSECOND: Final = 1000
_MOMENTS: Final = 3
"""How many arguments there are where the values are times: the step is not to be guessed."""


class _Span(NamedTuple):
    months: int
    days: int
    microseconds: int


def bind_series(node: exp.Expr, sql: str, fold: FoldConstants) -> Plan:
    """range(stop), range(start, stop[, step]), and generate_series(), which gives `stop`, too.

    Raises:
        SqlError: arguments that are no constants, or of types that there is no series of; a step of nothing.
    """
    name = node.name.lower()
    plain, named = arguments(node)
    with errors_at(sql, node):
        if named:
            raise ValueError(f"{name}() takes no options")
        if not 1 <= len(plain) <= _MOMENTS:
            raise ValueError(f"{name}() takes one to three values: [start,] stop [, step]")
    for argument in plain:
        with errors_at(sql, argument):
            if argument.find(exp.Column, exp.Query):
                raise ValueError(f"{name}() in FROM takes constants, no columns or queries")
    bound = list(ExpressionBinder(sql, Scope(), f"{name}()").bind_all(plain))
    with errors_at(sql, node):
        if len(bound) == _MOMENTS and any(_is_moment(value.type) for value in bound[:2]):
            return _moments(name, bound, fold)
        return _integers(name, bound, fold)


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _constants(
    name: str, values: Sequence[Expression], kinds: Sequence[pa.DataType], fold: FoldConstants
) -> list[Any]:
    """The values as such types; None for NULL."""
    found: list[Any] = []
    for value, kind in zip(values, kinds, strict=True):
        folded = fold(coerce(value, kind))
        if not isinstance(folded, Literal):
            raise ValueError(f"{name}() takes constants that are values of {type_name(kind)}")
        found.append(folded.value if not folded.is_null else None)
    return found


def _integers(name: str, bound: Sequence[Expression], fold: FoldConstants) -> Plan:
    for value in bound:
        fits = pa.types.is_integer(value.type) and value.type != pa.uint64()
        if not (fits or is_null(value) or is_string_literal(value)):
            raise ValueError(
                f"{name}() takes BIGINT, or two times and an INTERVAL, not {type_name(value.type)}: cast it"
            )
    given = [_ZERO, *bound] if len(bound) == 1 else bound
    values = _constants(name, [*given, _ONE][:_MOMENTS], (_BIGINT, _BIGINT, _BIGINT), fold)
    if None in values:
        return _scan(Series(name, 0, 1, 0, _BIGINT))
    first, last, distance = (value.as_py() for value in values)
    return _scan(_integer_series(name, first, last, distance, _BIGINT))


def _integer_series(name: str, first: int, last: int, step: int, kind: pa.DataType) -> Series:
    if step == 0:
        raise ValueError(f"the step of {name}() cannot be 0")
    rows = (last - first) // step + 1 if name == "generate_series" else -((first - last) // step)
    return Series(name, first, step, max(rows, 0), kind)


def _scan(series: Series) -> Scan:
    return Scan(series, (0,))


def _moments(name: str, bound: Sequence[Expression], fold: FoldConstants) -> Plan:
    zones = [value.type for value in bound[:2] if getattr(value.type, "tz", None) is not None]
    kind = pa.timestamp("us", "UTC" if zones else None)
    for value in bound[:2]:
        if not (_is_moment(value.type) or is_null(value) or is_string_literal(value)):
            raise ValueError(f"{name}() goes from one time to another, not to {type_name(value.type)}")
    if not (types.is_interval(bound[2].type) or is_null(bound[2]) or is_string_literal(bound[2])):
        raise ValueError(f"the step of {name}() between times is an INTERVAL, not {type_name(bound[2].type)}")
    start, stop, step = _constants(name, bound, (kind, kind, INTERVAL), fold)
    if start is None or stop is None or step is None:
        return _scan(Series(name, 0, 1, 0, kind))
    first, last = count(start), count(stop)
    months, days, nanoseconds = step.as_py()
    span = _Span(months, days, nanoseconds // _NANOSECONDS_PER_MICROSECOND)
    if min(span) < 0 < max(span):
        raise ValueError(f"the parts of the step of {name}() have different signs")
    if span.months == 0:
        distance = span.days * _MICROSECONDS_PER_DAY + span.microseconds
        return _scan(_integer_series(name, first, last, distance, kind))
    # With a time zone the clock goes first where an interval goes back, and months go first otherwise.
    clock_first = bool(zones) and min(span) < 0
    values = _month_series(first, last, span, with_last=name == "generate_series", clock_first=clock_first)
    return Values(pa.record_batch([pa.array(values, _BIGINT).view(kind)], [name]))


def _month_series(first: int, last: int, span: _Span, *, with_last: bool, clock_first: bool) -> list[int]:
    """Each time so much after the one before: January 31, February 29, March 29.

    Months are few, even those of all times that there are.
    """
    values = []
    onward = 1 if min(span) >= 0 else -1
    while (last - first) * onward > 0 or (with_last and first == last):
        values.append(first)
        before, after = (span.microseconds, 0) if clock_first else (0, span.microseconds)
        days, clock = divmod(first + before, _MICROSECONDS_PER_DAY)
        date = np.datetime64(days, "D")
        month = date.astype("datetime64[M]")
        place = date - month.astype("datetime64[D]")
        later = (month + span.months).astype("datetime64[D]")
        length = (month + span.months + 1).astype("datetime64[D]") - later
        days = int((later + min(place, length - 1)).astype(np.int64)) + span.days
        first = days * _MICROSECONDS_PER_DAY + clock + after
    return values
