"""Which rows of two sides of a join belong together: by their keys, or all with all, and by a condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame, HostPositions, JoinTable
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.plan.expressions import Call, Expression, Literal, referenced_columns
from bamquery.plan.nodes import JoinKind
from bamquery.plan.rewriting import renumber

_Keys_contra = TypeVar("_Keys_contra", contravariant=True)

_PORTION: Final = 1 << 18
"""Pairs that are dealt with at once where every row meets every row."""


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """What makes a pair of a probe row and a build row.

    Attributes:
        probe_keys: over the probe side.
        build_keys: over the build side, as many and of the same types.
        nulls_equal: for each key, whether null equals null.
        residual: over the columns of the probe side, then of the build side; None: keys are all.
        compared: for a mark, what the residual says where it says of several columns that they are equal:
            pairs of columns over the probe and over the build side.
    """

    probe_keys: tuple[Expression, ...] = ()
    build_keys: tuple[Expression, ...] = ()
    nulls_equal: tuple[bool, ...] = ()
    residual: Expression | None = None
    compared: tuple[tuple[Expression, Expression], ...] = ()

    @property
    def is_never_true(self) -> bool:
        """Whether it is known that no pair fulfils it."""
        return isinstance(self.residual, Literal) and self.residual.value.as_py() is not True

    def only_keys_matter(self, kind: JoinKind) -> bool:
        """Whether nothing of the build rows matters but which keys there are."""
        return kind in ("semi", "anti", "mark") and self.residual is None


@runtime_checkable
class MarkingTable(Protocol[_Keys_contra]):
    """A join table that need not find partners to know that there are some."""

    def contained(self, keys: _Keys_contra) -> NDArray[np.bool_] | None:
        """Whether each row's keys are some of the table's; None where pairs tell it only."""
        ...


@dataclass(frozen=True, slots=True)
class PairCondition:
    """A condition on pairs of rows, over no more columns than it reads.

    Attributes:
        expression: over the columns `probe_columns` and then `build_columns`, numbered from 0 on.
        of_probe: columns of the probe side.
        of_build: columns of the build side.
    """

    expression: Expression
    probe_columns: tuple[int, ...]
    build_columns: tuple[int, ...]

    @staticmethod
    def from_residual(residual: Expression, probe_columns: int) -> PairCondition:
        """The same as a condition over all columns of the probe side, then of the build side."""
        read = sorted(referenced_columns(residual))
        of_probe = tuple(index for index in read if index < probe_columns)
        of_build = tuple(index - probe_columns for index in read if index >= probe_columns)
        return PairCondition(
            renumber(residual, {old: new for new, old in enumerate(read)}), of_probe, of_build
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of some consecutive probe rows, all there are of them.

    Attributes:
        start, stop: those rows, the last one excluded.
        positions: probe rows, ascending.
        found: build rows.
        undecided: probe rows in some pair for which the residual is null; None where nobody asked.
    """

    start: int
    stop: int
    probe_positions: HostPositions
    build_positions: HostPositions
    undecided: HostPositions | None = None


