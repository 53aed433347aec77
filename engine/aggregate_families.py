"""Which family of accumulators computes each aggregate function of `function_catalog`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from bamquery.plan.expressions import AggregateCall, SortKey

A = TypeVar("A")
"""A device's accumulator."""


def _family(family: str, **options: Any) -> tuple[str, Mapping[str, Any]]:
    return family, MappingProxyType(options)


AGGREGATES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "count_star": _family("rows"),
        "count": _family("values"),
        "sum": _family("sum"),
        "avg": _family("average"),
        "min": _family("extreme", greatest=False),
        "max": _family("extreme", greatest=True),
        "var_samp": _family("variance", spare=1, root=False),
        "var_pop": _family("variance", spare=0, root=False),
        "stddev_samp": _family("variance", spare=1, root=True),
        "stddev_pop": _family("variance", spare=0, root=True),
        "sem": _family("variance", spare=0, root=True, of_mean=True),
        "bool_and": _family("extreme of truth values", greatest=False),
        "bool_or": _family("extreme of truth values", greatest=True),
        "any_value": _family("one row", last=False, skip_nulls=True),
        "first": _family("one row", last=False, skip_nulls=False),
        "last": _family("one row", last=True, skip_nulls=False),
        "arg_min": _family("row of an extreme", greatest=False, skip_nulls=True),
        "arg_max": _family("row of an extreme", greatest=True, skip_nulls=True),
        "arg_min_null": _family("row of an extreme", greatest=False, skip_nulls=False),
        "arg_max_null": _family("row of an extreme", greatest=True, skip_nulls=False),
        "product": _family("product"),
        **{name: _family(name) for name in ("bit_and", "bit_or", "bit_xor")},
        "fsum": _family("compensated sum", mean=False),
        "favg": _family("compensated sum", mean=True),
        **{name: _family("shape", function=name) for name in ("skewness", "kurtosis", "kurtosis_pop")},
        **{
            name: _family("pairs", function=name)
            for name in (
                *("corr", "covar_pop", "covar_samp"),
                *("regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope"),
                *("regr_sxx", "regr_sxy", "regr_syy"),
            )
        },
        "quantile_cont": _family("continuous quantile"),
        "quantile_disc": _family("discrete quantile"),
        "mode": _family("mode"),
        "entropy": _family("entropy"),
        "mad": _family("median distance"),
        "string_agg": _family("joined strings"),
    }
)
"""By function: its family, and what tells it from others of that."""


def make_accumulator(
    call: AggregateCall,
    families: Mapping[str, Callable[..., A]],
    ordered: Callable[[A, int, Sequence[SortKey]], A],
) -> A:
    """What computes a call that a device does not refuse.

    Args:
        call: whose arguments it takes, then its sort keys.
        families: makes an accumulator of a family from a call, and from what `AGGREGATES` says.
        ordered: makes an accumulator that gives another one, of so many arguments, its rows in order of keys.
    """
    family, options = AGGREGATES[call.function]
    accumulator = families[family](call, **options)
    if not call.order or family == "one row":  # by any order
        return accumulator
    return ordered(accumulator, len(call.arguments), call.order)
