"""Many build rows in one table, which all threads make, where their keys are dense numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from bamquery.engine.device import Frame, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.operators.join.build_side import BuildSide, concatenate_columns, reserve_actual
from bamquery.engine.operators.join.pairs import JoinCondition

_Frame_contra = TypeVar("_Frame_contra", contravariant=True)


@runtime_checkable
class DenseKeysDevice(Protocol[_Frame_contra]):
    """A device whose join tables are small, and fast to make and to look up in, where keys are dense."""

    def are_dense_keys(self, keys: Sequence[_Frame_contra]) -> bool:
        """Whether the keys of all frames together are numbers that are near each other."""
        ...

    def join_table_by_threads(
        self, keys: _Frame_contra, nulls_equal: Sequence[bool], threads: int
    ) -> JoinTable[_Frame_contra]:
        """As `Device.join_table`; so many threads work on it, and the keys own their memory."""
        ...


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
    table: JoinTable[Frame] = device.join_table_by_threads(found, condition.nulls_equal, context.threads)
    reserve_actual(memory, device.nbytes(rows) + device.nbytes(found) + table.nbytes)
    return BuildSide(rows, table, device.row_count(rows), has_nulls=False)
