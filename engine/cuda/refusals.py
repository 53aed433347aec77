"""What this device cannot do, said before a plan runs. Nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.cpu import refusals as on_cpu
from bamquery.engine.cpu.casts.cast import family, is_castable
from bamquery.engine.cuda import absent
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, Literal, walk
from bamquery.plan.types import is_interval, value_type
from bamquery.plan.windows import WindowCall
from bamquery.type_names import type_name

_TEXTS_DIFFER: Final = "libcudf does not read such texts as DuckDB does"
_CASTS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("text", "integer"): _TEXTS_DIFFER,
        ("text", "float"): _TEXTS_DIFFER,
        ("text", "decimal"): _TEXTS_DIFFER,
        ("text", "date"): _TEXTS_DIFFER,
        ("text", "time"): _TEXTS_DIFFER,
        ("text", "timestamp"): _TEXTS_DIFFER,
        ("text", "blob"): _TEXTS_DIFFER,
        ("float", "text"): "libcudf does not write the shortest text that reads back as the same number",
        ("blob", "text"): "libcudf has no escapes for bytes",
    }
)
"""Casts between families of types that libcudf cannot do as DuckDB does, and why."""

REFUSED_AGGREGATES: Final = frozenset(
    {
        *("sem", "skewness", "kurtosis", "kurtosis_pop", "product", "bit_and", "bit_or", "bit_xor"),
        *("arg_min", "arg_max", "arg_min_null", "arg_max_null", "corr", "covar_pop", "covar_samp"),
        *("regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope"),
        *("regr_sxx", "regr_sxy", "regr_syy", "quantile_cont", "quantile_disc", "mode", "entropy"),
        *("mad", "string_agg"),
    }
)
"""Aggregates of the CPU that nobody has written for libcudf."""

_INSTEAD: Final = "SET device = 'cpu' for this query"


def type_refusals(kind: pa.DataType) -> list[str]:
    """Why a column of the type cannot be held."""
    if is_interval(kind):
        return [f"the cuda device has no columns of type INTERVAL: libcudf has no such type; {_INSTEAD}"]
    return [_renamed(reason) for reason in on_cpu.type_refusals(kind)]


def expression_refusals(expression: Expression) -> list[str]:
    """Why an expression cannot be computed."""
    reasons = [_renamed(reason) for reason in on_cpu.expression_refusals(expression)]
    for part in walk(expression):
        if isinstance(part, Cast):
            reasons += _cast_refusals(part.argument.type, part.type)
        elif isinstance(part, Call) and (why := absent.reason(part)) is not None:
            reasons.append(f"the cuda device has no {part.function}() for columns: {why}; {_INSTEAD}")
        elif is_interval(part.type) and not isinstance(part, Literal):
            reasons += type_refusals(part.type)
    return list(dict.fromkeys(reasons))


def aggregate_refusals(call: AggregateCall) -> list[str]:
    """Why an aggregate cannot be computed."""
    reasons = [_renamed(reason) for reason in on_cpu.aggregate_refusals(call)]
    if call.order:
        reasons.append(f"the cuda device has no ORDER BY within {call.function}; {_INSTEAD}")
    elif call.function in REFUSED_AGGREGATES:
        reasons.append(f"the cuda device has no aggregate {call.function}; {_INSTEAD}")
    for expression in call.inputs:
        reasons += expression_refusals(expression)
    return list(dict.fromkeys(reasons))


def window_refusals(call: WindowCall) -> list[str]:
    """Why a call over a window cannot be computed."""
    return [f"the cuda device has no windows (OVER); {_INSTEAD}"]


def _cast_refusals(source: pa.DataType, target: pa.DataType) -> list[str]:
    plain, wanted = value_type(source), value_type(target)
    if plain == wanted or not is_castable(source, target):
        return []  # nothing to do, or refused on any device
    reason = _CASTS.get((family(plain) or "", family(wanted) or ""))
    if reason is None and pa.types.is_decimal128(plain) and pa.types.is_large_string(wanted):
        digits_before = plain.precision - plain.scale
        reason = None if digits_before else "libcudf writes a 0 before the point, DuckDB does not"
    if reason is None:
        return []
    cast = f"{type_name(plain)} to {type_name(wanted)}"
    return [f"the cuda device cannot cast {cast}: {reason}; {_INSTEAD}"]


def _renamed(reason: str) -> str:
    return reason.replace("the cpu device", "the cuda device")
