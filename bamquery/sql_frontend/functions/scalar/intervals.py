"""Functions of intervals, and `INTERVAL 5 DAY`; operators on them are in `interval_arithmetic`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import INTERVAL
from bamquery.plan.expressions import Call, Cast, Expression
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import (
    coerce,
    coerce_beside,
    common_type,
    constant_nulls,
    is_null,
    is_string_literal,
)
from bamquery.sql_frontend.functions.interval_arithmetic import shift
from bamquery.sql_frontend.functions.operators import STRING, literal
from bamquery.sql_frontend.functions.scalar.dates import in_microseconds, statement_time
from bamquery.sql_frontend.functions.scalar.signature import (
    BIGINT,
    DOUBLE,
    INTEGER,
    Arguments,
    Build,
    bigint,
    double_argument,
)

_MICROSECONDS: Final = pa.timestamp("us")

UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "year": "to_years",
        "years": "to_years",
        "quarter": "to_quarters",
        "quarters": "to_quarters",
        "month": "to_months",
        "months": "to_months",
        "week": "to_weeks",
        "weeks": "to_weeks",
        "day": "to_days",
        "days": "to_days",
        "hour": "to_hours",
        "hours": "to_hours",
        "minute": "to_minutes",
        "minutes": "to_minutes",
        "second": "to_seconds",
        "seconds": "to_seconds",
        "millisecond": "to_milliseconds",
        "milliseconds": "to_milliseconds",
        "microsecond": "to_microseconds",
        "microseconds": "to_microseconds",
        "decade": "to_decades",
        "decades": "to_decades",
        "century": "to_centuries",
        "centuries": "to_centuries",
        "millennium": "to_millennia",
        "millennia": "to_millennia",
    }
)
"""What may follow a number in INTERVAL 5 DAY, and the function that it stands for."""

_NARROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "to_years": "year",
        "to_quarters": "quarter",
        "to_months": "month",
        "to_weeks": "week",
        "to_days": "day",
        "to_decades": "decade",
        "to_centuries": "century",
        "to_millennia": "millennium",
    }
)
_WIDE: Final[Mapping[str, str]] = MappingProxyType(
    {"to_hours": "hour", "to_minutes": "minute", "to_microseconds": "microsecond"}
)
_FRACTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {"to_seconds": "second", "to_milliseconds": "millisecond"}
)
AMOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {**dict.fromkeys(_NARROW, "INTEGER"), **dict.fromkeys(_WIDE, "BIGINT")}
)
"""What an amount is cut to before it becomes an interval; of seconds and milliseconds it is not."""


def interval_of_unit(amount: Expression, unit: str) -> Expression:
    """``INTERVAL amount unit``: fractions count for seconds and milliseconds only."""
    function = UNITS[unit.lower()]
    value = operators.as_double(amount, "INTERVAL")
    if function in _FRACTIONAL:
        return BUILDERS[function](function, [value])
    kind = INTEGER if function in _NARROW else BIGINT
    whole = Cast(Call("trunc", (value, literal(0, pa.int32())), DOUBLE), kind)
    return BUILDERS[function](function, [whole])


def _to_interval(unit: str, *, fractional: bool = False) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        take = double_argument if fractional else bigint
        return Call("to_interval", (take(name, arguments[0]), literal(unit, STRING)), INTERVAL)

    return build


def _moment(what: str, value: Expression, others: Sequence[Expression] = ()) -> Expression:
    """A date or timestamp as TIMESTAMP, where none of the others is NULL; with a zone as such."""
    kind: Any = value.type
    if is_null(value) or pa.types.is_date(kind):
        return coerce_beside(value, _MICROSECONDS, others)
    if pa.types.is_timestamp(kind):
        return coerce(value, pa.timestamp("us", kind.tz))
    raise ValueError(f"{what} needs a date or timestamp, not {type_name(kind)}")


def _age(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 1:
        value = _moment(f"{name}()", arguments[0])
        today = Cast(Cast(statement_time(), pa.date32()), value.type)
        return Call("age", (today, value), INTERVAL)
    arguments = [in_microseconds(argument) for argument in arguments]
    kind: Any = common_type(arguments)
    if pa.types.is_null(kind):
        return literal(None, INTERVAL)
    later, earlier = arguments
    values = [
        _moment(f"{name}()", coerce_beside(argument, kind, nulls), nulls)
        for argument, nulls in ((later, constant_nulls(earlier)), (earlier, constant_nulls(later)))
    ]
    return Call("age", tuple(values), INTERVAL)


def _date_add(name: str, arguments: Arguments) -> Expression:
    moment, span = arguments
    if types.is_interval(span.type):
        if pa.types.is_date(moment.type) or pa.types.is_timestamp(moment.type):
            return shift("add_interval", moment, span)
    elif pa.types.is_timestamp(moment.type) and is_null(span):
        kind: Any = moment.type
        return literal(None, pa.timestamp("us", kind.tz))
    elif pa.types.is_date(moment.type) and (is_null(span) or types.is_integral(span.type)):
        return Call("add_days", (moment, coerce(span, INTEGER)), moment.type)
    raise ValueError(
        f"{name}() needs a date or timestamp and an INTERVAL, not {type_name(moment.type)} and "
        f"{type_name(span.type)}"
    )


def _time_bucket(name: str, arguments: Arguments) -> Expression:
    width, value, *origin = arguments
    width = as_interval(f"{name}()", width)
    is_shifted = bool(origin) and types.is_interval(origin[0].type)
    kind: Any = value.type if is_shifted else common_type([value, *origin])
    if pa.types.is_null(kind):
        return literal(None, _MICROSECONDS)
    if origin and not is_shifted and is_string_literal(value):
        value = coerce(value, kind)
    wanted = pa.timestamp("us", getattr(kind, "tz", None))
    others = [width, *origin]
    if origin and not (is_shifted or origin[0].type == value.type):
        others = constant_nulls(*others)  # of such a pair DuckDB casts the whole column
    moment = coerce(_moment(f"{name}()", value, others), wanted)
    if not origin:
        bucket: Expression = Call("time_bucket", (width, moment), wanted)
    elif is_shifted:
        # Buckets that begin so much later.
        earlier = shift("subtract_interval", moment, origin[0])
        bucket = shift("add_interval", Call("time_bucket", (width, earlier), wanted), origin[0])
    else:
        beside = [width, value]
        if origin[0].type != value.type:
            beside = constant_nulls(*beside)
        start = coerce(_moment(f"{name}()", origin[0], beside), wanted)
        bucket = Call("time_bucket", (width, moment, start), wanted)
    return Cast(bucket, kind) if pa.types.is_date(kind) else bucket


def as_interval(what: str, value: Expression) -> Expression:
    """An INTERVAL, or a string in the statement that is one."""
    if is_null(value) or is_string_literal(value) or types.is_interval(value.type):
        return coerce(value, INTERVAL)
    raise ValueError(f"{what} needs an INTERVAL, not {type_name(value.type)}")


def _normalize(name: str, arguments: Arguments) -> Expression:
    return Call("interval_normalize", (as_interval(f"{name}()", arguments[0]),), INTERVAL)


BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        **{name: _to_interval(unit) for name, unit in {**_NARROW, **_WIDE}.items()},
        **{name: _to_interval(unit, fractional=True) for name, unit in _FRACTIONAL.items()},
        "age": _age,
        "date_add": _date_add,
        "time_bucket": _time_bucket,
        "normalized_interval": _normalize,
    }
)
"""How calls are bound of which the reference's signatures do not say all, by the first of the names."""
