"""What calls over a window hold of each row while they are computed, beside the row and their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.function_catalog.plan_functions import WINDOW_FUNCTIONS
from bamquery.plan.functions import HOLDS_VALUES
from bamquery.plan.windows import WindowCall

# Measured on a CPU, whose test knows every kind of call; a number or a position takes 8 bytes.
_PLACES: Final = 144
"""Partitions, peers and positions: of calls that number rows or look at another one."""
_STATES: Final = 288
"""These, where frames begin and end, and states or their running totals: of aggregates."""
_VALUES: Final = 384
"""These and all values of a frame in an order or by groups: of aggregates that look at them together."""
_ANSWER: Final = 32
"""A call's values and the frames that it shares with others."""


def needed_row_bytes(calls: Sequence[WindowCall]) -> int:
    """Bytes a row at most: calls are computed one after the other, those of strings as they are wanted."""
    passing = staying = 0
    for call in calls:
        kind = value_type(call.type)
        if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
            staying += _work(call)
        else:
            passing = max(passing, _work(call))
    return passing + staying + _ANSWER * len(calls)


def _work(call: WindowCall) -> int:
    name = call.call.function
    if name in WINDOW_FUNCTIONS:
        return _PLACES
    return _VALUES if call.call.distinct or name in HOLDS_VALUES else _STATES
