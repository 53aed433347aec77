"""Functions of plans that have no name in SQL: operators, and what other functions become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from bamquery.function_catalog.contract import (
    CONSTANTS,
    CPU_ONLY,
    NULLS_COUNT,
    OF_INTERVALS,
    WITH_ERRORS,
    AggregateContract,
    FunctionContract,
)

_PLAIN: Final = FunctionContract()
_OF_HUGEINT: Final = FunctionContract(row_by_row="hugeint")
_SHIFT: Final = replace(WITH_ERRORS, row_by_row="hugeint")
_OF_COLUMNS: Final = replace(CPU_ONLY, row_by_row="columns")
_MOVE: Final = FunctionContract("time(us) or timestamp(us) and interval, to the same", cuda_constants_from=1)

SCALARS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        # Arithmetic: arguments and answer have one type, except where said.
        "divide": FunctionContract("a / b in double; x / 0 is inf or NaN"),
        "negate": _PLAIN,
        "interpolate": FunctionContract(
            "interpolate(a, b, share double), none null: from a to b by a share of 0 to 1, as"
            " quantile_cont does: of floats, decimals, dates, times and timestamps; only operators make it"
        ),
        # Comparison: both arguments have one type. NaN equals NaN and is greater than every number; -0 = 0.
        **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), _PLAIN),
        **dict.fromkeys(("is_distinct_from", "is_not_distinct_from"), NULLS_COUNT),
        "in": FunctionContract(
            "in(a, literal, ...): null where a is null, or where nothing equals and a literal is null;"
            " in(a, members): null where a is null"
        ),
        # Logic (Kleene) and nulls.
        **dict.fromkeys(("and", "or"), NULLS_COUNT.with_text("two or more booleans")),
        "not": _PLAIN,
        **dict.fromkeys(("is_null", "is_not_null"), NULLS_COUNT),
        "case": NULLS_COUNT.with_text(
            "case(condition, value, ..., otherwise): an odd number of arguments, values of one type; "
            "a branch's error counts only on rows that take it"
        ),
        # Of one integer type or decimal(38, 0).
        **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "bit_not"), _OF_HUGEINT),
        "shift_left": _SHIFT.with_text(
            "a << b, types as of bit_and; ExecutionError below 0 and where a bit is lost"
        ),
        "shift_right": _SHIFT.with_text(
            "a >> b, types as of bit_and; 0 where b is below 0 or not below the type's width"
        ),
        # Texts.
        "concat": FunctionContract("a || b; null if either is null"),
        "like": CONSTANTS.with_text("like(a, pattern), % and _"),
        "ilike": CONSTANTS.with_text("like without regard to case"),
        "glob": _OF_COLUMNS.with_text("glob(a, pattern) over bytes: * ? [a-z] [!a-z] and a backslash"),
        **dict.fromkeys(("trim_of", "ltrim_of", "rtrim_of"), CONSTANTS.with_text("trim_of(a, characters)")),
        "substring_at": _OF_COLUMNS.with_text(
            "substring with places that are not literals; the length may be left out"
        ),
        "text_between": _OF_COLUMNS.with_text(
            "text_between(a, first int64, last int64): places from 1 on, below 0 from the end"
        ),
        # Dates, times and timestamps.
        "add_days": FunctionContract(
            "add_days(a date, n int32): the date n days later; ExecutionError outside DATE"
        ),
        "days_between": FunctionContract("days_between(a date, b date): days from b to a, int64"),
        "from_count": WITH_ERRORS.with_text("int64 units since 1970 to a timestamp"),
        "to_count": FunctionContract("a time's or timestamp's units, int64"),
        **dict.fromkeys(("add_interval", "subtract_interval"), _MOVE),
        "add_time": CPU_ONLY.with_text("a date and a time(us) to timestamp(us)"),
        # Intervals.
        "to_interval": OF_INTERVALS.with_text(
            "to_interval(n int64, unit literal); of seconds and milliseconds a double"
        ),
        "timestamp_difference": OF_INTERVALS.with_text("two timestamp(us) to an interval of days and less"),
        **dict.fromkeys(("interval_add", "interval_subtract", "interval_negate"), OF_INTERVALS),
        "interval_times": OF_INTERVALS.with_text("an interval and an int64"),
        "interval_scale": OF_INTERVALS.with_text(
            "an interval and a double; fractions of a part go to the next smaller one"
        ),
        "interval_divide": OF_INTERVALS.with_text("an interval and a double; null where it is 0"),
        "interval_part": OF_INTERVALS.with_text("interval_part(a, unit literal), int64"),
        "interval_seconds": OF_INTERVALS.with_text("double; a year has 365.25 days, a month 30"),
        "interval_milliseconds": OF_INTERVALS.with_text("int64; whole ones of each part"),
        "interval_microseconds": OF_INTERVALS.with_text("int64; a month has 30 days"),
        "interval_order": OF_INTERVALS.with_text("HUGEINT, equal and ordered as the intervals are"),
        "interval_trunc": OF_INTERVALS.with_text("interval_trunc(a, unit literal): without what is smaller"),
    }
)

AGGREGATES: Final = MappingProxyType({"count_star": AggregateContract("rows; never null", distinct=False)})
