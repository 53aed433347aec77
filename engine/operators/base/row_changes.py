"""Where rows in order differ from those before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bamquery.engine.device import Device, Frame, HostPositions
from bamquery.plan.expressions import Call, ColumnRef, Expression


def row_changes(
    device: Device[Frame], keys: Sequence[Expression], last: Frame | None, values: Frame
) -> HostPositions:
    """Positions of rows that differ in a key from the row before; null equals null, NaN equals NaN.

    Args:
        device: whose frames they are.
        keys: what `values` are the values of, for their types.
        last: values of the row before the first; None: the first does not differ.
        values: of at least one row.
    """
    if not keys:
        return np.zeros(0, np.int64)
    before = device.slice(values, 0, device.row_count(values) - 1)
    first = device.slice(values, 0, 1) if last is None else last
    pairs = device.join_columns([device.concatenate([first, before]), values])
    return device.read_positions(device.matching_positions(_any_differs(keys), pairs))


def _any_differs(keys: Sequence[Expression]) -> Expression:
    """Over two rows side by side: whether a key is another."""
    tests: list[Expression] = []
    for i, key in enumerate(keys):
        sides = (ColumnRef(i, "before", key.type), ColumnRef(len(keys) + i, "here", key.type))
        tests.append(Call("is_distinct_from", sides, pa.bool_()))
    return tests[0] if len(tests) == 1 else Call("or", tuple(tests), pa.bool_())
