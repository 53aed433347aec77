"""What joins make of rows and their partners, on the GPU from keys to rows; the host knows only how many."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.cache.late_columns import Held, column_of, slice_rows, take_rows
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.portions import (
    even_ends,
    fitting_ends,
    is_string,
    lengths_at,
    longest,
    portion_bytes,
    row_width,
    string_bytes,
    string_lengths,
)
from bamquery.engine.cuda.keys.row_pairs import RowFlags, RowPairs, pairs_and_rows_alone
from bamquery.engine.cuda.vectors import Vector
from bamquery.engine.operators.join.device_join import DeviceJoin, several_rows_error
from bamquery.statement_context.cancellation import check_cancelled

if TYPE_CHECKING:
    from bamquery.engine.cuda.keys.join_table import CudaJoinTable, RunOnGpu, SelectRows

_ALONE: Final = ("left", "full", "single")
"""Kinds that have rows without a partner among their pairs."""
_NO_PAIRS: Final = ("semi", "anti", "mark")


class CudaJoinProbe:
    """See `bamquery.engine.operators.join.device_join.DeviceProbe`."""

    def __init__(
        self,
        kernels: Kernels,
        on_gpu: RunOnGpu,
        select: SelectRows,
        table: CudaJoinTable,
        work: DeviceJoin[CudaFrame],
    ) -> None:
        self._kernels = kernels
        self._select = select
        self._on_gpu = on_gpu
        self._table = table
        self._work = work
        self._copies = _Copies(kernels, work.build, range(len(work.build.held)))
        read = () if work.condition is None else work.condition.build_columns
        self._read = _Copies(kernels, work.build, read)
        self._portion = portion_bytes(kernels)
        self._unmatched: RowFlags | None = None
        self._lock = Lock()

    def probe(self, frame: CudaFrame, keys: CudaFrame) -> Iterator[CudaFrame]:
        """What a frame's rows become."""
        kind, condition, table = self._work.kind, self._work.condition, self._table
        if condition is None and kind in _NO_PAIRS:
            for start, stop in table.portions(frame.rows):
                rows, own = (self._slice_rows(side, start, stop) for side in (frame, keys))
                yield self._on_gpu("a join", lambda: self._rows_by_keys(rows, own))  # noqa: B023
            return
        for pairs in table.pairs(keys, outer=condition is None and kind in _ALONE):
            rows = self._slice_rows(frame, pairs.start, pairs.stop)
            if kind in _NO_PAIRS:
                yield self._on_gpu("a join", lambda: self._rows_by_condition(rows, pairs))  # noqa: B023
                continue
            both = self._on_gpu("a join", lambda: self._side_by_side(rows, pairs))  # noqa: B023
            begin = 0
            for end in both.ends:
                yield self._on_gpu("a join", lambda: both.rows_of_pairs(begin, end))  # noqa: B023
                begin = end

    def unmatched_rows(self) -> CudaFrame:
        """Build rows that were not found."""
        build, unmatched = self._work.build, self._unmatched
        if unmatched is None:
            return build
        return self._on_gpu("a join", lambda: self._kernels.filter_frame(build, unmatched.column()))

    def _slice_rows(self, frame: CudaFrame, start: int, stop: int) -> CudaFrame:
        if (start, stop) == (0, frame.rows):
            return frame
        return self._on_gpu("a join", lambda: self._kernels.slice_frame(frame, start, stop))

    def _rows_by_keys(self, rows: CudaFrame, keys: CudaFrame) -> CudaFrame:
        """Rows with a partner, or without; all rows and a mark."""
        kernels, kind = self._kernels, self._work.kind
        if kind == "mark":
            truth = self._table.has_rows(keys)
            return make_frame([*rows.held, self._mark_by_keys(truth, keys)], rows.rows)
        positions = self._table.select(keys, alone=kind == "anti")
        if positions is None:
            return rows
        return make_frame(take_rows(kernels, rows.held, positions), positions.size())

    def _rows_by_condition(self, rows: CudaFrame, equal: RowPairs) -> CudaFrame:
        """The same where pairs of equal keys must fulfil the condition, too."""
        kernels, kind = self._kernels, self._work.kind
        pairs = self._filter_pairs(rows, equal)
        truth = self._flag_rows(pairs.positions, rows.rows)
        if kind != "mark":
            return kernels.filter_frame(rows, truth if kind == "semi" else kernels.invert(truth))
        undecided = self._flag_rows(pairs.undecided, rows.rows)
        null = kernels.logical_and(kernels.invert(truth), undecided)
        return make_frame([*rows.held, kernels.null_where(null, truth, pa.bool_())], rows.rows)

    def _mark_by_keys(self, truth: plc.Column, keys: CudaFrame) -> plc.Column:
        """The column, null where a row has no partner and may have one."""
        kernels, which = self._kernels, self._work.null_marks
        if which == "none" or (which == "null keys" and not keys.columns[0].null_count()):
            return truth
        null = kernels.invert(truth)
        if which == "null keys":
            (key,) = keys.columns
            null = kernels.logical_and(null, kernels.is_null(key))
        return kernels.null_where(null, truth, pa.bool_())

    def _flag_rows(self, positions: plc.Column, rows: int) -> plc.Column:
        flags = RowFlags(self._kernels, rows, value=False)
        flags.write(positions, value=True)
        return flags.column()

    def _filter_pairs(self, rows: CudaFrame, pairs: RowPairs) -> _FilteredPairs:
        """The pairs that fulfil the condition, and for a mark the probe rows for which it is null."""
        kernels, condition = self._kernels, self._work.condition
        assert condition is not None
        found = pairs.found
        places = kernels.positions(rows.rows) if pairs.positions is None else pairs.positions
        if not found.size():
            return _FilteredPairs(places, found, places)
        mine = _Copies(kernels, rows, condition.probe_columns)
        both = _SideBySide(
            *(kernels, (mine, pairs.positions), (self._read, found), self._portion),
            distinct=self._table.is_unique,
        )
        kept: list[list[plc.Column]] = []
        unknown: list[plc.Column] = []
        begin = 0
        for end in both.ends:
            check_cancelled()
            portion = both.rows_of_pairs(begin, end)
            some = [kernels.slice_column(column, begin, end) for column in (places, found)]
            begin = end
            if self._work.kind != "mark":
                kept.append(kernels.gather(some, self._select(condition.expression, portion).column))
                continue
            (truth,) = evaluate_columns(kernels, [condition.expression], portion)
            unknown += kernels.keep(some[:1], kernels.is_null(truth))
            kept.append(kernels.keep(some, truth))
        places, found = (kernels.concatenate(columns) for columns in zip(*kept, strict=True))
        return _FilteredPairs(places, found, kernels.concatenate(unknown) if unknown else places)

    def _note_matches(self, found: plc.Column) -> None:
        """Build rows that are no longer unmatched."""
        with self._lock:
            if self._unmatched is None:
                self._unmatched = RowFlags(self._kernels, self._work.build.rows, value=True)
            self._unmatched.write(found, value=False)

    def _side_by_side(self, rows: CudaFrame, equal: RowPairs) -> _SideBySide:
        """Both sides' columns, in order; rows without a partner beside nulls if the kind wants them.

        Raises:
            ExecutionError: a row that may have one partner has several.
        """
        kernels, work = self._kernels, self._work
        positions, found = equal.positions, equal.found
        if work.condition is not None:
            kept = self._filter_pairs(rows, equal)
            positions, found = kept.positions, kept.found
            if work.kind in _ALONE:
                all_rows = pairs_and_rows_alone(kernels, positions, found, rows.rows, work.build.rows)
                pairs = all_rows.pairs(0, rows.rows, 0, all_rows.total)
                positions, found = pairs.positions, pairs.found
        if work.kind == "single" and found.size() > rows.rows:
            raise several_rows_error()
        if work.kind in ("right", "full"):
            self._note_matches(found)
        mine = _Copies(kernels, rows, range(len(rows.held)))
        return _SideBySide(
            *(kernels, (mine, positions), (self._copies, found), self._portion),
            distinct=self._table.is_unique,
            nullify=work.kind in _ALONE,
        )


