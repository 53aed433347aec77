"""What joins make of rows and their partners, on the GPU from keys to rows; the host knows only how many."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.portions import (
    even_ends,
    fitting_ends,
    is_string,
    lengths_at,
    longest,
    portion_bytes,
    row_width,
    string_lengths,
)
from bamquery.engine.cuda.vectors import Vector
from bamquery.engine.operators.join.device_join import DeviceJoin, several_rows_error
from bamquery.statement_context.cancellation import check_cancelled

if TYPE_CHECKING:
    from bamquery.engine.cuda.keys.join_table import CudaJoinTable, RunOnGpu

_INT32: Final = plc.DataType(TypeId.INT32)


class CudaJoinProbe:
    """See `bamquery.engine.operators.join.device_join.DeviceProbe`."""

    def __init__(
        self, kernels: Kernels, on_gpu: RunOnGpu, table: CudaJoinTable, work: DeviceJoin[CudaFrame]
    ) -> None:
        self._kernels = kernels
        self._on_gpu = on_gpu
        self._table = table
        self._work = work
        self._copies = _Copies(kernels, work.build, range(len(work.build.columns)))
        read = () if work.condition is None else work.condition.build_columns
        self._read = _Copies(kernels, work.build, read)
        self._portion = portion_bytes(kernels)
        self._found: plc.Column | None = None
        self._lock = Lock()

    def probe(self, frame: CudaFrame, keys: CudaFrame) -> Iterator[CudaFrame]:
        """What a frame's rows become."""
        for start, stop in self._table.portions(keys):
            yield from self._probe_rows(*(self._slice_rows(side, start, stop) for side in (frame, keys)))

    def unmatched_rows(self) -> CudaFrame:
        """Build rows that were not found."""
        build, found = self._work.build, self._found
        if found is None:
            return build
        return self._on_gpu("a join", lambda: self._kernels.filter_frame(build, self._kernels.invert(found)))

    def _slice_rows(self, frame: CudaFrame, start: int, stop: int) -> CudaFrame:
        return self._on_gpu("a join", lambda: self._kernels.slice_frame(frame, start, stop))

    def _probe_rows(self, rows: CudaFrame, keys: CudaFrame) -> Iterator[CudaFrame]:
        """What becomes of rows that are looked up at once."""
        pairs = self._on_gpu("a join", lambda: self._pairs(rows, keys))
        if self._work.kind in ("semi", "anti", "mark"):
            yield self._on_gpu("a join", lambda: self._rows_by_partner(rows, keys, pairs))
            return
        both = self._on_gpu("a join", lambda: self._side_by_side(rows, pairs))
        begin = 0
        for end in both.ends:
            yield self._on_gpu("a join", lambda: both.rows_of_pairs(begin, end))  # noqa: B023
            begin = end

    def _pairs(self, rows: CudaFrame, keys: CudaFrame) -> _Pairs:
        """All of them that fulfil the condition."""
        pairs = self._filter_pairs(rows, *self._table.pairs(keys))
        if self._work.kind in ("right", "full"):
            self._note_matches(pairs.found)
        return pairs

    def _rows_by_partner(self, rows: CudaFrame, keys: CudaFrame, pairs: _Pairs) -> CudaFrame:
        """Rows with a partner, or without; all rows and a mark."""
        kernels, kind = self._kernels, self._work.kind
        truth = mark_rows(kernels, pairs.positions, rows.rows)
        if kind == "mark":
            return make_frame([*rows.columns, self._mark(truth, pairs.undecided, keys)], rows.rows)
        return kernels.filter_frame(rows, truth if kind == "semi" else kernels.invert(truth))

    def _filter_pairs(self, rows: CudaFrame, positions: plc.Column, found: plc.Column) -> _Pairs:
        """The pairs that fulfil the condition, and for a mark the probe rows for which it is null."""
        kernels, condition = self._kernels, self._work.condition
        if condition is None:
            return _Pairs(positions, found)
        if not positions.size():
            return _Pairs(positions, found, positions)
        mine = _Copies(kernels, rows, condition.probe_columns)
        both = _SideBySide(kernels, (mine, positions), (self._read, found), self._portion)
        kept: list[list[plc.Column]] = []
        unknown: list[plc.Column] = []
        begin = 0
        for end in both.ends:
            check_cancelled()
            (truth,) = evaluate_columns(kernels, [condition.expression], both.rows_of_pairs(begin, end))
            pairs = [kernels.slice_column(column, begin, end) for column in (positions, found)]
            if self._work.kind == "mark":
                unknown += kernels.keep(pairs[:1], kernels.is_null(truth))
            kept.append(kernels.keep(pairs, truth))
            begin = end
        positions, found = (kernels.concatenate(columns) for columns in zip(*kept, strict=True))
        return _Pairs(positions, found, kernels.concatenate(unknown) if unknown else None)

    def _mark(self, truth: plc.Column, undecided: plc.Column | None, keys: CudaFrame) -> plc.Column:
        """The column, null where a row has no partner and may have one."""
        kernels, which = self._kernels, self._work.null_marks
        unmatched = kernels.invert(truth)
        if undecided is not None:
            unmatched = kernels.logical_and(unmatched, mark_rows(kernels, undecided, truth.size()))
        elif which == "none":
            return truth
        elif which == "null keys":
            (key,) = keys.columns
            unmatched = kernels.logical_and(unmatched, kernels.is_null(key))
        return kernels.null_where(unmatched, truth, pa.bool_())

    def _note_matches(self, found: plc.Column) -> None:
        """Build rows that are no longer unmatched."""
        kernels, rows = self._kernels, self._work.build.rows
        with self._lock:  # or another thread's would be lost
            self._found = mark_rows(kernels, found, rows, self._found)

    def _side_by_side(self, rows: CudaFrame, pairs: _Pairs) -> _SideBySide:
        """Both sides' columns, in order; rows without a partner beside nulls if the kind wants them.

        Raises:
            ExecutionError: a row that may have one partner has several.
        """
        kernels, build, kind = self._kernels, self._work.build, self._work.kind
        positions, found, beside_nulls = pairs.positions, pairs.found, 0
        if kind in ("left", "full", "single"):
            alone = kernels.invert(mark_rows(kernels, positions, rows.rows))
            (unmatched,) = kernels.keep([kernels.positions(rows.rows)], alone)
            if kind == "single" and unmatched.size() + positions.size() > rows.rows:
                raise several_rows_error()
            beside_nulls = unmatched.size()
            nowhere = kernels.repeat_scalar(kernels.number(build.rows, pa.int32()), beside_nulls)
            positions, found = (
                kernels.concatenate([positions, unmatched]),
                kernels.concatenate([found, nowhere]),
            )
        positions, found = sort_pairs(kernels, positions, found)
        mine = _Copies(kernels, rows, range(len(rows.columns)))
        return _SideBySide(
            kernels,
            (mine, positions),
            (self._copies, found),
            self._portion,
            nullify=beside_nulls > 0,
        )


