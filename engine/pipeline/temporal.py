"""Parts of dates and times, their beginnings, and what lies between two, to instructions.

The operators' formulas (`engine/formulas/calendar.py`), in whole numbers: days are those since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

import pyarrow as pa

from bamquery.data_types.limits import stored_limits
from bamquery.engine.formulas.time_units import DAY_SECONDS, FRACTIONS, TIME_PARTS, units_per_day
from bamquery.engine.pipeline.instructions import Operation
from bamquery.engine.pipeline.registers import NotCoveredError, Shape, Value
from bamquery.plan.expressions import Expression, Literal

_DAY_MICROSECONDS: Final = DAY_SECONDS * 10**6
_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
)
_FARTHEST_YEAR: Final = 2**32
"""What the calendar's instructions give is less."""


class Emitter(Protocol):
    """What makes instructions; `lowering.ProgramBuilder` says more."""

    def emit(
        self, operation: Operation, operands: Sequence[Value] = (), immediate: int = 0, extra: int = 0
    ) -> int:
        """The register of an instruction."""
        ...

    def value(self, expression: Expression) -> Value:
        """The register of an expression."""
        ...

    def word(self, number: int) -> Value:
        """A constant's."""
        ...

    def require_fit(self, value: Value, kind: pa.DataType) -> Value:
        """The value, which must be one of the type."""
        ...


Lowering = Callable[[Emitter, Sequence[Expression], pa.DataType], Value]