@dataclass(frozen=True)
class _FilteredPairs:
    """Pairs in the order of the probe rows, and then of the build rows.

    Attributes:
        positions, found: int32, of probe and of build rows.
        undecided: for a mark, probe rows for which the condition is null.
    """

    positions: plc.Column
    found: plc.Column
    undecided: plc.Column


class _Copies:
    """Some columns of a frame, of whose rows copies will be made, and what these take."""

    def __init__(self, kernels: Kernels, frame: CudaFrame, columns: Sequence[int]) -> None:
        self._kernels = kernels
        self._frame = frame
        self._columns = [frame.held[index] for index in columns]
        self.width = row_width(self._columns)

    @property
    def has_strings(self) -> bool:
        """Whether rows differ in what they take."""
        return self._frame.rows > 0 and any(map(is_string, self._columns))

    @functools.cached_property
    def longest(self) -> int:
        """Bytes of the strings of a row at most; the host waits."""
        return longest(self._kernels, self._lengths)

    @property
    def string_bytes(self) -> int:
        """Bytes of the strings of all rows at most."""
        return string_bytes(self._columns)

    def lengths(self, positions: plc.Column | None, count: int) -> Vector:
        """Bytes of the strings of so many rows, of all if None; none of those beyond the last one."""
        if self._lengths is None:
            return Vector.full(self._kernels, 0, count)
        return self._lengths if positions is None else lengths_at(self._kernels, self._lengths, positions)

    def slice_rows(self, begin: int, end: int) -> list[Held]:
        """The columns' rows from `begin` to before `end`, not copied."""
        return slice_rows(self._kernels, self._columns, begin, end)

    def take_rows(self, positions: plc.Column, *, nullify: bool) -> list[Held]:
        """The columns' rows at positions; null beyond the last one, if `nullify`."""
        kernels = self._kernels
        if not self._columns:
            return []
        if not self._frame.rows:
            return [
                plc.Column.all_null_like(
                    column_of(c), positions.size(), stream=kernels.stream, mr=kernels.memory
                )
                for c in self._columns
            ]
        return take_rows(kernels, self._columns, positions, nullify=nullify)

    @functools.cached_property
    def _lengths(self) -> Vector | None:
        return string_lengths(self._kernels, self._columns)


