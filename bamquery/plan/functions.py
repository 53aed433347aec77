"""What the contracts of functions say of a call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT, value_type
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS
from bamquery.plan.expressions import AggregateCall, Call, Cast, Expression, Literal, children
from bamquery.statement_context.cancellation import check_cancelled

HOLDS_VALUES: Final = frozenset(
    name for name, contract in AGGREGATE_FUNCTIONS.items() if contract.holds_values
)
"""Aggregates whose state grows with the rows."""


def called_row_by_row(expressions: Iterable[Expression]) -> set[str]:
    """Functions in them, by name, for which a CPU calls Python for every row."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [*expressions]
    while waiting:
        check_cancelled()
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, Call | Cast):
            continue
        seen.add(id(node))
        waiting += children(node)
        if isinstance(node, Call) and _runs_row_by_row(node):
            found.add(node.function)
    return found


def _runs_row_by_row(call: Call) -> bool:
    when = SCALAR_FUNCTIONS[call.function].row_by_row
    if when == "columns":
        return not all(isinstance(other, Literal) for other in call.arguments[1:])
    return when == "always" or (when == "hugeint" and call.type == HUGEINT)


def adds_in_order(call: AggregateCall) -> bool:
    """Whether the call rounds on the way from row to row, so that their order changes its answer."""
    contract = AGGREGATE_FUNCTIONS.get(call.function)
    return (
        contract is not None and contract.rounds and pa.types.is_floating(value_type(call.arguments[0].type))
    )