@dataclass(frozen=True)
class _Pairs:
    """Probe rows and their partners, in any order.

    Attributes:
        positions, found: int32, of probe and of build rows.
        undecided: for a mark with a condition, probe rows for which it is null.
    """

    positions: plc.Column
    found: plc.Column
    undecided: plc.Column | None = None


class _Copies:
    """Some columns of a frame, of whose rows copies will be made, and what these take."""

    def __init__(self, kernels: Kernels, frame: CudaFrame, columns: Sequence[int]) -> None:
        self._kernels = kernels
        self._frame = frame
        self._columns = [frame.columns[index] for index in columns]
        self.width = row_width(self._columns)

    @property
    def has_strings(self) -> bool:
        """Whether rows differ in what they take."""
        return self._frame.rows > 0 and any(map(is_string, self._columns))

    @functools.cached_property
    def longest(self) -> int:
        """Bytes of the strings of a row at most; the host waits."""
        return longest(self._kernels, self._lengths)

    def lengths(self, positions: plc.Column) -> Vector:
        """Bytes of the strings of rows; none of those beyond the last one."""
        if self._lengths is None:
            return Vector.full(self._kernels, 0, positions.size())
        return lengths_at(self._kernels, self._lengths, positions)

    def take_rows(self, positions: plc.Column, *, nullify: bool) -> list[plc.Column]:
        """The columns' rows at positions; null beyond the last one, if `nullify`."""
        kernels = self._kernels
        if not self._columns:
            return []
        if not self._frame.rows:
            return [
                plc.Column.all_null_like(c, positions.size(), stream=kernels.stream, mr=kernels.memory)
                for c in self._columns
            ]
        return kernels.gather(self._columns, positions, nullify=nullify)

    @functools.cached_property
    def _lengths(self) -> Vector | None:
        return string_lengths(self._kernels, self._columns)


