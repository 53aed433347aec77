"""What this device can do, and why libcudf cannot do the rest. Nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval, value_type
from bamquery.engine.capabilities import INSTEAD, Capabilities
from bamquery.engine.cuda.unsupported_functions import unsupported_reason
from bamquery.engine.formulas.type_families import family, is_castable
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, Literal
from bamquery.plan.functions import adds_in_order

_STRINGS_DIFFER: Final = "libcudf does not read such strings as DuckDB does"
_CASTS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("text", "integer"): _STRINGS_DIFFER,
        ("text", "float"): _STRINGS_DIFFER,
        ("text", "decimal"): _STRINGS_DIFFER,
        ("text", "date"): _STRINGS_DIFFER,
        ("text", "time"): _STRINGS_DIFFER,
        ("text", "timestamp"): _STRINGS_DIFFER,
        ("text", "blob"): _STRINGS_DIFFER,
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


def _type_gaps(kind: pa.DataType) -> Iterator[str]:
    if is_interval(kind):
        yield f"the cuda device has no columns of type INTERVAL: libcudf has no such type; {INSTEAD}"


def _node_gaps(node: Expression) -> Iterator[str]:
    if isinstance(node, Cast):
        yield from _cast_gaps(node.argument.type, node.type)
    elif isinstance(node, Call) and (why := unsupported_reason(node)) is not None:
        yield f"the cuda device has no {node.function}() for columns: {why}; {INSTEAD}"
    elif not isinstance(node, Literal):
        yield from _type_gaps(node.type)


def _cast_gaps(source: pa.DataType, target: pa.DataType) -> Iterator[str]:
    plain, wanted = value_type(source), value_type(target)
    if plain == wanted or not is_castable(source, target):
        return  # nothing to do, or refused on any device
    reason = _CASTS.get((family(plain) or "", family(wanted) or ""))
    if reason is None and pa.types.is_decimal128(plain) and pa.types.is_large_string(wanted):
        digits_before = plain.precision - plain.scale
        reason = None if digits_before else "libcudf writes a 0 before the point, DuckDB does not"
    if reason is not None:
        cast = f"{type_name(plain)} to {type_name(wanted)}"
        yield f"the cuda device cannot cast {cast}: {reason}; {INSTEAD}"


def _aggregate_gaps(call: AggregateCall) -> Iterator[str]:
    kind = value_type(call.type)
    if call.function in _BETWEEN and isinstance(kind, pa.Decimal128Type) and kind.precision > _WORD_DIGITS:
        yield (
            f"the cuda device has no {_BETWEEN[call.function]} of {type_name(kind)}: libcudf does not "
            f"convert more than {_WORD_DIGITS} digits to DOUBLE as the CPU does; {INSTEAD}"
        )
    contract = AGGREGATE_FUNCTIONS.get(call.function)
    if contract is not None and (why := contract.cuda_refusal):
        yield f"the cuda device has no {call.function}(): {why}; {INSTEAD}"
    if call.order and adds_in_order(call):
        yield (
            f"the cuda device has no {call.function}() of floats with ORDER BY: libcudf adds rows in any"
            f" order; {INSTEAD}"
        )


CUDA: Final = Capabilities(
    "cuda",
    on_host=False,
    numbers_rows=False,
    type_gaps=_type_gaps,
    node_gaps=_node_gaps,
    aggregate_gaps=_aggregate_gaps,
)
