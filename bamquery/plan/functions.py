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
from bamquery.plan.function_contract import AggregateContract, FunctionContract

SCALAR_FUNCTIONS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        # Arithmetic: both arguments and the result have one type, except where said. Integer and decimal
        # overflow raises ExecutionError; floats follow IEEE 754.
        "add": FunctionContract("a + b; decimals: arguments already at the result's type"),
        "subtract": FunctionContract("a - b; decimals: arguments already at the result's type"),
        "multiply": FunctionContract(
            "a * b; decimals: the result's scale is the sum of the arguments' scales"
        ),
        "divide": FunctionContract("a / b in double; x / 0 is inf or NaN"),
        "floor_divide": FunctionContract(
            "a // b: integers and decimal(38, 0) truncated toward zero, floats as divide; null where b = 0"
        ),
        "modulo": FunctionContract(
            "a % b with the sign of a; null where b = 0 (integers, decimals), NaN for floats"
        ),
        "negate": FunctionContract("-a"),
        "abs": FunctionContract("|a|"),
        "floor": FunctionContract("float and double to the same, decimal(p, s) to decimal(p, 0)"),
        "ceil": FunctionContract("float and double to the same, decimal(p, s) to decimal(p, 0)"),
        "round": FunctionContract(
            "round(a, n) half away from zero; n is an int32 literal; integers, floats and doubles to the"
            " same, decimal(p, s) to decimal(p, min(s, max(n, 0)))"
        ),
        "sqrt": FunctionContract("double; NaN below zero"),
        "ln": FunctionContract("double; NaN below zero, -inf at zero"),
        "exp": FunctionContract("double"),
        "power": FunctionContract("double, double"),
        # Comparison: both arguments have one type. NaN equals NaN and is greater than every number; -0 = 0.
        "equal": FunctionContract("a = b"),
        "not_equal": FunctionContract("a <> b"),
        "less": FunctionContract("a < b"),
        "less_equal": FunctionContract("a <= b"),
        "greater": FunctionContract("a > b"),
        "greater_equal": FunctionContract("a >= b"),
        "is_distinct_from": FunctionContract("never null", strict=False),
        "is_not_distinct_from": FunctionContract("never null", strict=False),
        "in": FunctionContract(
            "in(a, literal, ...): null where a is null, or where nothing equals and a literal is null;"
            " in(a, members): null where a is null"
        ),
        # Logic (Kleene) and nulls.
        "and": FunctionContract("two or more booleans", strict=False),
        "or": FunctionContract("two or more booleans", strict=False),
        "not": FunctionContract("boolean"),
        "is_null": FunctionContract("never null", strict=False),
        "is_not_null": FunctionContract("never null", strict=False),
        "coalesce": FunctionContract("first that is not null; all of one type", strict=False),
        "case": FunctionContract(
            "case(condition, value, ..., otherwise): an odd number of arguments, values of one type; "
            "a branch's error counts only on rows that take it",
            strict=False,
        ),
        # Strings (UTF-8, counted in code points).
        "lower": FunctionContract("string"),
        "upper": FunctionContract("string"),
        "length": FunctionContract("code points, as int64"),
        "concat": FunctionContract("a || b; null if either is null"),
        "like": FunctionContract("like(a, pattern), % and _", cuda_constants_from=1),
        "ilike": FunctionContract("like without regard to case", cuda_constants_from=1),
        "starts_with": FunctionContract("starts_with(a, string)", cuda_constants_from=1),
        "contains": FunctionContract("contains(a, string)", cuda_constants_from=1),
        "substring": FunctionContract(
            "substring(a, start int64 literal, length int64 literal or null for all the rest):"
            " places count from 1, below 0 from the end; a length below 0 goes back"
        ),
        "trim": FunctionContract("spaces at both ends"),
        # Dates and timestamps.
        "date_part": FunctionContract(
            "date_part(unit string literal, a) as int64; units: year quarter month day hour minute"
            " second dayofweek (Sunday 0) isodow (Monday 1) dayofyear week (ISO) isoyear yearweek decade"
            " century millennium era; millisecond microsecond nanosecond, counted from the minute"
        ),
        "epoch": FunctionContract("seconds since 1970-01-01, double"),
        "add_days": FunctionContract(
            "add_days(a date, n int32): the date n days later; ExecutionError outside DATE"
        ),
        "days_between": FunctionContract("days_between(a date, b date): days from b to a, int64"),
        "date_trunc": FunctionContract(
            "date_trunc(unit string literal, a): a's type; units of date_part, weeks start Monday"
        ),
        "greatest": FunctionContract("the greatest of values of one type that are not null", strict=False),
        "least": FunctionContract("the least of values of one type that are not null", strict=False),
        **more_functions.NUMBERS,
        **more_functions.TEXTS,
        **more_functions.TIMES,
    }
)

WINDOW_FUNCTIONS: Final[Mapping[str, FunctionContract]] = MappingProxyType(
    {
        # Of a row's place in its partition; rows that the order does not tell apart are peers.
        "row_number": FunctionContract("int64, from 1"),
        "rank": FunctionContract("int64: rows before the peers, and one"),
        "dense_rank": FunctionContract("int64: groups of peers before, and one"),
        "percent_rank": FunctionContract("double: (rank - 1) / (rows - 1), 0 in a partition of one row"),
        "cume_dist": FunctionContract("double: rows up to the last peer / rows"),
        "ntile": FunctionContract(
            "ntile(n int64): int64 from 1 to n; null where n is; ExecutionError where n < 1"
        ),
        "lag": FunctionContract(
            "lag(x, n int64, default): x of the row n places before, default where there is none; null"
            " where n is"
        ),
        "lead": FunctionContract("lead(x, n int64, default): likewise after"),
        # Of a row's frame; null where it has no such row. IGNORE NULLS leaves rows out where x is null.
        "first_value": FunctionContract("x of the first row"),
        "last_value": FunctionContract("x of the last row"),
        "nth_value": FunctionContract("nth_value(x, n int64): x of the row number n; null where n < 1"),
        # And every aggregate.
    }
)