class _SideBySide:
    """Pairs of rows of two sides, of which some at a time are put together.

    `nullify`: rows of the right side beyond its last one are nulls.

    Attributes:
        ends: where the portions end that take `most` bytes and a pair more at most; none is empty but the
            only one.
    """

    def __init__(
        self,
        kernels: Kernels,
        left: tuple[_Copies, plc.Column],
        right: tuple[_Copies, plc.Column],
        most: int,
        *,
        nullify: bool = False,
    ) -> None:
        self._kernels = kernels
        self._sides = ((*left, False), (*right, nullify))
        (mine, positions), (theirs, found) = left, right
        count, width = positions.size(), mine.width + theirs.width
        if not (mine.has_strings or theirs.has_strings):
            self.ends = even_ends(count, width, most)
        elif count * (width + mine.longest + theirs.longest) <= most:
            self.ends = [count]
        else:
            sizes = mine.lengths(positions) + theirs.lengths(found) + width
            self.ends = fitting_ends(kernels, sizes, most)

    def rows_of_pairs(self, begin: int, end: int) -> CudaFrame:
        """The columns of both for some pairs."""
        columns: list[plc.Column] = []
        for side, places, nullify in self._sides:
            columns += side.take_rows(self._kernels.slice_column(places, begin, end), nullify=nullify)
        return make_frame(columns, end - begin)


def sort_pairs(kernels: Kernels, positions: plc.Column, found: plc.Column) -> tuple[plc.Column, plc.Column]:
    """Pairs by their first, then by their second number; int32, none negative.

    Both are one int64 while they are sorted: libcudf sorts one column of numbers by radix, several by
    comparisons.
    """
    if positions.size() < 2:
        return positions, found
    half = kernels.number(32)
    high = kernels.binary(BinaryOperator.SHIFT_LEFT, kernels.convert(positions, INT64), half, INT64)
    both = kernels.binary(BinaryOperator.ADD, high, kernels.convert(found, INT64), INT64)
    table = plc.sorting.sort(
        plc.Table([both]), [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    (both,) = table.columns()
    high = kernels.binary(BinaryOperator.SHIFT_RIGHT, both, half, INT64)
    low = kernels.binary(BinaryOperator.BITWISE_AND, both, kernels.number(2**32 - 1), INT64)
    return kernels.convert(high, _INT32), kernels.convert(low, _INT32)


def mark_rows(
    kernels: Kernels, positions: plc.Column, rows: int, before: plc.Column | None = None
) -> plc.Column:
    """For each of so many rows whether it is at one of the positions, or was marked before."""
    flags = kernels.repeat_scalar(kernels.truth(False), rows) if before is None else before
    if not positions.size():
        return flags
    true = kernels.repeat_scalar(kernels.truth(True), positions.size())
    return kernels.scatter(true, positions, flags)
