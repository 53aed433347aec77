"""Many build rows in one table, which all threads make, where their keys are dense numbers."""

from __future__ import annotations

from collections.abc import Sequence

from bamquery.engine.device import Frame, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.operators.join.build_side import (
    BuildSide,
    DenseKeysDevice,
    concatenate_columns,
    reserve_actual,
)
from bamquery.engine.operators.join.pairs import JoinCondition


def make_dense_build(
    context: ExecutionContext[Frame],
    frames: Sequence[Frame],
    columns: int,
    condition: JoinCondition,
    memory: Reservation,
) -> BuildSide[Frame] | None:
    """Rows of so many columns, ready to be found by dense keys; None where they are to be partitioned.

    To look a row up among partitions is to split its chunk first, and as many steps as there are partitions.
    """
    device = context.device
    if not isinstance(device, DenseKeysDevice):
        return None
    keys = [device.evaluate(condition.build_keys, frame) for frame in frames]
    if not device.are_dense_keys(keys):
        return None
    rows = concatenate_columns(context, frames, columns)
    found = device.evaluate(condition.build_keys, rows)
    table: JoinTable[Frame] = device.join_table_of_owned(found, condition.nulls_equal)
    reserve_actual(memory, device.nbytes(rows) + device.nbytes(found) + table.nbytes)
    return BuildSide(rows, table, device.row_count(rows), has_nulls=False)