_ROUNDING: Final = "libcudf's sums round each addition"

AGGREGATE_FUNCTIONS: Final[Mapping[str, AggregateContract]] = MappingProxyType(
    {
        # All skip nulls, and are null for a group without values, except where said.
        "count_star": AggregateContract("rows, int64; never null", distinct=False),
        "count": AggregateContract("values that are not null, int64; never null; DISTINCT allowed"),
        "sum": AggregateContract(
            "integers: decimal128(38, 0), exact; float, double: double; decimal(p, s): decimal128(38, s);"
            " DISTINCT allowed, and of floats ORDER BY"
        ),
        "avg": AggregateContract("double; DISTINCT allowed, and of floats ORDER BY"),
        "min": AggregateContract("argument's type; NaN is the greatest number", distinct=False),
        "max": AggregateContract("argument's type; NaN is the greatest number", distinct=False),
        "var_samp": AggregateContract("double; null below two values"),
        "var_pop": AggregateContract("double"),
        "stddev_samp": AggregateContract("double; null below two values"),
        "stddev_pop": AggregateContract("double"),
        "bool_and": AggregateContract("boolean", distinct=False),
        "bool_or": AggregateContract("boolean", distinct=False),
        "any_value": AggregateContract("some value that is not null", distinct=False, ordered=True),
        "first": AggregateContract(
            "the first row's value, null included; ORDER BY allowed", distinct=False, ordered=True
        ),
        "last": AggregateContract(
            "the last row's value, null included; ORDER BY allowed", distinct=False, ordered=True
        ),
        "sem": AggregateContract("standard error of the mean, double: stddev_pop / sqrt(count)"),
        "skewness": AggregateContract("double; null below three values or without spread"),
        "kurtosis": AggregateContract("double; null below four values or without spread"),
        "kurtosis_pop": AggregateContract("double; null below two values or without spread"),
        "product": AggregateContract("double to double"),
        "fsum": AggregateContract(
            "sum of doubles that keeps what each addition rounds away; DISTINCT allowed",
            cuda_refusal=_ROUNDING,
        ),
        "favg": AggregateContract("fsum / count; DISTINCT allowed", cuda_refusal=_ROUNDING),
        "bit_and": AggregateContract("integers, of their type", distinct=False),
        "bit_or": AggregateContract("integers, of their type", distinct=False),
        "bit_xor": AggregateContract("integers, of their type; DISTINCT allowed"),
        "arg_min": AggregateContract(
            "arg_min(x, by): x of the first row with the least `by`, among rows where neither is null",
            distinct=False,
            ordered=True,
        ),
        "arg_max": AggregateContract(
            "arg_max(x, by): x of the first row with the greatest `by`, likewise",
            distinct=False,
            ordered=True,
        ),
        "arg_min_null": AggregateContract(
            "arg_min, rows counting where x is null too", distinct=False, ordered=True
        ),
        "arg_max_null": AggregateContract(
            "arg_max, rows counting where x is null too", distinct=False, ordered=True
        ),
        # Of two doubles (y, x), over rows where neither is null; double, DISTINCT allowed.
        "corr": AggregateContract("NaN where either has no spread"),
        "covar_pop": AggregateContract("covariance"),
        "covar_samp": AggregateContract("null below two rows"),
        "regr_avgx": AggregateContract("mean of x"),
        "regr_avgy": AggregateContract("mean of y"),
        "regr_count": AggregateContract("rows, uint32; never null"),
        "regr_intercept": AggregateContract("null where x has no spread"),
        "regr_r2": AggregateContract("null where x has no spread, 1 where y has none"),
        "regr_slope": AggregateContract("NaN where x has no spread"),
        "regr_sxx": AggregateContract("sum of squared distances of x from its mean"),
        "regr_sxy": AggregateContract("sum of products of both distances"),
        "regr_syy": AggregateContract("sum of squared distances of y from its mean"),
        # These gather their values: a state is as large as its rows. DISTINCT and ORDER BY allowed.
        "quantile_cont": AggregateContract(
            "with parameter q: between the two nearest values; of numbers, times and"
            " timestamps in a's type; q from -1 to 1, below 0 in descending order"
        ),
        "quantile_disc": AggregateContract("with parameter q: the nearest value from below"),
        "mode": AggregateContract("the most frequent value, the first to come among equals", ordered=True),
        "entropy": AggregateContract("log-2 entropy of the values, double; 0 for a group without values"),
        "mad": AggregateContract("median of the distances from the median, of doubles, floats and decimals"),
        "string_agg": AggregateContract("texts, joined by the parameter; null where that is", ordered=True),
    }
)

HOLDS_VALUES: Final = frozenset({"quantile_cont", "quantile_disc", "mode", "entropy", "mad", "string_agg"})
"""Aggregates whose state grows with the rows."""

_ROUNDED: Final = frozenset({"sum", "avg", "product"})


def adds_in_order(call: AggregateCall) -> bool:
    """Whether the call rounds on the way from row to row, so that their order changes its answer."""
    return call.function in _ROUNDED and pa.types.is_floating(value_type(call.arguments[0].type))
