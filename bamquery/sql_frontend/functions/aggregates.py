"""Aggregate functions by their DuckDB names: argument counts, the casts of arguments, the result's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.expressions import AggregateCall, Call, Expression, Literal, SortKey
from bamquery.plan.functions import adds_in_order
from bamquery.sql_frontend.functions import aggregate_arguments as take
from bamquery.sql_frontend.functions.coercion import coerce, decode
from bamquery.sql_frontend.functions.operators import literal
from bamquery.sql_frontend.functions.scalar_functions import check_count

Build = Callable[[str, Sequence[Expression]], AggregateCall]


@dataclass(frozen=True, slots=True)
class AggregateBinding:
    """How calls of a name are bound.

    Attributes:
        build: the call with the casts of its arguments, and the result's type; from name and arguments.
        least: fewest arguments.
        most: most arguments.
        distinct: whether repeated arguments change the answer.
        ordered: whether the order of the rows does.
        finish: what is computed from the call's value, None where that is the answer.
    """

    build: Build
    least: int = 1
    most: int = 1
    distinct: bool = True
    ordered: bool = False
    finish: Callable[[Expression], Expression] | None = None


def is_aggregate(name: str) -> bool:
    """Whether a function of that name (any case) is an aggregate."""
    return name.lower() in AGGREGATES or name.lower() in _CONDITIONAL_COUNTS


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
    name = name.lower()
    if name == "count" and not arguments:
        return AggregateCall("count_star", (), pa.int64(), filter=where)
    aggregate = AGGREGATES.get(name, _COUNT_IF)
    check_count(name, len(arguments), aggregate.least, aggregate.most)
    built = aggregate.build(name, [decode(argument) for argument in arguments])
    keys = tuple(key for key in order if not isinstance(key.expression, Literal))
    return replace(
        built,
        distinct=built.distinct or (distinct and aggregate.distinct),
        filter=where,
        order=keys if aggregate.ordered or adds_in_order(built) else (),
    )


def finish_aggregate(name: str, value: Expression) -> Expression:
    """The answer of the aggregate of that name from its call's value."""
    aggregate = AGGREGATES.get(name.lower())
    return value if aggregate is None or aggregate.finish is None else aggregate.finish(value)


def _conditional_count(name: str, arguments: Sequence[Expression]) -> AggregateCall:
    """count_if(c): how often c is true, as HUGEINT; null where c always is, as a sum of ones is."""
    condition, _ = take.truth(name, arguments[0])
    return AggregateCall("sum", (coerce(condition, pa.int32()),), HUGEINT)


def _of_one_argument(function: str, argument: take.Argument) -> Build:
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


def _exponential(value: Expression) -> Expression:
    return Call("exp", (value,), value.type)


_COUNT_IF: Final = AggregateBinding(_conditional_count)
_CONDITIONAL_COUNTS: Final = frozenset({"count_if", "countif"})

_PAIRS: Final = (
    *("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2"),
    *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
)
_SAMPLES: Final = AggregateBinding(_of_one_argument("stddev_samp", take.number_as_double))
_VARIANCES: Final = AggregateBinding(_of_one_argument("var_samp", take.number_as_double))
_FIRST: Final = AggregateBinding(_of_one_argument("first", take.any_value), distinct=False, ordered=True)
_ARG_MIN: Final = AggregateBinding(_extreme_by("arg_min"), 2, 2, distinct=False, ordered=True)
_ARG_MAX: Final = AggregateBinding(_extreme_by("arg_max"), 2, 2, distinct=False, ordered=True)
_JOINED: Final = AggregateBinding(_string_agg, 1, 2, ordered=True)
_COMPENSATED: Final = AggregateBinding(_of_one_argument("fsum", take.number_as_double))
_GEOMETRIC: Final = AggregateBinding(_geometric_mean, finish=_exponential)
_DISCRETE: Final = AggregateBinding(_quantile("quantile_disc", take.any_value), 2, 2)

