"""The side of a join that is held in memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame, JoinTable
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import gathered
from bamquery.engine.operators.group_states import grouped
from bamquery.engine.operators.join_pairs import AllPairs, JoinCondition
from bamquery.engine.operators.operator import Operator
from bamquery.plan.expressions import Call, ColumnRef


@dataclass(frozen=True)
class Build(Generic[Frame]):
    """Held rows, ready to be found.

    Attributes:
        frame: the rows; their keys only, where nothing else is wanted.
        table: finds them.
        rows: how many.
        has_nulls: whether a key is null that equals nothing; known where there is one key.
    """

    frame: Frame
    table: JoinTable[Frame]
    rows: int
    has_nulls: bool

    @staticmethod
    def null_rows(device: Device[Frame], keys: Frame, kind: pa.DataType) -> NDArray[np.bool_]:
        """Which rows of a frame of one column are null."""
        nulls = np.zeros(device.row_count(keys), np.bool_)
        nulls[device.matching(Call("is_null", (ColumnRef(0, "key", kind),), pa.bool_()), keys)] = True
        return nulls


def hold(
    context: ExecutionContext[Frame],
    child: Operator[Frame],
    condition: JoinCondition,
    memory: Reservation,
    *,
    only_keys: bool,
    no_pairs: bool,
) -> Build[Frame]:
    """Take all of a child's rows; where only keys matter each of them once; `no_pairs`: none will be found.

    Raises:
        MemoryLimitError: they do not fit `memory_limit`.
    """
    device = context.device
    frame = _keys_once(context, child, condition, memory) if only_keys else _all_rows(context, child, memory)
    rows = device.row_count(frame)
    size = device.nbytes(frame)
    if not condition.build_keys:
        memory.resize(size)
        return Build(frame, AllPairs(device, 0 if no_pairs else rows), rows, has_nulls=False)
    keys = frame if only_keys else device.evaluate(condition.build_keys, frame)
    memory.resize(size + device.nbytes(keys) + 16 * rows)
    table = device.join_table(keys, condition.nulls_equal)
    memory.resize(size + device.nbytes(keys) + table.nbytes)
    has_nulls = False
    if only_keys and len(condition.build_keys) == 1 and not condition.nulls_equal[0]:
        has_nulls = bool(Build.null_rows(device, keys, condition.build_keys[0].type).any())
    return Build(frame, table, rows, has_nulls)


def _all_rows(context: ExecutionContext[Frame], child: Operator[Frame], memory: Reservation) -> Frame:
    device = context.device
    held: list[Frame] = [device.empty(child.fields)]
    with closing(child.frames(context)) as frames, closing(gathered(device, frames)) as chunks:
        for chunk in chunks:
            held.append(chunk)
            memory.resize(memory.held + device.nbytes(chunk))
    memory.resize(2 * memory.held)  # the rows, joined
    return device.concatenate(held)


def _keys_once(
    context: ExecutionContext[Frame], child: Operator[Frame], condition: JoinCondition, memory: Reservation
) -> Frame:
    device = context.device
    if not condition.build_keys:  # whether there is a row at all
        with closing(child.frames(context)) as frames:
            some = any(device.row_count(frame) for frame in frames)
        return device.single_row() if some else device.slice(device.single_row(), 0, 0)
    aggregation = device.aggregation(condition.build_keys, ())
    with (
        closing(child.frames(context)) as frames,
        closing(grouped(context, frames, device.empty(child.fields), aggregation, memory)) as groups,
    ):
        found = list(groups)
    return device.concatenate(found)
