"""Rows found by their keys with libcudf's hash join, and put together there; the host may ask for pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from numpy.typing import NDArray
from pylibcudf.join import inner_join
from pylibcudf.types import NullEquality, NullOrder, Order, TypeId

from bamquery.engine.cuda import transfer
from bamquery.engine.cuda.frames import CudaFrame, column_bytes, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels, viewed
from bamquery.plan.nodes import Field, JoinKind

Positions = NDArray[np.int64]
Answer = TypeVar("Answer")

_PORTION: Final = 1 << 20
"""Rows looked up at once."""
_BITS: Final = {TypeId.FLOAT32: plc.DataType(TypeId.INT32), TypeId.FLOAT64: INT64}
_PAIR: Final = (Field("position", pa.int32()), Field("found", pa.int32()))


class OnGpu(Protocol):
    """Runs work in a GPU's context, its failures in words."""

    def __call__(self, what: str, compute: Callable[[], Answer]) -> Answer:
        """What `compute` gives."""
        ...


class _Keys:
    """Key columns, such rows left out as have a null that equals nothing.

    Attributes:
        columns: with one NaN and one zero, floats as their bits.
        rows: how many are left.
        places: where each of them was; None: nothing was left out.
    """

    def __init__(
        self, kernels: Kernels, columns: Sequence[plc.Column], rows: int, nulls_equal: Sequence[bool]
    ) -> None:
        self.columns = [comparable(kernels, column) for column in columns]
        self.rows = rows
        self.places: plc.Column | None = None
        plain = [
            c for c, equal in zip(self.columns, nulls_equal, strict=True) if not equal and c.null_count()
        ]
        if plain:
            mask = kernels.is_valid(plain[0])
            for column in plain[1:]:
                mask = kernels.both(mask, kernels.is_valid(column))
            self.places, *self.columns = kernels.keep([kernels.positions(rows), *self.columns], mask)
            self.rows = self.places.size()

    def original(self, kernels: Kernels, positions: plc.Column) -> plc.Column:
        """Positions among the rows left, as positions among all."""
        return positions if self.places is None else kernels.gather([self.places], positions)[0]


class CudaJoinTable:
    """See `bamquery.engine.device.JoinTable`. libcudf hashes the prepared rows anew for each look-up."""

    def __init__(self, kernels: Kernels, on_gpu: OnGpu, keys: CudaFrame, nulls_equal: Sequence[bool]) -> None:
        self._kernels = kernels
        self._on_gpu = on_gpu
        self._nulls_equal = tuple(nulls_equal)
        self._held = on_gpu("a join", lambda: _Keys(kernels, keys.columns, keys.rows, self._nulls_equal))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(map(column_bytes, self._held.columns))

    def matches(self, keys: CudaFrame) -> Iterator[tuple[int, Positions, Positions]]:
        """Pairs of equal keys."""
        for start in range(0, max(keys.rows, 1), _PORTION):
            stop = min(start + _PORTION, keys.rows)
            positions, found = self._on_gpu("a join", lambda: self._found(keys, start, stop))  # noqa: B023
            yield stop, positions + start, found

    def joined(
        self, kind: JoinKind, frame: CudaFrame, keys: CudaFrame, held: CudaFrame
    ) -> Iterator[CudaFrame]:
        """What a frame's rows become; see `bamquery.engine.operators.join_device`."""
        kernels = self._kernels
        for start in range(0, max(keys.rows, 1), _PORTION):
            stop = min(start + _PORTION, keys.rows)

            def portion() -> CudaFrame:
                own, wanted = (_rows(kernels, side, start, stop) for side in (frame, keys))  # noqa: B023
                return self._joined(kind, own, wanted, held)

            yield self._on_gpu("a join", portion)

    def _joined(self, kind: JoinKind, rows: CudaFrame, keys: CudaFrame, held: CudaFrame) -> CudaFrame:
        kernels = self._kernels
        positions, found = self._pairs(keys, 0, rows.rows)
        if kind in ("semi", "anti"):
            chosen = _marked(kernels, positions, rows.rows)
            return kernels.kept(rows, chosen if kind == "semi" else kernels.invert(chosen))
        if kind == "left":
            alone = kernels.invert(_marked(kernels, positions, rows.rows))
            (lone,) = kernels.keep([kernels.positions(rows.rows)], alone)
            nowhere = kernels.repeated(kernels.number(held.rows, pa.int32()), lone.size())
            positions, found = kernels.joined([positions, lone]), kernels.joined([found, nowhere])
        order = plc.sorting.stable_sorted_order(
            plc.Table([positions, found]),
            [Order.ASCENDING] * 2,
            [NullOrder.AFTER] * 2,
            stream=kernels.stream,
            mr=kernels.memory,
        )
        positions, found = kernels.gather([positions, found], order)
        columns = [*_taken(kernels, rows, positions), *_taken(kernels, held, found)]
        return make_frame(columns, positions.size())

    def _found(self, keys: CudaFrame, start: int, stop: int) -> tuple[Positions, Positions]:
        pairs = self._pairs(keys, start, stop)
        session = self._kernels.session
        batch = transfer.to_arrow(session, make_frame(pairs, pairs[0].size()), _PAIR)
        positions, found = (_on_host(column) for column in batch.columns)
        order = np.argsort(positions, kind="stable")
        return positions[order], found[order]

    def _pairs(self, keys: CudaFrame, start: int, stop: int) -> tuple[plc.Column, plc.Column]:
        """Pairs in any order, as positions from `start` on and positions of prepared rows."""
        kernels = self._kernels
        columns = [kernels.cut(column, start, stop) for column in keys.columns]
        asked = _Keys(kernels, columns, stop - start, self._nulls_equal)
        if not asked.rows or not self._held.rows:
            nothing = kernels.nulls(0, pa.int32())
            return nothing, nothing
        left, right = inner_join(
            plc.Table(asked.columns),
            plc.Table(self._held.columns),
            NullEquality.EQUAL,
            stream=kernels.stream,
            mr=kernels.memory,
        )
        return asked.original(kernels, left), self._held.original(kernels, right)


def _marked(kernels: Kernels, positions: plc.Column, rows: int) -> plc.Column:
    """Which of the rows are at one of the positions."""
    nothing = kernels.repeated(kernels.truth(False), rows)
    if not positions.size():
        return nothing
    found = kernels.repeated(kernels.truth(True), positions.size())
    spread = plc.copying.scatter(
        plc.Table([found]), positions, plc.Table([nothing]), stream=kernels.stream, mr=kernels.memory
    )
    return spread.columns()[0]


def _rows(kernels: Kernels, frame: CudaFrame, start: int, stop: int) -> CudaFrame:
    return make_frame([kernels.cut(column, start, stop) for column in frame.columns], stop - start)


def _taken(kernels: Kernels, frame: CudaFrame, positions: plc.Column) -> list[plc.Column]:
    """Rows at positions, null beyond the last one."""
    if not frame.columns:
        return []
    if not frame.rows:
        return [
            plc.Column.all_null_like(c, positions.size(), stream=kernels.stream, mr=kernels.memory)
            for c in frame.columns
        ]
    return kernels.gather(frame.columns, positions, nullify=True)


def _on_host(column: pa.Array[Any]) -> Positions:
    return np.asarray(column).astype(np.int64)


def comparable(kernels: Kernels, column: plc.Column) -> plc.Column:
    """The column with one NaN and one zero, floats as their bits."""
    bits = _BITS.get(column.type().id())
    if bits is None:
        return column
    one = plc.replace.normalize_nans_and_zeros(column, stream=kernels.stream, mr=kernels.memory)
    return viewed(one, bits)
