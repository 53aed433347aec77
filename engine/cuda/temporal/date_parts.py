"""date_part, date_trunc, epoch and days. Timestamps with a zone are instants and are read in UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import TypeId

from bamquery.data_types.limits import LARGEST_DAY
from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cuda.kernels import FLOAT64, Implementation, Kernels, Operand, argument_rows, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric.integers import Integers, rounded_quotient
from bamquery.engine.cuda.temporal.calendar import CALENDAR
from bamquery.engine.cuda.value_errors import fail_call
from bamquery.engine.formulas.time_units import FRACTIONS, TIME_PARTS, UNITS_PER_SECOND, units_per_day


def as_dates_or_times(kernels: Kernels, values: Integers, kind: pa.DataType) -> plc.Column:
    """Stored integers, which fit, as a date, time or timestamp column."""
    if pa.types.is_date32(kind):
        narrow = kernels.convert(values.column, plc.DataType(TypeId.INT32))
        return view_as(narrow, device_type(kind))
    return view_as(values.column, device_type(kind))


def _values(kernels: Kernels, arguments: Sequence[Operand], place: int) -> Integers:
    return Integers.from_column(kernels, kernels.column(arguments[place].datum, argument_rows(arguments)))


def _date_part(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    unit = arguments[0].literal
    values = _values(kernels, arguments, 1)
    if unit is None:
        return kernels.nulls(values.column.size(), kind)
    per_day = units_per_day(arguments[1].kind)
    if unit in FRACTIONS:
        per_second, wanted = per_day // 86_400, FRACTIONS[unit]
        if not per_second:  # a date has no time
            return (values * 0).column
        rest = values % (60 * per_second)
        if wanted >= per_second:
            return (rest * (wanted // per_second)).column
        return (rest // (per_second // wanted)).column
    if unit in TIME_PARTS:
        size, count = TIME_PARTS[unit]
        if unit == "hour" and pa.types.is_time(arguments[1].kind):
            return (values // (per_day // count)).column  # 24:00:00 has 24 of them
        seconds = values % per_day // max(per_day // 86_400, 1)
        return (seconds // size % count).column
    part: Integers = CALENDAR.parts[unit](values // per_day)
    return part.column


def _date_trunc(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    unit = arguments[0].literal
    values = _values(kernels, arguments, 1)
    if unit is None:
        return kernels.nulls(values.column.size(), kind)
    per_day = units_per_day(kind)
    if unit in FRACTIONS:
        step = max(per_day // 86_400 // FRACTIONS[unit], 1)
        return as_dates_or_times(kernels, values - values % step, kind)
    if unit in TIME_PARTS:
        step = max(per_day * TIME_PARTS[unit][0] // 86_400, 1)
        return as_dates_or_times(kernels, values - values % per_day % step, kind)
    days = values // per_day
    start = CALENDAR.starts[unit](days) if unit in CALENDAR.starts else days
    least, _ = integer_range(pa.int32() if per_day == 1 else pa.int64())
    failed = start < least // per_day + 1
    if kernels.any_true(failed):
        fail_call(kernels, "date_trunc", arguments, kind, failed)
    return as_dates_or_times(kernels, start * per_day, kind)


def _epoch(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    values = _values(kernels, arguments, 0)
    unit: str = getattr(arguments[0].kind, "unit", "day")
    double: Any = pa.float64()
    if pa.types.is_date32(arguments[0].kind):
        return _apply_number(kernels, BinaryOperator.MUL, values, kernels.number(86_400.0, double))
    if unit == "ns":  # through microseconds, as DuckDB
        values, unit = rounded_quotient(values, 1000), "us"
    per_second = kernels.number(float(UNITS_PER_SECOND[unit]), double)
    return _apply_number(kernels, BinaryOperator.DIV, values, per_second)


def _apply_number(
    kernels: Kernels, operator: BinaryOperator, values: Integers, number: plc.Scalar
) -> plc.Column:
    return kernels.binary(operator, kernels.convert(values.column, FLOAT64), number, FLOAT64)


def _add_days(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    later = _values(kernels, arguments, 0) + _values(kernels, arguments, 1)
    failed = later.is_outside(-LARGEST_DAY, LARGEST_DAY)
    if kernels.any_true(failed):
        fail_call(kernels, "add_days", arguments, kind, failed)
    return as_dates_or_times(kernels, later, kind)


def _days_between(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return (_values(kernels, arguments, 0) - _values(kernels, arguments, 1)).column


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "date_part": _date_part,
        "date_trunc": _date_trunc,
        "epoch": _epoch,
        "add_days": _add_days,
        "days_between": _days_between,
    }
)
