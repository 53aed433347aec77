"""Which family of accumulators computes each aggregate function of `function_catalog`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from bamquery.plan.expressions import AggregateCall, SortKey

A = TypeVar("A")
"""A device's accumulator."""


def _of(family: str, **options: Any) -> tuple[str, Mapping[str, Any]]:
    return family, MappingProxyType(options)


AGGREGATES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "count_star": _of("rows"),
        "count": _of("values"),
        "sum": _of("sum"),
        "avg": _of("average"),
        "min": _of("extreme", greatest=False),
        "max": _of("extreme", greatest=True),
        "var_samp": _of("variance", spare=1, root=False),
        "var_pop": _of("variance", spare=0, root=False),
        "stddev_samp": _of("variance", spare=1, root=True),
        "stddev_pop": _of("variance", spare=0, root=True),
        "sem": _of("variance", spare=0, root=True, of_mean=True),
        "bool_and": _of("extreme of truth values", greatest=False),
        "bool_or": _of("extreme of truth values", greatest=True),
        "any_value": _of("one row", last=False, skip_nulls=True),
        "first": _of("one row", last=False, skip_nulls=False),
        "last": _of("one row", last=True, skip_nulls=False),
        "arg_min": _of("row of an extreme", greatest=False, skip_nulls=True),
        "arg_max": _of("row of an extreme", greatest=True, skip_nulls=True),
        "arg_min_null": _of("row of an extreme", greatest=False, skip_nulls=False),
        "arg_max_null": _of("row of an extreme", greatest=True, skip_nulls=False),
        "product": _of("product"),
        **{name: _of(name) for name in ("bit_and", "bit_or", "bit_xor")},
        "fsum": _of("compensated sum", mean=False),
        "favg": _of("compensated sum", mean=True),
        **{name: _of("shape", function=name) for name in ("skewness", "kurtosis", "kurtosis_pop")},
        **{
            name: _of("pairs", function=name)
            for name in (
                *("corr", "covar_pop", "covar_samp"),
                *("regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope"),
                *("regr_sxx", "regr_sxy", "regr_syy"),
            )
        },
        "quantile_cont": _of("continuous quantile"),
        "quantile_disc": _of("discrete quantile"),
        "mode": _of("mode"),
        "entropy": _of("entropy"),
        "mad": _of("median distance"),
        "string_agg": _of("joined strings"),
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
