"""What a device can do, and why not what it cannot: one record each, which is asked before a plan runs.

What a plan may hold at all is the same for every device. A record adds what its device has not of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import is_interval, value_type
from bamquery.engine.formulas.type_families import family, is_castable
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, WINDOW_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, walk
from bamquery.statement_context.cancellation import check_cancelled

if TYPE_CHECKING:
    from bamquery.plan.windows import WindowCall

INSTEAD: Final = "SET device = 'cpu' for this query"
_ACCEPTED: Final = f"{__name__}.accepted"
_NOT_COMPARED: Final = MappingProxyType(
    dict.fromkeys(
        ("count", "first", "last", "any_value", "arg_min", "arg_max", "arg_min_null", "arg_max_null"), 1
    )
)
"""How many arguments, from the first one, are not compared with others, so that they may be intervals."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One device's.

    Attributes:
        device: what messages call it.
        on_host: frames are in this process's memory, and the query's threads compute them.
        numbers_rows: its scans of stored tables can say the number of each row.
        takes_encoded: its frames may have columns as they are stored, and strings as dictionaries.
        type_gaps: why it holds no columns of a type.
        node_gaps: why it cannot compute a call or cast, its arguments aside.
        aggregate_gaps: why it cannot compute an aggregate, its arguments aside.
    """

    device: str
    on_host: bool
    numbers_rows: bool
    takes_encoded: bool = False
    type_gaps: Callable[[pa.DataType], Iterable[str]] = lambda kind: ()
    node_gaps: Callable[[Expression], Iterable[str]] = lambda node: ()
    aggregate_gaps: Callable[[AggregateCall], Iterable[str]] = lambda call: ()

    def type_refusals(self, kind: pa.DataType) -> list[str]:
        """Why a column of the type cannot be held; empty where it can."""
        return list(self.type_gaps(kind)) or self._unknown_type(kind)

    def expression_refusals(self, expression: Expression) -> list[str]:
        """Why an expression cannot be computed, or its type not be held; empty where it can."""
        known = expression.__dict__ if isinstance(expression, Call | Cast) else {}
        if known.get(_ACCEPTED) is self:
            return []
        nodes = list(walk(expression))
        reasons = [reason for node in nodes for reason in self._unknown_node(node)]
        reasons += [reason for node in nodes for reason in self.node_gaps(node)]
        if not reasons:  # each statement asks, also those that were asked before
            known[_ACCEPTED] = self
        return list(dict.fromkeys(reasons))

    def aggregate_refusals(self, call: AggregateCall) -> list[str]:
        """Why an aggregate cannot be computed; empty where it can."""
        reasons: list[str] = []
        compared = call.arguments[0 if call.distinct else _NOT_COMPARED.get(call.function, 0) :]
        if any(is_interval(argument.type) for argument in compared):
            reasons.append(
                f"the {self.device} device has no {call.function}() of INTERVAL: take epoch() of it"
            )
        elif call.function not in AGGREGATE_FUNCTIONS:
            reasons.append(f"the {self.device} device has no aggregate {call.function}")
        reasons += self.aggregate_gaps(call)
        reasons += [reason for node in call.inputs for reason in self.expression_refusals(node)]
        return list(dict.fromkeys([*reasons, *self._unknown_type(call.type)]))

    def window_refusals(self, call: WindowCall) -> list[str]:
        """Why a call over a window cannot be computed; empty where it can."""
        reasons = [] if call.call.function in WINDOW_FUNCTIONS else self.aggregate_refusals(call.call)
        reasons += [reason for node in call.inputs for reason in self.expression_refusals(node)]
        return list(dict.fromkeys([*reasons, *self.type_refusals(call.type)]))

    def _unknown_type(self, kind: pa.DataType) -> list[str]:
        plain = value_type(kind)
        if family(plain) is not None or pa.types.is_null(plain):
            return []
        return [f"the {self.device} device has no columns of type {type_name(kind)}"]

    def _unknown_node(self, node: Expression) -> list[str]:
        check_cancelled()
        reasons = self._unknown_type(node.type)
        match node:
            case Call(function=name) if name not in SCALAR_FUNCTIONS or name == "now":
                reasons.append(f"the {self.device} device has no function {name}")
            case Cast(argument=argument, type=kind) if not is_castable(argument.type, kind):
                what = f"{type_name(argument.type)} to {type_name(kind)}"
                reasons.append(f"the {self.device} device cannot cast {what}")
            case _:
                pass
        return reasons
