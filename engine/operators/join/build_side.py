"""The side of a join that is held in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.aggregate.group_states import group_rows
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.operators.join.pairs import AllPairs, JoinCondition
from bamquery.engine.operators.join.partitions import PARTITIONS
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef
from bamquery.plan.nodes import Field

MEMORY_LEVEL: Final = 5
"""Of the hashes that rows in memory are split by: those of files have lower ones."""
_COPIES: Final = 2
"""Times that rows are in memory while they are joined, or beside their keys."""
_TABLE_BYTES: Final = 72
"""For each row, what finds it."""
_MOST_ROWS: Final = 1 << 20
"""Rows of a block at most: a row of the other side may have all of them as partners at once."""
_PIECES: Final = 8
"""Pieces of rows that would fill the memory that is left."""
_SPREAD_ROWS: Final = 1 << 17
"""Rows of which each column is work for a thread of its own."""
_FEW_STRINGS: Final = 1 << 14
"""Rows whose strings are worth encoding: all of them are looked at for each chunk that is grouped."""


_Frame_contra = TypeVar("_Frame_contra", contravariant=True)


@runtime_checkable
class DenseKeysDevice(Protocol[_Frame_contra]):
    """A device whose join tables are small, and fast to make and to look up in, where keys are dense."""

    def are_dense_keys(self, keys: Sequence[_Frame_contra]) -> bool:
        """Whether the keys of all frames together are numbers near each other."""
        ...

    def join_table_of_owned(
        self, keys: _Frame_contra, nulls_equal: Sequence[bool]
    ) -> JoinTable[_Frame_contra]:
        """As `Device.join_table`; the keys own their memory, and Ctrl-C need not wait for many of them."""
        ...


@dataclass(frozen=True)
class BuildSide(Generic[Frame]):
    """Build rows, ready to be found.

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
        is_null = Call("is_null", (ColumnRef(0, "key", kind),), pa.bool_())
        nulls[device.read_positions(device.matching_positions(is_null, keys))] = True
        return nulls


def build_side_bytes(rows: int, size: int) -> int:
    """Memory for rows of a size, and what is made of them."""
    return _COPIES * size + _TABLE_BYTES * rows


def collect_build_side(
    context: ExecutionContext[Frame], chunks: Iterable[Frame], memory: Reservation
) -> tuple[list[Frame], Frame | None]:
    """Chunks as far as they and what is made of them fit in memory, and the first one that did not, if any.

    Raises:
        MemoryLimitError: there is nowhere else to keep rows.
    """
    device = context.device
    held: list[Frame] = []
    size = rows = 0
    for chunk in chunks:
        size += device.nbytes(chunk)
        rows += device.row_count(chunk)
        try:
            memory.resize(build_side_bytes(rows, size))
        except MemoryLimitError:
            if context.spill_folder is None:
                raise
            return held, chunk
        held.append(chunk)
    return held, None


