"""What joins make of rows and their partners, on the GPU from keys to rows; the host knows only how many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.expressions import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.operators.join_device import DeviceJoin, several_rows

if TYPE_CHECKING:
    from bamquery.engine.cuda.join_table import CudaJoinTable, OnGpu

_INT32: Final = plc.DataType(TypeId.INT32)


class CudaJoinedRows:
    """See `bamquery.engine.operators.join_device.JoiningRows`."""

    def __init__(
        self, kernels: Kernels, on_gpu: OnGpu, table: CudaJoinTable, work: DeviceJoin[CudaFrame]
    ) -> None:
        self._kernels = kernels
        self._on_gpu = on_gpu
        self._table = table
        self._work = work
        self._found: plc.Column | None = None
        self._lock = Lock()

    def of(self, frame: CudaFrame, keys: CudaFrame) -> Iterator[CudaFrame]:
        """What a frame's rows become."""
        for start, stop in self._table.portions(keys):

            def portion() -> CudaFrame:
                rows, wanted = (self._kernels.between(side, start, stop) for side in (frame, keys))  # noqa: B023
                return self._joined(rows, wanted)

            yield self._on_gpu("a join", portion)

    def lone(self) -> CudaFrame:
        """Held rows that were not found."""
        held, found = self._work.held, self._found
        if found is None:
            return held
        return self._on_gpu("a join", lambda: self._kernels.kept(held, self._kernels.invert(found)))

    def _joined(self, rows: CudaFrame, keys: CudaFrame) -> CudaFrame:
        kernels, kind = self._kernels, self._work.kind
        positions, found = self._table.pairs(keys)
        positions, found, undecided = self._fulfilled(rows, positions, found)
        if kind in ("semi", "anti"):
            chosen = marked(kernels, positions, rows.rows)
            return kernels.kept(rows, chosen if kind == "semi" else kernels.invert(chosen))
        if kind == "mark":
            truth = marked(kernels, positions, rows.rows)
            return make_frame([*rows.columns, self._mark(truth, undecided, keys)], rows.rows)
        if kind in ("right", "full"):
            self._note(found)
        return self._paired(rows, positions, found)

    def _fulfilled(
        self, rows: CudaFrame, positions: plc.Column, found: plc.Column
    ) -> tuple[plc.Column, plc.Column, plc.Column | None]:
        """The pairs that fulfil the condition, and for a mark the probed rows for which it is null."""
        kernels, condition, held = self._kernels, self._work.condition, self._work.held
        if condition is None:
            return positions, found, None
        if not positions.size():
            return positions, found, positions
        mine = _taken(kernels, rows, condition.of_probe, positions)
        theirs = _taken(kernels, held, condition.of_build, found)
        pairs = make_frame([*mine, *theirs], positions.size())
        (truth,) = evaluate_columns(kernels, [condition.expression], pairs)
        undecided = None
        if self._work.kind == "mark":
            (undecided,) = kernels.keep([positions], kernels.is_null(truth))
        positions, found = kernels.keep([positions, found], truth)
        return positions, found, undecided

    def _mark(self, truth: plc.Column, undecided: plc.Column | None, keys: CudaFrame) -> plc.Column:
        """The column, null where a row has no partner and may have one."""
        kernels, which = self._kernels, self._work.open_marks
        lone = kernels.invert(truth)
        if undecided is not None:
            lone = kernels.both(lone, marked(kernels, undecided, truth.size()))
        elif which == "none":
            return truth
        elif which == "null keys":
            (key,) = keys.columns
            lone = kernels.both(lone, kernels.is_null(key))
        return kernels.null_where(lone, truth, pa.bool_())

    def _note(self, found: plc.Column) -> None:
        """Held rows that are no longer lone."""
        kernels, rows = self._kernels, self._work.held.rows
        with self._lock:  # or another thread's would be lost
            self._found = marked(kernels, found, rows, self._found)

    def _paired(self, rows: CudaFrame, positions: plc.Column, found: plc.Column) -> CudaFrame:
        """Both sides' columns, in order; rows without a partner beside nulls if the kind wants them.

        Raises:
            ExecutionError: a row that may have one partner has several.
        """
        kernels, held, kind = self._kernels, self._work.held, self._work.kind
        beside_nulls = 0
        if kind in ("left", "full", "single"):
            alone = kernels.invert(marked(kernels, positions, rows.rows))
            (lone,) = kernels.keep([kernels.positions(rows.rows)], alone)
            if kind == "single" and lone.size() + positions.size() > rows.rows:
                raise several_rows()
            beside_nulls = lone.size()
            nowhere = kernels.repeated(kernels.number(held.rows, pa.int32()), beside_nulls)
            positions, found = kernels.joined([positions, lone]), kernels.joined([found, nowhere])
        positions, found = in_order(kernels, positions, found)
        mine = _taken(kernels, rows, range(len(rows.columns)), positions)
        theirs = _taken(kernels, held, range(len(held.columns)), found, nullify=beside_nulls > 0)
        return make_frame([*mine, *theirs], positions.size())


def in_order(kernels: Kernels, positions: plc.Column, found: plc.Column) -> tuple[plc.Column, plc.Column]:
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


def marked(
    kernels: Kernels, positions: plc.Column, rows: int, before: plc.Column | None = None
) -> plc.Column:
    """For each of so many rows whether it is at one of the positions, or was marked before."""
    flags = kernels.repeated(kernels.truth(False), rows) if before is None else before
    if not positions.size():
        return flags
    true = kernels.repeated(kernels.truth(True), positions.size())
    return kernels.spread(true, positions, flags)


def _taken(
    kernels: Kernels,
    frame: CudaFrame,
    columns: Sequence[int],
    positions: plc.Column,
    *,
    nullify: bool = False,
) -> list[plc.Column]:
    """Some columns' rows at positions; null beyond the last one, if `nullify`."""
    chosen = [frame.columns[index] for index in columns]
    if not chosen:
        return []
    if not frame.rows:
        return [
            plc.Column.all_null_like(c, positions.size(), stream=kernels.stream, mr=kernels.memory)
            for c in chosen
        ]
    return kernels.gather(chosen, positions, nullify=nullify)
