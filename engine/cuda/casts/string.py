"""Casts to strings, in DuckDB's spelling, and from strings to booleans."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.strings.side_type import SideType

from bamquery.data_types.names import type_name
from bamquery.engine.cuda.casts.outcome import Outcome
from bamquery.engine.cuda.kernels import Kernels, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric.integers import Integers
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND, units_per_day
from bamquery.errors import ExecutionError

_TEXT: Any = pa.large_string()
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: the dates that libcudf writes as DuckDB does."""
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DATE: Final = "%Y-%m-%d"
_TIME: Final = "%H:%M:%S"


def _constant(kernels: Kernels, value: str) -> plc.Scalar:
    constant: Any = pa.scalar(value, _TEXT)
    return kernels.scalar(constant)


def from_boolean(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """`true` and `false`."""
    names = (_constant(kernels, "true"), _constant(kernels, "false"))
    return Outcome(
        plc.strings.convert.convert_booleans.from_booleans(
            column, *names, stream=kernels.stream, mr=kernels.memory
        )
    )


def from_integer(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Decimal digits."""
    return Outcome(
        plc.strings.convert.convert_integers.from_integers(column, stream=kernels.stream, mr=kernels.memory)
    )


def from_decimal(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """All digits of the scale."""
    return Outcome(
        plc.strings.convert.convert_fixed_point.from_fixed_point(
            column, stream=kernels.stream, mr=kernels.memory
        )
    )


def from_date(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """ISO 8601."""
    _require_common_era(kernels, column, own)
    return Outcome(_format_column(kernels, column, _DATE))


def from_time(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Hours to seconds, and as many digits of a fraction as it has."""
    instants = view_as(column, device_type(pa.timestamp(own.unit)))
    strings = _trim_zeros(
        kernels, _format_column(kernels, instants, _with_fraction(_TIME, own.unit)), own.unit
    )
    ends = Integers.from_column(kernels, column).equals(units_per_day(own))
    if kernels.any_true(ends):  # which as an instant is the next day's first
        strings = kernels.where(ends, _constant(kernels, "24:00:00"), strings)
    return Outcome(strings)


def from_timestamp(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Date, space, time; with a zone the instant in UTC, marked `+00`."""
    _require_common_era(kernels, column, own)
    pattern = _with_fraction(f"{_DATE} {_TIME}", own.unit)
    strings = _trim_zeros(kernels, _format_column(kernels, column, pattern), own.unit)
    if own.tz is not None:
        zone = kernels.repeat_scalar(_constant(kernels, "+00"), column.size())
        strings = plc.strings.combine.concatenate(
            plc.Table([strings, zone]),
            _constant(kernels, ""),
            kernels.null(_TEXT),
            stream=kernels.stream,
            mr=kernels.memory,
        )
    return Outcome(strings)


def to_boolean(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """true, t, yes, y, 1 and their opposites, in any case."""
    lowered = plc.strings.case.to_lower(column, stream=kernels.stream, mr=kernels.memory)
    is_true, is_false = (_is_one_of(kernels, lowered, names) for names in (TRUE_TEXTS, FALSE_TEXTS))
    known = kernels.logical_or(is_true, is_false)
    failed = kernels.logical_and(kernels.invert(known), kernels.is_valid(column))
    values = is_true
    if column.null_count():
        values = kernels.where(kernels.is_valid(column), is_true, kernels.null(pa.bool_()))
    return Outcome(values, kernels.fill_null(failed))


TRUE_TEXTS: Final = ("true", "t", "yes", "y", "1")
FALSE_TEXTS: Final = ("false", "f", "no", "n", "0")


def _is_one_of(kernels: Kernels, column: plc.Column, names: tuple[str, ...]) -> plc.Column:
    constants: Any = pa.array(names, _TEXT)
    haystack = upload(kernels.session, constants)
    kernels.session.synchronize()
    found = plc.search.contains(haystack, column, stream=kernels.stream, mr=kernels.memory)
    return kernels.fill_null(found)


def _with_fraction(pattern: str, unit: str) -> str:
    digits = _DIGITS[unit]
    return f"{pattern}.%{digits}f" if digits else pattern


def _format_column(kernels: Kernels, column: plc.Column, pattern: str) -> plc.Column:
    nothing: Any = pa.array([], _TEXT)
    return plc.strings.convert.convert_datetime.from_timestamps(
        column, pattern, upload(kernels.session, nothing), stream=kernels.stream, mr=kernels.memory
    )


def _trim_zeros(kernels: Kernels, strings: plc.Column, unit: str) -> plc.Column:
    """Without the fraction's last zeros, and without the point where nothing follows."""
    for end in ("0", ".") if UNITS_PER_SECOND[unit] > 1 else ():
        strings = plc.strings.strip.strip(
            strings, SideType.RIGHT, _constant(kernels, end), stream=kernels.stream, mr=kernels.memory
        )
    return strings


def _require_common_era(kernels: Kernels, column: plc.Column, own: Any) -> None:
    days = Integers.from_column(kernels, column) // units_per_day(own)
    if kernels.any_true(days.is_outside(_FIRST_DAY, _LAST_DAY)):
        raise ExecutionError(
            f"the cuda device writes {type_name(own)} values of the years 1 to 9999 only: "
            "SET device = 'cpu' for others"
        )
