"""Functions of dates, times and timestamps; those with intervals have their own file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.plan.expressions import Call, Cast, Expression, Literal, referenced_columns
from bamquery.plan.literals.conversion import from_count
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.sql_frontend.functions.bindings import check_count
from bamquery.sql_frontend.functions.coercion import (
    coerce,
    coerce_beside,
    common_type,
    constant_nulls,
    decode,
    is_null,
    is_string_literal,
)
from bamquery.sql_frontend.functions.operators import STRING, literal
from bamquery.sql_frontend.functions.scalar.signature import (
    BIGINT,
    DOUBLE,
    Arguments,
    Build,
    bigint,
    double_argument,
    integer,
    string_argument,
)
from bamquery.text.identifiers import suggestion

DATE_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: unit
        for unit, names in {
            "year": ("year", "years", "y", "yr", "yrs"),
            "quarter": ("quarter", "quarters"),
            "month": ("month", "months", "mon", "mons"),
            "day": ("day", "days", "d", "dayofmonth"),
            "hour": ("hour", "hours", "h", "hr", "hrs"),
            "minute": ("minute", "minutes", "m", "min", "mins"),
            "second": ("second", "seconds", "s", "sec", "secs"),
            "millisecond": ("millisecond", "milliseconds", "ms", "msec", "msecs", "msecond", "mseconds"),
            "microsecond": ("microsecond", "microseconds", "us", "usec", "usecs", "usecond", "useconds"),
            "dayofweek": ("dayofweek", "dow", "weekday"),
            "isodow": ("isodow",),
            "dayofyear": ("dayofyear", "doy"),
            "week": ("week", "weeks", "w", "weekofyear"),
            "isoyear": ("isoyear",),
            "yearweek": ("yearweek",),
            "decade": ("decade", "decades", "dec", "decs"),
            "century": ("century", "centuries", "cent", "c"),
            "millennium": ("millennium", "millenniums", "millennia", "millenium", "mil", "mils"),
            "era": ("era",),
            "epoch": ("epoch",),
            "julian": ("julian", "jd"),
        }.items()
        for name in names
    }
)
"""DuckDB's names of a date's parts, and those of `function_catalog.plan_functions`."""

_CLOCK_PARTS: Final = frozenset({"hour", "minute", "second", "millisecond", "microsecond", "nanosecond"})
_WITHOUT_TRUNCATION: Final = frozenset({"era", "julian"})
_SAME_BEGINNING: Final[Mapping[str, str]] = MappingProxyType(
    {"dayofweek": "day", "isodow": "day", "dayofyear": "day", "yearweek": "week", "epoch": "second"}
)
"""Parts that begin when another one does."""
_MICROSECONDS: Final = pa.timestamp("us")
_DAY_MILLISECONDS: Final = 86_400_000
_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType({"ms": 10**3, "us": 10**6, "ns": 10**9})
_UTC: Final = pa.timestamp("us", "UTC")
INTERVAL_PARTS: Final = frozenset(
    {
        *("millennium", "century", "decade", "year", "quarter", "month", "day", "hour", "minute", "second"),
        *("millisecond", "microsecond"),
    }
)
"""Parts of an interval."""


def date_part(unit: str, value: Expression, what: str) -> Expression:
    """A part of a date, time, timestamp or interval; `epoch` and `julian`, which are DOUBLE, too.

    Of a constant NULL it is a DOUBLE, whatever the part, as DuckDB declares it before it looks.
    """
    part = _part(_unit(unit), decode(value), what)
    return literal(None, DOUBLE) if constant_nulls(value) else part


def _part(part: str, value: Expression, what: str) -> Expression:
    if part == "epoch":
        return _epoch(what, [value])
    if types.is_interval(value.type):
        if part not in INTERVAL_PARTS:
            raise ValueError(f"an INTERVAL has no {part}")
        return Call("interval_part", (value, literal(part, STRING)), BIGINT)
    if part == "julian":
        value = coerce(value, _MICROSECONDS) if is_null(value) else in_microseconds(value)
        _require_date(what, value)
        return Call("julian", (value,), DOUBLE)
    if pa.types.is_time64(value.type) and part in _CLOCK_PARTS:
        return Call("date_part", (literal(part, STRING), value), BIGINT)
    if part != "nanosecond":
        value = in_microseconds(value)
    _require_date(what, value)
    return Call("date_part", (literal(part, STRING), value), BIGINT)


def in_microseconds(value: Expression) -> Expression:
    """The same, but a TIMESTAMP_NS rounded to a TIMESTAMP, of which most functions are."""
    return Cast(value, _MICROSECONDS) if value.type == pa.timestamp("ns") else value


def _unit(name: str) -> str:
    unit = DATE_PARTS.get(name.lower())
    if unit is None:
        raise ValueError(
            f"'{name}' is not a part of a date that BamQuery knows.{suggestion(name, DATE_PARTS)}"
        )
    return unit


def _require_date(what: str, value: Expression) -> None:
    if not (pa.types.is_date(value.type) or pa.types.is_timestamp(value.type)):
        hint = ": write DATE '...' or TIMESTAMP '...'" if is_string_literal(value) else ""
        raise ValueError(f"{what} needs a date or timestamp, not {type_name(value.type)}{hint}")


def _unit_argument(name: str, unit: Expression) -> str:
    if not is_string_literal(unit):
        raise ValueError(f"{name}() needs the part's name as a string in the statement")
    assert isinstance(unit, Literal)
    return str(unit.value.as_py())


def _date_part(name: str, arguments: Arguments) -> Expression:
    return date_part(_unit_argument(name, arguments[0]), arguments[1], f"{name}()")


def _part_named(name: str, arguments: Arguments) -> Expression:
    return _part(_unit(name), decode(arguments[0]), f"{name}()")


def _nanosecond(name: str, arguments: Arguments) -> Expression:
    return _part("nanosecond", arguments[0], f"{name}()")


def _epoch(name: str, arguments: Arguments) -> Expression:
    (value,) = arguments
    if types.is_interval(value.type):
        return Call("interval_seconds", (value,), DOUBLE)
    if pa.types.is_time64(value.type):
        count = _since_midnight(value, "us")
        return Call("divide", (Cast(count, DOUBLE), literal(1e6, DOUBLE)), DOUBLE)
    _require_date(name, value)
    return Call("epoch", (value,), DOUBLE)


def _epoch_in(unit: str) -> Build:
    """Milliseconds, microseconds or nanoseconds since 1970, of a time since midnight."""

    def build(name: str, arguments: Arguments) -> Expression:
        (value,) = arguments
        if unit == "ms" and (types.is_integral(value.type) or is_null(value)):
            return _from_milliseconds(name, arguments)
        if types.is_interval(value.type):
            if unit == "ms":
                return Call("interval_milliseconds", (value,), BIGINT)
            count = Call("interval_microseconds", (value,), BIGINT)
            return count if unit == "us" else Call("multiply", (count, literal(1000, BIGINT)), BIGINT)
        if pa.types.is_time64(value.type):
            return _since_midnight(value, unit)
        _require_date(f"{name}()", value)
        if unit == "ms" and pa.types.is_date(value.type):  # dates reach further than timestamps
            days = Call("days_between", (value, Literal(from_count(0, pa.date32()))), BIGINT)
            return Call("multiply", (days, literal(_DAY_MILLISECONDS, BIGINT)), BIGINT)
        zone = getattr(value.type, "tz", None)
        if getattr(value.type, "unit", "") == "ns" and unit == "ms":
            value = Cast(value, pa.timestamp("us", zone))  # rounded twice, as in DuckDB
        unit_type: Any = unit
        return Call("to_count", (coerce(value, pa.timestamp(unit_type, zone)),), BIGINT)

    return build


def _since_midnight(value: Expression, unit: str) -> Expression:
    """Whole units of a time."""
    kind: Any = value.type
    count = Call("to_count", (value,), BIGINT)
    own, wanted = _PER_SECOND[kind.unit], _PER_SECOND[unit]
    if wanted < own:
        return Call("floor_divide", (count, literal(own // wanted, BIGINT)), BIGINT)
    return count if wanted == own else Call("multiply", (count, literal(wanted // own, BIGINT)), BIGINT)


def _date_trunc(name: str, arguments: Arguments) -> Expression:
    unit = _unit(_unit_argument(name, arguments[0]))
    value = arguments[1]
    if types.is_interval(value.type):
        if unit not in INTERVAL_PARTS and unit != "week":
            raise ValueError(f"{name}() does not take '{unit}' of an INTERVAL")
        return Call("interval_trunc", (value, literal(unit, STRING)), types.INTERVAL)
    if unit in _WITHOUT_TRUNCATION:
        raise ValueError(f"{name}() does not take '{unit}'")
    _require_date(f"{name}()", value)
    kind: Any = value.type
    if not (isinstance(kind, pa.TimestampType) and kind.tz is not None):
        kind = _MICROSECONDS
    part = literal(_SAME_BEGINNING.get(unit, unit), STRING)
    return Call("date_trunc", (part, coerce(value, kind)), kind)


def _date_function(function: str, kind: pa.DataType) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        (value,) = arguments
        if is_null(value):
            value = literal(None, _MICROSECONDS)
        _require_date(f"{name}()", value)
        return Call(function, (in_microseconds(value),), kind)

    return build


def _difference(function: str) -> Build:
    """Of date_diff and date_sub: a unit's name, from when, until when."""

    def build(name: str, arguments: Arguments) -> Expression:
        if is_null(arguments[0]):
            return literal(None, BIGINT)
        unit = _unit(_unit_argument(name, arguments[0]))
        unit = "day" if unit == "julian" else _SAME_BEGINNING.get(unit, unit)
        if unit == "era" or (unit == "isoyear" and function == "date_sub"):
            raise ValueError(f"{name}() does not take '{unit}'")
        both = arguments[1:]
        if all(is_null(argument) for argument in both):
            return literal(None, BIGINT)
        kind: Any = common_type([in_microseconds(value) for value in both])
        if pa.types.is_time64(kind):
            if unit not in _CLOCK_PARTS:
                raise ValueError(f"a TIME has no {unit}")
            kind = pa.time64("us")
        elif pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", kind.tz)
        elif pa.types.is_date(kind):
            kind = kind if function == "date_diff" else _MICROSECONDS
        else:
            hint = ": write DATE '...' or TIMESTAMP '...'" if types.is_string(kind) else ""
            raise ValueError(f"{name}() needs dates, times or timestamps, not {type_name(kind)}{hint}")
        first, second = (in_microseconds(argument) for argument in both)
        # Of two dates DuckDB has a function; in another pair it casts the whole column.
        values = tuple(
            coerce_beside(side, kind, [other] if side.type == other.type else constant_nulls(other))
            for side, other in ((first, second), (second, first))
        )
        return Call(function, (*values, literal(unit, STRING)), BIGINT)

    return build