class _SideBySide:
    """Pairs of rows of two sides, of which some at a time are put together.

    The left side's positions may be None: its rows come once each, as they are, and need no copy. `distinct`:
    no row of it comes twice. `nullify`: rows of the right side beyond its last one are nulls.

    Attributes:
        ends: where the portions end that take `most` bytes and a pair more at most; none is empty but the
            only one.
    """

    def __init__(
        self,
        kernels: Kernels,
        left: tuple[_Copies, plc.Column | None],
        right: tuple[_Copies, plc.Column],
        most: int,
        *,
        distinct: bool,
        nullify: bool = False,
    ) -> None:
        self._kernels = kernels
        self._left, self._right = left, right
        self._nullify = nullify
        (mine, positions), (theirs, found) = left, right
        count, width = found.size(), mine.width + theirs.width
        if not (mine.has_strings or theirs.has_strings):
            self.ends = even_ends(count, width, most)
            return
        texts = mine.string_bytes if distinct or positions is None else count * mine.longest
        if count * (width + theirs.longest) + texts <= most:
            self.ends = [count]
        else:
            sizes = mine.lengths(positions, count) + theirs.lengths(found, count) + width
            self.ends = fitting_ends(kernels, sizes, most)

    def rows_of_pairs(self, begin: int, end: int) -> CudaFrame:
        """The columns of both for some pairs."""
        kernels = self._kernels
        (mine, positions), (theirs, found) = self._left, self._right
        if positions is None:
            columns = mine.slice_rows(begin, end)
        else:
            columns = mine.take_rows(kernels.slice_column(positions, begin, end), nullify=False)
        partners = kernels.slice_column(found, begin, end)
        return make_frame([*columns, *theirs.take_rows(partners, nullify=self._nullify)], end - begin)
