"""What the contracts of aggregates say of a call."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS
from bamquery.plan.expressions import AggregateCall

HOLDS_VALUES: Final = frozenset(
    name for name, contract in AGGREGATE_FUNCTIONS.items() if contract.holds_values
)
"""Aggregates whose state grows with the rows."""


def adds_in_order(call: AggregateCall) -> bool:
    """Whether the call rounds on the way from row to row, so that their order changes its answer."""
    contract = AGGREGATE_FUNCTIONS.get(call.function)
    return (
        contract is not None and contract.rounds and pa.types.is_floating(value_type(call.arguments[0].type))
    )