def date_part(builder: Emitter, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
    """A part of a date, time or timestamp, by the unit's name."""
    unit, column = arguments
    name = _name_of(unit)
    if not pa.types.is_integer(kind) or not _is_moment(column.type, times=True):
        raise NotCoveredError
    per_second = units_per_day(column.type) // DAY_SECONDS
    if name in TIME_PARTS or name in FRACTIONS:
        value = builder.value(column)
        made = _clock_part(builder, name, value, per_second, pa.types.is_time(column.type))
    elif name in _DATE_PARTS and not pa.types.is_time(column.type):
        made = _DATE_PARTS[name](builder, _days_of(builder, column))
    else:
        raise NotCoveredError
    return builder.require_fit(made, kind)


def _clock_part(builder: Emitter, name: str, value: Value, per_second: int, is_time: bool) -> Value:
    if not per_second:  # a date has no time
        return _modulo(builder, value, 1)
    if name in TIME_PARTS:
        size, count = TIME_PARTS[name]
        part = _divide(builder, value, per_second * size)
        # A time may be that of 24:00:00, which is of no next day.
        return part if name == "hour" and is_time else _modulo(builder, part, count)
    part = _modulo(builder, value, 60 * per_second)
    wanted = FRACTIONS[name]
    if wanted >= per_second:
        return _multiply(builder, part, wanted // per_second)
    return _divide(builder, part, per_second // wanted)


def date_trunc(builder: Emitter, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
    """The beginning of a unit."""
    unit, column = arguments
    name = _name_of(unit)
    if column.type != kind or not _is_moment(kind):
        raise NotCoveredError
    per_day = units_per_day(kind)
    if name in TIME_PARTS or name in FRACTIONS:
        own = FRACTIONS[name] * DAY_SECONDS if name in FRACTIONS else DAY_SECONDS // TIME_PARTS[name][0]
        value = builder.value(column)
        return _subtract(builder, value, _modulo(builder, value, max(per_day // own, 1)))
    days = _days_of(builder, column)
    if name == "day":
        start = days
    elif name == "week":
        start = _subtract(builder, days, _modulo(builder, _add(builder, days, 3), 7))
    elif name in ("month", "year"):
        place = _calendar(builder, Operation.DAY if name == "month" else Operation.DAY_OF_YEAR, days, 366)
        start = _add(builder, _subtract(builder, days, place), 1)
    else:
        raise NotCoveredError
    low = (-(2**31) if per_day == 1 else -(2**63)) // per_day + 1
    checked = Value(builder.emit(Operation.REQUIRE_RANGE, (start,), low, 2**63 - 1), Shape.WORD, start.bound)
    return _multiply(builder, checked, per_day)


def date_diff(builder: Emitter, arguments: Sequence[Expression], kind: pa.DataType) -> Value:
    """How many beginnings of a unit lie between two moments; weeks: how many whole ones."""
    start, end, unit = arguments
    name = _name_of(unit)
    own = start.type
    if own != end.type or not pa.types.is_int64(kind) or not _is_moment(own, times=True):
        raise NotCoveredError
    per_day = units_per_day(own)
    if per_day not in (1, _DAY_MICROSECONDS):
        raise NotCoveredError
    if name in TIME_PARTS or name in ("microsecond", "millisecond"):
        size = TIME_PARTS[name][0] * 10**6 if name in TIME_PARTS else 10**6 // FRACTIONS[name]
        until, since = (_count_units(builder, builder.value(side), size, per_day) for side in (end, start))
        return _subtract(builder, until, since)
    if pa.types.is_time(own):
        raise NotCoveredError
    until, since = (_days_of(builder, side) for side in (end, start))
    if name == "day":
        return _subtract(builder, until, since)
    if name == "week":
        return _truncate(builder, _subtract(builder, until, since), 7)
    if name not in _MONTHS:
        raise NotCoveredError
    return _subtract(builder, _count_months(builder, name, until), _count_months(builder, name, since))


def _count_units(builder: Emitter, value: Value, size: int, per_day: int) -> Value:
    """Units of so many microseconds since 1970, of a day or of microseconds."""
    if per_day == 1:
        return _multiply(builder, value, _DAY_MICROSECONDS // size)
    return _divide(builder, value, size)


def _count_months(builder: Emitter, unit: str, days: Value) -> Value:
    years = _calendar(builder, Operation.YEAR, days, _FARTHEST_YEAR)
    if unit not in ("month", "quarter"):
        return _truncate(builder, years, _MONTHS[unit] // 12)
    before = _add(builder, _calendar(builder, Operation.MONTH, days, 12), -1)
    whole = _multiply(builder, years, 12)
    months = Value(builder.emit(Operation.ADD, (whole, before)), Shape.WORD, whole.bound + 12)
    return _truncate(builder, months, _MONTHS[unit])


def cast_of_moment(builder: Emitter, argument: Expression, kind: pa.DataType) -> Value:
    """A date or timestamp as another one."""
    own = argument.type
    if not _is_moment(own):
        raise NotCoveredError
    from_day, to_day = units_per_day(own), units_per_day(kind)
    if to_day == 1:
        if own == pa.timestamp("ns", getattr(own, "tz", None)):  # the day of the nearest microsecond
            raise NotCoveredError
        return builder.require_fit(_days_of(builder, argument), kind)
    value = builder.value(argument)
    if from_day == to_day:
        return value
    limits = stored_limits(kind)
    if to_day < from_day or limits is None:
        raise NotCoveredError
    factor = to_day // from_day
    most = limits[1] // factor
    checked = Value(
        builder.emit(Operation.REQUIRE_RANGE, (value,), -most, most), Shape.WORD, min(value.bound, most)
    )
    return _multiply(builder, checked, factor)


def _name_of(unit: Expression) -> str:
    return str(unit.value.as_py()) if isinstance(unit, Literal) else ""


def _is_moment(kind: pa.DataType, *, times: bool = False) -> bool:
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or (times and pa.types.is_time(kind))


def _days_of(builder: Emitter, column: Expression) -> Value:
    return _divide(builder, builder.value(column), units_per_day(column.type))


# Instructions with what is known of their bounds.


def _divide(builder: Emitter, value: Value, by: int) -> Value:
    """Toward minus infinity."""
    if by == 1:
        return value
    return Value(builder.emit(Operation.FLOOR_DIVIDE, (value,), by), Shape.WORD, value.bound // by + 1)


def _modulo(builder: Emitter, value: Value, by: int) -> Value:
    return Value(builder.emit(Operation.FLOOR_REMAINDER, (value,), by), Shape.WORD, by - 1)


def _truncate(builder: Emitter, value: Value, by: int) -> Value:
    """Divided toward zero."""
    if by == 1:
        return value
    return Value(builder.emit(Operation.QUOTIENT, (value, builder.word(by))), Shape.WORD, value.bound // by)


def _multiply(builder: Emitter, value: Value, by: int) -> Value:
    if by == 1:
        return value
    return Value(builder.emit(Operation.MULTIPLY, (value, builder.word(by))), Shape.WORD, value.bound * by)


def _add(builder: Emitter, value: Value, number: int) -> Value:
    bound = value.bound + abs(number)
    return Value(builder.emit(Operation.ADD, (value, builder.word(number))), Shape.WORD, bound)


def _subtract(builder: Emitter, value: Value, other: Value) -> Value:
    return Value(builder.emit(Operation.SUBTRACT, (value, other)), Shape.WORD, value.bound + other.bound)


def _calendar(builder: Emitter, operation: Operation, days: Value, bound: int) -> Value:
    return Value(builder.emit(operation, (days,)), Shape.WORD, bound)


def _iso_weekday(builder: Emitter, days: Value) -> Value:
    """Monday 1 to Sunday 7; 1970-01-01 was a Thursday."""
    return _add(builder, _modulo(builder, _add(builder, days, 3), 7), 1)


def _thursday(builder: Emitter, days: Value) -> Value:
    """That of the day's week, which is of the year that it is in."""
    return _add(builder, _subtract(builder, days, _iso_weekday(builder, days)), 4)


def _week(builder: Emitter, days: Value) -> Value:
    of_year = _calendar(builder, Operation.DAY_OF_YEAR, _thursday(builder, days), 366)
    return _add(builder, _divide(builder, _add(builder, of_year, -1), 7), 1)


_DATE_PARTS: Final[Mapping[str, Callable[[Emitter, Value], Value]]] = MappingProxyType(
    {
        "year": lambda b, days: _calendar(b, Operation.YEAR, days, _FARTHEST_YEAR),
        "quarter": lambda b, days: _divide(b, _add(b, _calendar(b, Operation.MONTH, days, 12), 2), 3),
        "month": lambda b, days: _calendar(b, Operation.MONTH, days, 12),
        "day": lambda b, days: _calendar(b, Operation.DAY, days, 31),
        "dayofweek": lambda b, days: _modulo(b, _add(b, days, 4), 7),
        "isodow": _iso_weekday,
        "dayofyear": lambda b, days: _calendar(b, Operation.DAY_OF_YEAR, days, 366),
        "week": _week,
        "isoyear": lambda b, days: _calendar(b, Operation.YEAR, _thursday(b, days), _FARTHEST_YEAR),
        "decade": lambda b, days: _truncate(b, _calendar(b, Operation.YEAR, days, _FARTHEST_YEAR), 10),
    }
)
TEMPORAL: Final[Mapping[str, Lowering]] = MappingProxyType(
    {"date_part": date_part, "date_trunc": date_trunc, "date_diff": date_diff}
)
