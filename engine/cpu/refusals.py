"""What this device cannot do, said before a plan runs."""

# ruff: noqa: PLC0415 (what a plan does not have is not imported to find out whether it could be)

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval
from bamquery.engine.cpu.casts.families import family
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, walk

if TYPE_CHECKING:
    from bamquery.plan.windows import WindowCall

_TAKEN: Final[Mapping[str, int]] = MappingProxyType(
    dict.fromkeys(
        ("count", "first", "last", "any_value", "arg_min", "arg_max", "arg_min_null", "arg_max_null"), 1
    )
)
"""How many arguments, from the first one, are not compared with others, so that they may be intervals."""


def type_refusals(kind: pa.DataType) -> list[str]:
    """Why a column of the type cannot be held."""
    plain = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    if family(plain) is not None or pa.types.is_null(plain):
        return []
    return [f"the cpu device has no columns of type {type_name(kind)}"]


def expression_refusals(expression: Expression) -> list[str]:
    """Why an expression cannot be computed."""
    reasons: list[str] = []
    for part in walk(expression):
        reasons += type_refusals(part.type)
        match part:
            case Call(function=name) if not _is_function(name):
                reasons.append(f"the cpu device has no function {name}")
            case Cast(argument=argument, type=kind) if not _is_castable(argument.type, kind):
                reasons.append(f"the cpu device cannot cast {type_name(argument.type)} to {type_name(kind)}")
            case _:
                pass
    return list(dict.fromkeys(reasons))


def _is_function(name: str) -> bool:
    from bamquery.engine.cpu.expressions.conditions import FORMS
    from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS

    return name in FUNCTIONS or name in FORMS


def _is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    from bamquery.engine.cpu.casts.cast import is_castable

    return is_castable(source, target)


def aggregate_refusals(call: AggregateCall) -> list[str]:
    """Why an aggregate cannot be computed."""
    from bamquery.engine.cpu.aggregates.registry import is_known

    taken = _TAKEN.get(call.function, 0) if not call.distinct else 0
    if any(is_interval(argument.type) for argument in call.arguments[taken:]):
        return [f"the cpu device has no {call.function}() of INTERVAL: take epoch() of it"]
    reasons = [] if is_known(call.function) else [f"the cpu device has no aggregate {call.function}"]
    for expression in call.inputs:
        reasons += expression_refusals(expression)
    return list(dict.fromkeys([*reasons, *type_refusals(call.type)]))


def window_refusals(call: WindowCall) -> list[str]:
    """Why a call over a window cannot be computed."""
    from bamquery.function_catalog.plan_functions import WINDOW_FUNCTIONS

    reasons = [] if call.call.function in WINDOW_FUNCTIONS else aggregate_refusals(call.call)
    for expression in call.inputs:
        reasons += expression_refusals(expression)
    return list(dict.fromkeys([*reasons, *type_refusals(call.type)]))
