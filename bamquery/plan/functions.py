"""The functions that plans may call, by canonical name: the contract between binder and devices.

The binder resolves overloads and casts arguments before it makes a `Call`; a device implements each name
for the argument types listed here and nothing wider.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.plan import functions_by_theme as more_functions
from bamquery.plan.expressions import AggregateCall

SCALAR_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Arithmetic: both arguments and the result have one type, except where said. Integer and decimal
        # overflow raises ExecutionError; floats follow IEEE 754.
        "add": "a + b; decimals: arguments already at the result's type",
        "subtract": "a - b; decimals: arguments already at the result's type",
        "multiply": "a * b; decimals: the result's scale is the sum of the arguments' scales",
        "divide": "a / b in double; x / 0 is inf or NaN",
        "floor_divide": "a // b: integers and decimal(38, 0) truncated toward zero, floats as divide;"
        " null where b = 0",
        "modulo": "a % b with the sign of a; null where b = 0 (integers, decimals), NaN for floats",
        "negate": "-a",
        "abs": "|a|",
        "floor": "float and double to the same, decimal(p, s) to decimal(p, 0)",
        "ceil": "float and double to the same, decimal(p, s) to decimal(p, 0)",
        "round": "round(a, n) half away from zero; n is an int32 literal; integers, floats and doubles to the"
        " same, decimal(p, s) to decimal(p, min(s, max(n, 0)))",
        "sqrt": "double; NaN below zero",
        "ln": "double; NaN below zero, -inf at zero",
        "exp": "double",
        "power": "double, double",
        # Comparison: both arguments have one type. NaN equals NaN and is greater than every number; -0 = 0.
        "equal": "a = b",
        "not_equal": "a <> b",
        "less": "a < b",
        "less_equal": "a <= b",
        "greater": "a > b",
        "greater_equal": "a >= b",
        "is_distinct_from": "never null",
        "is_not_distinct_from": "never null",
        "in": "in(a, literal, ...): null where a is null, or where nothing equals and a literal is null;"
        " in(a, members): null where a is null",
        # Logic (Kleene) and nulls.
        "and": "two or more booleans",
        "or": "two or more booleans",
        "not": "boolean",
        "is_null": "never null",
        "is_not_null": "never null",
        "coalesce": "first that is not null; all of one type",
        "case": "case(condition, value, ..., otherwise): an odd number of arguments, values of one type; "
        "a branch's error counts only on rows that take it",
        # Strings (UTF-8, counted in code points).
        "lower": "string",
        "upper": "string",
        "length": "code points, as int64",
        "concat": "a || b; null if either is null",
        "like": "like(a, pattern), % and _",
        "ilike": "like without regard to case",
        "starts_with": "starts_with(a, string)",
        "contains": "contains(a, string)",
        "substring": "substring(a, start int64 literal, length int64 literal or null for all the rest):"
        " places count from 1, below 0 from the end; a length below 0 goes back",
        "trim": "spaces at both ends",
        # Dates and timestamps.
        "date_part": "date_part(unit string literal, a) as int64; units: year quarter month day hour minute "
        "second dayofweek (Sunday 0) isodow (Monday 1) dayofyear week (ISO) isoyear yearweek decade century "
        "millennium era; millisecond microsecond nanosecond, counted from the minute",
        "epoch": "seconds since 1970-01-01, double",
        "add_days": "add_days(a date, n int32): the date n days later; ExecutionError outside DATE",
        "days_between": "days_between(a date, b date): days from b to a, int64",
        "date_trunc": "date_trunc(unit string literal, a): a's type; units of date_part, weeks start Monday",
        "greatest": "the greatest of values of one type that are not null",
        "least": "the least of values of one type that are not null",
        **more_functions.NUMBERS,
        **more_functions.TEXTS,
        **more_functions.TIMES,
    }
)

WINDOW_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Of a row's place in its partition; rows that the order does not tell apart are peers.
        "row_number": "int64, from 1",
        "rank": "int64: rows before the peers, and one",
        "dense_rank": "int64: groups of peers before, and one",
        "percent_rank": "double: (rank - 1) / (rows - 1), 0 in a partition of one row",
        "cume_dist": "double: rows up to the last peer / rows",
        "ntile": "ntile(n int64): int64 from 1 to n; null where n is; ExecutionError where n < 1",
        "lag": "lag(x, n int64, default): x of the row n places before, default where there is none; null"
        " where n is",
        "lead": "lead(x, n int64, default): likewise after",
        # Of a row's frame; null where it has no such row. IGNORE NULLS leaves rows out where x is null.
        "first_value": "x of the first row",
        "last_value": "x of the last row",
        "nth_value": "nth_value(x, n int64): x of the row number n; null where n < 1",
        # And every aggregate.
    }
)

AGGREGATE_FUNCTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # All skip nulls, and are null for a group without values, except where said.
        "count_star": "rows, int64; never null",
        "count": "values that are not null, int64; never null; DISTINCT allowed",
        "sum": "integers: decimal128(38, 0), exact; float, double: double; decimal(p, s): decimal128(38, s);"
        " DISTINCT allowed, and of floats ORDER BY",
        "avg": "double; DISTINCT allowed, and of floats ORDER BY",
        "min": "argument's type; NaN is the greatest number",
        "max": "argument's type; NaN is the greatest number",
        "var_samp": "double; null below two values",
        "var_pop": "double",
        "stddev_samp": "double; null below two values",
        "stddev_pop": "double",
        "bool_and": "boolean",
        "bool_or": "boolean",
        "any_value": "some value that is not null",
        "first": "the first row's value, null included; ORDER BY allowed",
        "last": "the last row's value, null included; ORDER BY allowed",
        "sem": "standard error of the mean, double: stddev_pop / sqrt(count)",
        "skewness": "double; null below three values or without spread",
        "kurtosis": "double; null below four values or without spread",
        "kurtosis_pop": "double; null below two values or without spread",
        "product": "double to double",
        "fsum": "sum of doubles that keeps what each addition rounds away; DISTINCT allowed",
        "favg": "fsum / count; DISTINCT allowed",
        "bit_and": "integers, of their type",
        "bit_or": "integers, of their type",
        "bit_xor": "integers, of their type; DISTINCT allowed",
        "arg_min": "arg_min(x, by): x of the first row with the least `by`, among rows where neither is null",
        "arg_max": "arg_max(x, by): x of the first row with the greatest `by`, likewise",
        "arg_min_null": "arg_min, rows counting where x is null too",
        "arg_max_null": "arg_max, rows counting where x is null too",
        # Of two doubles (y, x), over rows where neither is null; double, DISTINCT allowed.
        "corr": "NaN where either has no spread",
        "covar_pop": "covariance",
        "covar_samp": "null below two rows",
        "regr_avgx": "mean of x",
        "regr_avgy": "mean of y",
        "regr_count": "rows, uint32; never null",
        "regr_intercept": "null where x has no spread",
        "regr_r2": "null where x has no spread, 1 where y has none",
        "regr_slope": "NaN where x has no spread",
        "regr_sxx": "sum of squared distances of x from its mean",
        "regr_sxy": "sum of products of both distances",
        "regr_syy": "sum of squared distances of y from its mean",
        # These gather their values: a state is as large as its rows. DISTINCT and ORDER BY allowed.
        "quantile_cont": "with parameter q: between the two nearest values; of numbers, times and"
        " timestamps in a's type; q from -1 to 1, below 0 in descending order",
        "quantile_disc": "with parameter q: the nearest value from below",
        "mode": "the most frequent value, the first to come among equals",
        "entropy": "log-2 entropy of the values, double; 0 for a group without values",
        "mad": "median of the distances from the median, of doubles, floats and decimals",
        "string_agg": "texts, joined by the parameter; null where that is",
    }
)

HOLDS_VALUES: Final = frozenset({"quantile_cont", "quantile_disc", "mode", "entropy", "mad", "string_agg"})
"""Aggregates whose state grows with the rows."""

_ROUNDED: Final = frozenset({"sum", "avg", "product"})


def adds_in_order(call: AggregateCall) -> bool:
    """Whether the call rounds on the way from row to row, so that their order changes its answer."""
    return call.function in _ROUNDED and pa.types.is_floating(value_type(call.arguments[0].type))