def collect_blocks(
    device: Device[Frame], chunks: Iterable[Frame], memory: Reservation, beside: int = 0
) -> Generator[list[Frame], None, None]:
    """Lists of frames that fit, with what is made of them, and `beside` bytes more; one at least.

    Reserved is what the list takes that was given last, which its taker empties.

    Raises:
        MemoryLimitError: not even one row fits.
    """
    held: list[Frame] = []
    size = rows = 0
    for chunk in chunks:
        count, more = device.row_count(chunk), max(device.nbytes(chunk), 1)
        length = max(min(count * (memory.room // _PIECES) // build_side_bytes(count, more), _MOST_ROWS), 1)
        for start in range(0, count, length):
            piece = device.slice(chunk, start, length)
            own, own_size = device.row_count(piece), device.nbytes(piece)
            full = rows + own > _MOST_ROWS
            if rows and (full or not memory.fits(beside + build_side_bytes(rows + own, size + own_size))):
                yield held
                held, size, rows = [], 0, 0
            held.append(piece)
            rows += own
            size += own_size
            memory.resize(beside + build_side_bytes(rows, size))
    yield held


def concatenate_columns(context: ExecutionContext[Frame], frames: Sequence[Frame], columns: int) -> Frame:
    """Rows of all frames, in order; where they are many, each of so many columns by another thread."""
    device = context.device

    def concatenate(column: int) -> Frame:
        return device.concatenate([device.select(frame, [column]) for frame in frames])

    alone = columns <= 1 or context.threads == 1 or not device.capabilities.on_host
    if alone or sum(map(device.row_count, frames)) < _SPREAD_ROWS:
        return device.concatenate(frames)
    with closing(ordered_map(context, concatenate, range(columns), looks_ahead=True)) as joined:
        return device.join_columns(list(joined))


def make_build_side(
    context: ExecutionContext[Frame],
    frames: Sequence[Frame],
    condition: JoinCondition,
    memory: Reservation,
    *,
    no_pairs: bool,
    encodes: bool = False,
) -> BuildSide[Frame]:
    """Rows, one frame at least, ready to be found; `no_pairs`: none will be; `encodes`: see `Join`."""
    device = context.device
    frame = device.concatenate(frames)
    rows, size = device.row_count(frame), device.nbytes(frame)
    if not condition.build_keys:
        memory.resize(build_side_bytes(rows, size) if condition.compared else size)
        return BuildSide(frame, AllPairs(device, 0 if no_pairs else rows), rows, has_nulls=False)
    keys = device.evaluate(condition.build_keys, frame)
    table = _make_table(context, keys, condition.nulls_equal)
    reserve_actual(memory, size + device.nbytes(keys) + table.nbytes)
    if encodes and rows <= _FEW_STRINGS:
        frame = device.dictionary_encode(frame)
    return BuildSide(frame, table, rows, has_nulls=False)


def _make_table(
    context: ExecutionContext[Frame], keys: Frame, nulls_equal: Sequence[bool]
) -> JoinTable[Frame]:
    """What finds rows."""
    device = context.device
    if not isinstance(device, DenseKeysDevice):
        return device.join_table(keys, nulls_equal)
    table: JoinTable[Frame] = device.join_table_of_owned(keys, nulls_equal)
    return table


def make_build_partitions(
    context: ExecutionContext[Frame],
    frames: list[Frame],
    condition: JoinCondition,
    memory: Reservation,
) -> list[BuildSide[Frame]]:
    """Many rows in partitions by the hash of their keys, made on all threads; the list is emptied."""
    device = context.device
    empty = device.slice(frames[0], 0, 0)

    def split(frame: Frame) -> Sequence[Frame]:
        keys = device.evaluate(condition.build_keys, frame)
        return device.partition(frame, keys, PARTITIONS, MEMORY_LEVEL)

    def build_partition(pieces: Sequence[Frame]) -> BuildSide[Frame]:
        rows = device.concatenate([empty, *pieces])
        keys = device.evaluate(condition.build_keys, rows)
        table = device.join_table(keys, condition.nulls_equal)
        return BuildSide(rows, table, device.row_count(rows), has_nulls=False)

    partitions: list[list[Frame]] = [[] for _ in range(PARTITIONS)]
    with closing(ordered_map(context, split, drain_list(frames), looks_ahead=True)) as pieces:
        for piece in pieces:
            for place, frame in zip(partitions, piece, strict=True):
                place.append(frame)
    with closing(ordered_map(context, build_partition, drain_list(partitions), looks_ahead=True)) as builds:
        found = list(builds)
    reserve_actual(memory, sum(device.nbytes(held.frame) + held.table.nbytes for held in found))
    return found


def make_existence_side(context: ExecutionContext[Frame], frames: Iterable[Frame]) -> BuildSide[Frame]:
    """For a join without keys that asks for no more: whether there is a row at all."""
    device = context.device
    some = any(device.row_count(frame) for frame in frames)
    row = device.slice(device.single_row(), 0, int(some))
    return BuildSide(row, AllPairs(device, int(some)), int(some), has_nulls=False)


def distinct_key_frames(
    context: ExecutionContext[Frame],
    frames: Iterable[Frame],
    fields: Sequence[Field],
    condition: JoinCondition,
    *,
    memory: Reservation,
    profile: OperatorProfile,
) -> Generator[Frame, None, None]:
    """Each key of some rows once."""
    device = context.device
    aggregation = device.aggregation(condition.build_keys, ())
    with closing(
        group_rows(context, frames, device.empty(fields), aggregation, memory=memory, profile=profile)
    ) as groups:
        yield from groups


class KeyFacts(Generic[Frame]):
    """What is known of keys, each of which came once.

    Attributes:
        rows: how many.
        has_nulls: whether one is null that equals nothing; known where there is one key.
    """

    def __init__(self, context: ExecutionContext[Frame], condition: JoinCondition) -> None:
        self._context = context
        self._condition = condition
        self.rows = 0
        self.has_nulls = False

    def note_keys(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The frames, counted; those without rows left out."""
        device, condition = self._context.device, self._condition
        for frame in frames:
            if not device.row_count(frame):
                continue
            self.rows += device.row_count(frame)
            if len(condition.build_keys) == 1 and not condition.nulls_equal[0]:
                nulls = BuildSide.null_rows(device, frame, condition.build_keys[0].type)
                self.has_nulls = self.has_nulls or bool(nulls.any())
            yield frame

    def make_build_side(self, frames: Sequence[Frame], memory: Reservation) -> BuildSide[Frame]:
        """Some of them, one frame at least, ready to be found."""
        device = self._context.device
        keys = device.concatenate(frames)
        table = _make_table(self._context, keys, self._condition.nulls_equal)
        reserve_actual(memory, device.nbytes(keys) + table.nbytes)
        return BuildSide(keys, table, self.rows, self.has_nulls)


def reserve_actual(memory: Reservation, size: int) -> None:
    """Hold what is there now; what was foreseen stays held where a small table took more than that."""
    memory.fits(size)