def _make_date(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 1:
        first_day = Literal(from_count(0, pa.date32()))
        return Call("add_days", (first_day, integer(name, arguments[0])), pa.date32())
    check_count(name, len(arguments), 3, 3)
    return Call("make_date", tuple(bigint(name, argument) for argument in arguments), pa.date32())


def _make_timestamp(name: str, arguments: Arguments) -> Expression:
    if len(arguments) == 1:
        return Call("from_count", (bigint(name, arguments[0]),), _MICROSECONDS)
    check_count(name, len(arguments), 6, 6)
    *parts, second = arguments
    whole = [bigint(name, part) for part in parts]
    return Call("make_timestamp", (*whole, double_argument(name, second)), _MICROSECONDS)


def _from_milliseconds(name: str, arguments: Arguments) -> Expression:
    return Cast(Call("from_count", (bigint(name, arguments[0]),), pa.timestamp("ms")), _MICROSECONDS)


def _strftime(name: str, arguments: Arguments) -> Expression:
    value, pattern = arguments
    if types.is_string(value.type) and not types.is_string(pattern.type):
        value, pattern = pattern, value
    if is_null(value):
        return literal(None, STRING)
    _require_date(f"{name}()", value)
    pattern = fold_expression(string_argument(name, pattern))
    if referenced_columns(pattern):
        raise ValueError(f"{name}() needs a constant for its pattern")
    return Call("strftime", (value, pattern), STRING)


def _pattern(name: str, value: Expression) -> Literal:
    """The pattern of dates and times, known before there are rows: what is read may depend on it."""
    pattern = fold_expression(string_argument(name, value))
    if not isinstance(pattern, Literal):
        raise ValueError(f"{name}() needs a constant for its pattern")
    return pattern


def _strptime(function: str) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        value, pattern = string_argument(name, arguments[0]), _pattern(name, arguments[1])
        letters = re.findall("%(-?.)", pattern.value.as_py() or "", re.DOTALL)
        kind: pa.DataType = _MICROSECONDS
        if {"z", "Z"}.intersection(letters):
            kind = _UTC
            if "n" in letters:
                raise ValueError(f"{name}(): a TIMESTAMP WITH TIME ZONE has no nanoseconds, which %n reads")
        elif "n" in letters:
            kind = pa.timestamp("ns")
        return Call(function, (value, pattern), kind)

    return build


def statement_time() -> Expression:
    """The moment at which the statement runs."""
    return Call("now", (), _UTC)


def _now_as(kind: pa.DataType | None) -> Build:
    return lambda name, arguments: statement_time() if kind is None else Cast(statement_time(), kind)


def at_time_zone(value: Expression, zone: Expression) -> Expression:
    """AT TIME ZONE, of UTC only: there is no session time zone, and no other zones are known."""
    value = decode(value)
    if not is_string_literal(zone) or str(zone.value.as_py()).upper() not in ("UTC", "GMT", "ETC/UTC", "Z"):  # type: ignore[union-attr]
        raise ValueError("AT TIME ZONE is supported with 'UTC' only")
    if pa.types.is_date(value.type):
        value = Cast(value, _MICROSECONDS)
    if not pa.types.is_timestamp(value.type):
        raise ValueError(f"AT TIME ZONE needs a timestamp, not {type_name(value.type)}")
    kind: Any = value.type
    return Cast(value, _UTC if kind.tz is None else _MICROSECONDS)


_PARTS: Final = (
    *("year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond"),
    *("dayofweek", "isodow", "dayofyear", "week", "isoyear", "yearweek", "decade", "century", "millennium"),
    *("era", "julian"),
)

BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        **dict.fromkeys(_PARTS, _part_named),
        "nanosecond": _nanosecond,
        "date_part": _date_part,
        "date_trunc": _date_trunc,
        **{name: _difference(name) for name in ("date_diff", "date_sub")},
        "last_day": _date_function("last_day", pa.date32()),
        **{name: _date_function(name, STRING) for name in ("dayname", "monthname")},
        "epoch": _epoch,
        **{f"epoch_{unit}": _epoch_in(unit) for unit in ("ms", "us", "ns")},
        "make_date": _make_date,
        "make_timestamp": _make_timestamp,
        "make_timestamp_ms": _from_milliseconds,
        "strftime": _strftime,
        **{name: _strptime(name) for name in ("strptime", "try_strptime")},
        **dict.fromkeys(("now", "current_timestamp"), _now_as(None)),
        **dict.fromkeys(("today", "current_date"), _now_as(pa.date32())),
        **dict.fromkeys(("localtimestamp", "current_localtimestamp"), _now_as(_MICROSECONDS)),
        **dict.fromkeys(("localtime", "current_localtime"), _now_as(pa.time64("us"))),
    }
)
"""How calls are bound of which the reference's signatures do not say all, by the first of the names."""