AGGREGATES: Final[Mapping[str, AggregateBinding]] = MappingProxyType(
    {
        "count": AggregateBinding(_of_one_argument("count", take.value_to_count)),
        "sum": AggregateBinding(_of_one_argument("sum", take.number_to_sum)),
        "avg": AggregateBinding(_of_one_argument("avg", take.number_to_average)),
        "mean": AggregateBinding(_of_one_argument("avg", take.number_to_average)),
        "min": AggregateBinding(_of_one_argument("min", take.any_value), distinct=False),
        "max": AggregateBinding(_of_one_argument("max", take.any_value), distinct=False),
        "stddev": _SAMPLES,
        "stddev_samp": _SAMPLES,
        "stddev_pop": AggregateBinding(_of_one_argument("stddev_pop", take.number_as_double)),
        "variance": _VARIANCES,
        "var_samp": _VARIANCES,
        "var_pop": AggregateBinding(_of_one_argument("var_pop", take.number_as_double)),
        "sem": AggregateBinding(_of_one_argument("sem", take.number_as_double)),
        "skewness": AggregateBinding(_of_one_argument("skewness", take.number_as_double)),
        "kurtosis": AggregateBinding(_of_one_argument("kurtosis", take.number_as_double)),
        "kurtosis_pop": AggregateBinding(_of_one_argument("kurtosis_pop", take.number_as_double)),
        "bool_and": AggregateBinding(_of_one_argument("bool_and", take.truth), distinct=False),
        "bool_or": AggregateBinding(_of_one_argument("bool_or", take.truth), distinct=False),
        "any_value": AggregateBinding(
            _of_one_argument("any_value", take.any_value), distinct=False, ordered=True
        ),
        "first": _FIRST,
        "arbitrary": _FIRST,
        "last": AggregateBinding(_of_one_argument("last", take.any_value), distinct=False, ordered=True),
        "arg_min": _ARG_MIN,
        "argmin": _ARG_MIN,
        "min_by": _ARG_MIN,
        "arg_min_null": AggregateBinding(_extreme_by("arg_min_null"), 2, 2, distinct=False, ordered=True),
        "arg_max": _ARG_MAX,
        "argmax": _ARG_MAX,
        "max_by": _ARG_MAX,
        "arg_max_null": AggregateBinding(_extreme_by("arg_max_null"), 2, 2, distinct=False, ordered=True),
        "median": AggregateBinding(_median),
        "quantile_cont": AggregateBinding(_quantile("quantile_cont", take.between_values), 2, 2),
        "quantile_disc": _DISCRETE,
        "quantile": _DISCRETE,
        "mad": AggregateBinding(_of_one_argument("mad", take.distances)),
        "mode": AggregateBinding(_of_one_argument("mode", take.any_value), ordered=True),
        "entropy": AggregateBinding(_of_one_argument("entropy", take.any_value_to_double)),
        "string_agg": _JOINED,
        "group_concat": _JOINED,
        "listagg": _JOINED,
        "product": AggregateBinding(_of_one_argument("product", take.number_as_double)),
        "bit_and": AggregateBinding(_of_one_argument("bit_and", take.bits), distinct=False),
        "bit_or": AggregateBinding(_of_one_argument("bit_or", take.bits), distinct=False),
        "bit_xor": AggregateBinding(_of_one_argument("bit_xor", take.bits)),
        "geomean": _GEOMETRIC,
        "geometric_mean": _GEOMETRIC,
        "fsum": _COMPENSATED,
        "sumkahan": _COMPENSATED,
        "kahan_sum": _COMPENSATED,
        "favg": AggregateBinding(_of_one_argument("favg", take.number_as_double)),
        "approx_count_distinct": AggregateBinding(_approximate_count),
        **{name: AggregateBinding(_pair(name, pa.float64()), 2, 2) for name in _PAIRS},
        "regr_count": AggregateBinding(_pair("regr_count", pa.uint32()), 2, 2),
    }
)

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "list": "it gives a list",
        "array_agg": "it gives a list",
        "approx_top_k": "it gives a list",
        "histogram": "it gives a map",
        "histogram_exact": "it gives a map",
        "approx_quantile": "write quantile_cont()",
        "reservoir_quantile": "write quantile_disc()",
        "sum_no_overflow": "write sum()",
    }
)
"""Aggregates of DuckDB that are not there, and why or what to write."""
