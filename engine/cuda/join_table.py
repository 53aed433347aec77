"""Rows found by their keys with libcudf's hash join; the host may ask for pairs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from numpy.typing import NDArray
from pylibcudf.groupby import GroupBy, GroupByRequest
from pylibcudf.join import inner_join
from pylibcudf.types import NullEquality, NullPolicy, TypeId

from bamquery.engine.cuda import transfer
from bamquery.engine.cuda.frames import CudaFrame, column_bytes, make_frame
from bamquery.engine.cuda.joined_rows import CudaJoinedRows, in_order
from bamquery.engine.cuda.kernels import INT64, Kernels, viewed
from bamquery.engine.operators.join_device import DeviceJoin
from bamquery.plan.nodes import Field

Positions = NDArray[np.int64]
Answer = TypeVar("Answer")

_PORTION: Final = 1 << 20
"""Rows looked up at once, where few are held or a key has many of them."""
_LARGEST: Final = 1 << 26
"""Rows looked up at once at most, and pairs of them where that leaves a portion."""
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
        for start, stop in self.portions(keys.rows):
            positions, found = self._on_gpu(
                "a join",
                lambda: self._on_host(self._kernels.between(keys, start, stop)),  # noqa: B023
            )
            yield stop, positions + start, found

    def joining(self, work: DeviceJoin[CudaFrame]) -> CudaJoinedRows:
        """A join with the rows; see `bamquery.engine.operators.join_device`."""
        return CudaJoinedRows(self._kernels, self._on_gpu, self, work)

    def portions(self, rows: int) -> Iterator[tuple[int, int]]:
        """Runs of that many rows, each to be looked up at once; at least one, maybe without rows.

        A run is as long as the table, since either it or the table is hashed anew for each, and the other
        read: but no longer than a bounded number of pairs allows, if that leaves `_PORTION` rows.
        """
        step = min(self._held.rows, rows, _LARGEST)
        if step > _PORTION:
            step = min(step, _LARGEST // self._on_gpu("a join", lambda: self._most_equal))
        step = max(step, _PORTION)
        for start in range(0, max(rows, 1), step):
            yield start, min(start + step, rows)

    def pairs(self, keys: CudaFrame) -> tuple[plc.Column, plc.Column]:
        """Pairs of equal keys in any order, as int32 positions in `keys` and of prepared rows."""
        kernels = self._kernels
        asked = _Keys(kernels, keys.columns, keys.rows, self._nulls_equal)
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

    @functools.cached_property
    def _most_equal(self) -> int:
        """The most prepared rows, of at least one, that have one key; the host waits."""
        kernels = self._kernels
        columns = self._held.columns
        request = GroupByRequest(columns[0], [plc.aggregation.count(NullPolicy.INCLUDE)])
        grouping = GroupBy(plc.Table(columns), NullPolicy.INCLUDE)
        _, results = grouping.aggregate([request], stream=kernels.stream, mr=kernels.memory)
        counts = kernels.convert(results[0].columns()[0], INT64)
        most = kernels.reduce(counts, plc.aggregation.max(), INT64).to_py(stream=kernels.stream)
        assert isinstance(most, int)
        return most

    def _on_host(self, keys: CudaFrame) -> tuple[Positions, Positions]:
        pairs = in_order(self._kernels, *self.pairs(keys))
        batch = transfer.to_arrow(self._kernels.session, make_frame(pairs, pairs[0].size()), _PAIR)
        positions, found = (np.asarray(column).astype(np.int64) for column in batch.columns)
        return positions, found


def comparable(kernels: Kernels, column: plc.Column) -> plc.Column:
    """The column with one NaN and one zero, floats as their bits."""
    bits = _BITS.get(column.type().id())
    if bits is None:
        return column
    one = plc.replace.normalize_nans_and_zeros(column, stream=kernels.stream, mr=kernels.memory)
    return viewed(one, bits)