class AllPairs(Generic[Frame]):
    """Every row with each of `rows` build rows: a join table without keys."""

    def __init__(self, device: Device[Frame], rows: int) -> None:
        self._device = device
        self._rows = rows
        self.nbytes: Final = 0

    def matches(self, keys: Frame) -> Iterator[tuple[int, HostPositions, HostPositions]]:
        """All pairs; see `bamquery.engine.device.JoinTable`."""
        count = self._device.row_count(keys)
        step = max(_PORTION // max(self._rows, 1), 1)
        build = np.arange(self._rows)
        for start in range(0, count, step):
            stop = min(start + step, count)
            yield stop, np.repeat(np.arange(start, stop), self._rows), np.tile(build, stop - start)


class JoinPairFinder(Generic[Frame]):
    """Finds the pairs of frames with the build rows; thread-safe."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        table: JoinTable[Frame],
        build: Frame,
        condition: JoinCondition,
        probe_columns: int,
        *,
        wants_undecided: bool,
    ) -> None:
        self._context = context
        self._table = table
        self._keys = condition.probe_keys
        self._wants_undecided = wants_undecided
        residual = condition.residual
        self._condition = None if residual is None else PairCondition.from_residual(residual, probe_columns)
        of_build = () if self._condition is None else self._condition.build_columns
        self._read = CopiedRows(context.device, context.device.select(build, of_build))

    def pairs(self, frame: Frame) -> Iterator[Pairs]:
        """All pairs of the frame's rows, in portions; every row is in one portion, also without a pair.

        Raises:
            ExecutionError: a key or the condition cannot be computed.
        """
        device = self._context.device
        keys = device.evaluate(self._keys, frame) if self._keys else frame
        start = 0
        probed: CopiedRows[Frame] | None = None
        for stop, positions, found in self._table.matches(keys):
            self._context.check_cancelled()
            all_pairs = Pairs(start, stop, positions, found, self._no_undecided())
            condition = self._condition if len(positions) else None
            if condition is None:
                yield all_pairs
            else:
                probed = probed or CopiedRows(device, device.select(frame, condition.probe_columns))
                yield self._filter_pairs(probed, all_pairs, condition)
            start = stop

    def _no_undecided(self) -> HostPositions | None:
        return np.zeros(0, np.int64) if self._wants_undecided else None

    def _filter_pairs(self, probed: CopiedRows[Frame], pairs: Pairs, condition: PairCondition) -> Pairs:
        """The pairs that fulfil the condition, and if wanted the rows for which it is null."""
        sides = ((probed, pairs.probe_positions), (self._read, pairs.build_positions))
        kept: list[HostPositions] = []
        unknown: list[HostPositions] = []
        for some in portions_within(sides, self._context.string_limits.piece):
            self._context.check_cancelled()
            true, null = self._true_and_null(probed, pairs, some, condition)
            kept.append(true + some.start if some.start else true)
            unknown.append(null + some.start)
        chosen = kept[0] if len(kept) == 1 else np.concatenate(kept)
        undecided = (
            np.unique(pairs.probe_positions[np.concatenate(unknown)]) if self._wants_undecided else None
        )
        return Pairs(
            pairs.start, pairs.stop, pairs.probe_positions[chosen], pairs.build_positions[chosen], undecided
        )

    def _true_and_null(
        self, probed: CopiedRows[Frame], pairs: Pairs, some: slice, condition: PairCondition
    ) -> tuple[HostPositions, HostPositions]:
        """Places of some pairs for which the condition is true, and if that is wanted of those where null."""
        device = self._context.device
        sides: list[Frame] = []
        if condition.probe_columns or not condition.build_columns:
            sides.append(device.take(probed.frame, pairs.probe_positions[some]))
        if condition.build_columns:
            sides.append(device.take(self._read.frame, pairs.build_positions[some]))
        rows = device.join_columns(sides)
        true = device.read_positions(device.matching_positions(condition.expression, rows))
        if not self._wants_undecided:
            return true, true[:0]
        null = Call("is_null", (condition.expression,), pa.bool_())
        return true, device.read_positions(device.matching_positions(null, rows))


def null_columns(device: Device[Frame], like: Frame, rows: int) -> Frame:
    """That many rows of nulls, with the columns of a frame."""
    return device.take_or_null(like, np.full(rows, -1, np.int64))


def select_positions(start: int, stop: int, chosen: HostPositions, *, negate: bool = False) -> HostPositions:
    """The rows from `start` to before `stop` that are, or are not, among those chosen."""
    mask = np.zeros(stop - start, np.bool_)
    mask[chosen - start] = True
    return np.flatnonzero(~mask if negate else mask) + start


def truth_column(device: Device[Frame], truth: NDArray[np.bool_], unknown: NDArray[np.bool_]) -> Frame:
    """A frame of one boolean column, null where unknown."""
    known = pa.py_buffer(np.packbits(~unknown, bitorder="little").data) if unknown.any() else None
    bits = pa.py_buffer(np.packbits(truth, bitorder="little").data)
    column: Any = pa.Array.from_buffers(pa.bool_(), len(truth), [known, bits])
    return device.from_arrow(pa.RecordBatch.from_arrays([column], names=["mark"]))
