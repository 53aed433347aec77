"""What this device cannot do, said before a plan runs. Nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval, value_type
from bamquery.engine.cpu import refusals as on_cpu
from bamquery.engine.cpu.casts.cast import is_castable
from bamquery.engine.cpu.casts.families import family
from bamquery.engine.cuda.unsupported_functions import unsupported_reason
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, Literal, walk
from bamquery.plan.functions import adds_in_order
from bamquery.plan.windows import WindowCall

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

_BETWEEN: Final[Mapping[str, str]] = MappingProxyType(
    {"quantile_cont": "median or quantile_cont", "mad": "mad"}
)
"""Aggregates of values between two others, and what they are called."""

_WORD_DIGITS: Final = 18
_INSTEAD: Final = "SET device = 'cpu' for this query"


def type_refusals(kind: pa.DataType) -> list[str]:
    """Why a column of the type cannot be held."""
    if is_interval(kind):
        return [f"the cuda device has no columns of type INTERVAL: libcudf has no such type; {_INSTEAD}"]
    return [_reword(reason) for reason in on_cpu.type_refusals(kind)]


def expression_refusals(expression: Expression) -> list[str]:
    """Why an expression cannot be computed."""
    reasons = [_reword(reason) for reason in on_cpu.expression_refusals(expression)]
    for part in walk(expression):
        if isinstance(part, Cast):
            reasons += _cast_refusals(part.argument.type, part.type)
        elif isinstance(part, Call) and (why := unsupported_reason(part)) is not None:
            reasons.append(f"the cuda device has no {part.function}() for columns: {why}; {_INSTEAD}")
        elif is_interval(part.type) and not isinstance(part, Literal):
            reasons += type_refusals(part.type)
    return list(dict.fromkeys(reasons))


def aggregate_refusals(call: AggregateCall) -> list[str]:
    """Why an aggregate cannot be computed."""
    reasons = [_reword(reason) for reason in on_cpu.aggregate_refusals(call)]
    kind = value_type(call.type)
    if call.function in _BETWEEN and isinstance(kind, pa.Decimal128Type) and kind.precision > _WORD_DIGITS:
        reasons.append(
            f"the cuda device has no {_BETWEEN[call.function]} of {type_name(kind)}: libcudf does not "
            f"convert more than {_WORD_DIGITS} digits to DOUBLE as the CPU does; {_INSTEAD}"
        )
    contract = AGGREGATE_FUNCTIONS.get(call.function)
    if contract is not None and (why := contract.cuda_refusal):
        reasons.append(f"the cuda device has no {call.function}(): {why}; {_INSTEAD}")
    if call.order and adds_in_order(call):
        reasons.append(
            f"the cuda device has no {call.function}() of floats with ORDER BY: libcudf adds rows in any"
            f" order; {_INSTEAD}"
        )
    for expression in call.inputs:
        reasons += expression_refusals(expression)
    return list(dict.fromkeys(reasons))


def window_refusals(call: WindowCall) -> list[str]:
    """Why a call over a window cannot be computed."""
    reasons = [] if call.call.function in WINDOW_FUNCTIONS else aggregate_refusals(call.call)
    for expression in call.inputs:
        reasons += expression_refusals(expression)
    return list(dict.fromkeys([*reasons, *type_refusals(call.type)]))


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


def _reword(reason: str) -> str:
    return reason.replace("the cpu device", "the cuda device")
