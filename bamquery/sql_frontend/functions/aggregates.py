"""Aggregate functions by their DuckDB names: the casts of arguments, the result's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT
from bamquery.function_catalog.aggregates import SECTION
from bamquery.function_catalog.entry import Entry
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Expression, Literal, SortKey
from bamquery.plan.functions import adds_in_order
from bamquery.sql_frontend.functions import aggregate_arguments as take
from bamquery.sql_frontend.functions.bindings import Builder, bindings
from bamquery.sql_frontend.functions.coercion import coerce
from bamquery.sql_frontend.functions.operators import literal

Build = Builder[AggregateCall]


def is_aggregate(name: str) -> bool:
    """Whether a function of that name (any case) is an aggregate."""
    return name.lower() in AGGREGATES


def call(
    name: str,
    arguments: Sequence[Expression],
    *,
    distinct: bool,
    where: Expression | None,
    order: Sequence[SortKey] = (),
) -> AggregateCall:
    """The call of the aggregate of that name (any case); without arguments, ``count`` counts rows.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    built = AGGREGATES[name.lower()].bind(name.lower(), arguments)
    contract = AGGREGATE_FUNCTIONS[built.function]
    keys = tuple(key for key in order if not isinstance(key.expression, Literal))
    return replace(
        built,
        distinct=built.distinct or (distinct and contract.distinct),
        filter=where,
        order=keys if contract.ordered or adds_in_order(built) else (),
    )


def finish_aggregate(name: str, value: Expression) -> Expression:
    """The answer of the aggregate of that name from its call's value."""
    binding = AGGREGATES.get(name.lower())
    is_geometric = binding is not None and binding.entry.name == "geomean"
    return Call("exp", (value,), value.type) if is_geometric else value


def _conditional_count(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """count_if(c): how often c is true, as HUGEINT; null where c always is, as a sum of ones is."""
    condition, _ = take.truth(name, arguments[0])
    return AggregateCall("sum", (coerce(condition, pa.int32()),), HUGEINT)


def _count(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """Without an argument, of rows."""
    if not arguments:
        return AggregateCall("count_star", (), pa.int64())
    value, kind = take.value_to_count(name, arguments[0])
    return AggregateCall("count", (value,), kind)


def _unary_aggregate(function: str, argument: take.Argument) -> Build:
    """A function of one argument."""

    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        value, kind = argument(name, arguments[0])
        return AggregateCall(function, (value,), kind)

    return build


def _pair(function: str, kind: pa.DataType) -> Build:
    """A function of two doubles."""

    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        values = tuple(take.number_as_double(name, argument)[0] for argument in arguments)
        return AggregateCall(function, values, kind)

    return build


def _extreme_by(function: str) -> Build:
    """A function of a value and what chooses it."""

    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        value, kind = take.any_value(name, arguments[0])
        return AggregateCall(function, (value, take.any_value(name, arguments[1])[0]), kind)

    return build


def _quantile(function: str, argument: take.Argument) -> Build:
    def build(name: str, arguments: Sequence[Expression]) -> AggregateCall:
        value, kind = argument(name, arguments[0])
        parameter = take.quantile(name, arguments[1])
        return AggregateCall(function, (value,), kind, parameter=parameter)

    return build


def _median(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    half = literal(0.5, pa.float64())
    try:
        value, kind = take.median(name, arguments[0])
    except ValueError:  # what has no middle between two values
        value, kind = take.any_value(name, arguments[0])
        return AggregateCall("quantile_disc", (value,), kind, parameter=half)
    return AggregateCall("quantile_cont", (value,), kind, parameter=half)


def _string_agg(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    text, kind = take.string_value(name, arguments[0])
    separator = take.separator(name, arguments[1]) if len(arguments) > 1 else literal(",", kind)
    return AggregateCall("string_agg", (text,), kind, parameter=separator)


def _approximate_count(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """Exact, which is an approximation too."""
    value, kind = take.value_to_count(name, arguments[0])
    return AggregateCall("count", (value,), kind, distinct=True)


def _geometric_mean(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    value, kind = take.number_as_double(name, arguments[0])
    return AggregateCall("avg", (Call("ln", (value,), kind),), kind)


_OF_NUMBER: Final = (
    *("stddev_samp", "stddev_pop", "var_samp", "var_pop", "sem", "skewness", "kurtosis", "kurtosis_pop"),
    *("product", "fsum", "favg"),
)
_OF_ANY_VALUE: Final = ("min", "max", "any_value", "first", "last", "mode")
_PAIRS: Final = (
    *("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2"),
    *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
)
_ARGUMENTS: Final[Mapping[str, take.Argument]] = MappingProxyType(
    {
        "sum": take.number_to_sum,
        "avg": take.number_to_average,
        **dict.fromkeys(_OF_NUMBER, take.number_as_double),
        **dict.fromkeys(_OF_ANY_VALUE, take.any_value),
        **dict.fromkeys(("bool_and", "bool_or"), take.truth),
        **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), take.bits),
        "mad": take.distances,
        "entropy": take.any_value_to_double,
    }
)
"""What the one argument of a function of plans is."""

BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        "count": _count,
        "count_if": _conditional_count,
        **{name: _extreme_by(name) for name in ("arg_min", "arg_min_null", "arg_max", "arg_max_null")},
        "median": _median,
        "quantile_cont": _quantile("quantile_cont", take.between_values),
        "quantile_disc": _quantile("quantile_disc", take.any_value),
        "string_agg": _string_agg,
        "geomean": _geometric_mean,
        "approx_count_distinct": _approximate_count,
        **{name: _pair(name, pa.float64()) for name in _PAIRS},
        "regr_count": _pair("regr_count", pa.uint32()),
    }
)


def _builder(entry: Entry) -> Build:
    (function, *_) = entry.plan_functions
    return BUILDERS.get(entry.name) or _unary_aggregate(function, _ARGUMENTS[function])


AGGREGATES: Final = bindings(SECTION.entries, _builder)
