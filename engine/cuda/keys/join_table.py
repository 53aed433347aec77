"""Rows found by their keys with libcudf's hash join; the host may ask for pairs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from pylibcudf.groupby import GroupBy, GroupByRequest
from pylibcudf.join import inner_join
from pylibcudf.types import NullEquality, NullPolicy, TypeId

from bamquery.engine.cuda.frames import CudaFrame, column_bytes, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels, view_as
from bamquery.engine.cuda.keys.device_join import CudaJoinProbe, sort_pairs
from bamquery.engine.cuda.keys.portions import portion_bytes
from bamquery.engine.cuda.transfer import record_batches as transfer
from bamquery.engine.device import HostPositions
from bamquery.engine.operators.join.device_join import DeviceJoin
from bamquery.plan.nodes import Field

Answer = TypeVar("Answer")

_PORTION: Final = 1 << 20
"""Rows looked up at once at least, if they have no more pairs than `_LARGEST`."""
_LARGEST: Final = 1 << 26
"""Rows looked up at once at most, and about as many pairs; fewer under a small `gpu_memory_limit`."""
_PAIR_BYTES: Final = 16
"""Of a pair while pairs are put in order."""
_BITS: Final = {TypeId.FLOAT32: plc.DataType(TypeId.INT32), TypeId.FLOAT64: INT64}
_PAIR: Final = (Field("position", pa.int32()), Field("found", pa.int32()))
_COUNT: Final = (Field("pairs", pa.int64()),)


class RunOnGpu(Protocol):
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
                mask = kernels.logical_and(mask, kernels.is_valid(column))
            self.places, *self.columns = kernels.keep([kernels.positions(rows), *self.columns], mask)
            self.rows = self.places.size()

    def original(self, kernels: Kernels, positions: plc.Column) -> plc.Column:
        """Positions among the rows left, as positions among all."""
        return positions if self.places is None else kernels.gather([self.places], positions)[0]


class CudaJoinTable:
    """See `bamquery.engine.device.JoinTable`. libcudf hashes the prepared rows anew for each look-up."""

    def __init__(
        self, kernels: Kernels, on_gpu: RunOnGpu, keys: CudaFrame, nulls_equal: Sequence[bool]
    ) -> None:
        self._kernels = kernels
        self._on_gpu = on_gpu
        self._nulls_equal = tuple(nulls_equal)
        self._build = on_gpu("a join", lambda: _Keys(kernels, keys.columns, keys.rows, self._nulls_equal))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(map(column_bytes, self._build.columns))

    def matches(self, keys: CudaFrame) -> Iterator[tuple[int, HostPositions, HostPositions]]:
        """Pairs of equal keys."""
        for start, stop in self.portions(keys):
            positions, found = self._on_gpu(
                "a join",
                lambda: self._pairs_on_host(self._kernels.slice_frame(keys, start, stop)),  # noqa: B023
            )
            yield stop, positions + start, found

    def start_join(self, work: DeviceJoin[CudaFrame]) -> CudaJoinProbe:
        """A join with the rows; see `bamquery.engine.operators.join.device_join`."""
        return CudaJoinProbe(self._kernels, self._on_gpu, self, work)

    def portions(self, keys: CudaFrame) -> Iterator[tuple[int, int]]:
        """Runs of rows, each to be looked up at once; at least one, maybe without rows.

        A run is as long as the table, since either it or the table is hashed anew for each, and the other
        read. But it has no more than about `_largest_portion` pairs, or is one row.
        """
        largest = self._largest_portion
        step = min(self._build.rows, keys.rows, largest)
        if step > _PORTION:
            step = min(step, largest // self._most_equal_rows)
        step = max(step, _PORTION)
        for start in range(0, max(keys.rows, 1), step):
            stop = min(start + step, keys.rows)
            most = (stop - start) * self._build.rows
            if most > largest and (stop - start) * self._most_equal_rows > largest:
                yield from self._count_pairs(keys, start, stop)
            else:
                yield start, stop

    def pairs(self, keys: CudaFrame) -> tuple[plc.Column, plc.Column]:
        """Pairs of equal keys in any order, as int32 positions in `keys` and of prepared rows."""
        kernels = self._kernels
        asked = _Keys(kernels, keys.columns, keys.rows, self._nulls_equal)
        if not asked.rows or not self._build.rows:
            nothing = kernels.nulls(0, pa.int32())
            return nothing, nothing
        left, right = _equal_rows(kernels, asked.columns, self._build.columns)
        return asked.original(kernels, left), self._build.original(kernels, right)

    @property
    def _largest_portion(self) -> int:
        return min(_LARGEST, portion_bytes(self._kernels) // _PAIR_BYTES)

    @functools.cached_property
    def _most_equal_rows(self) -> int:
        """The most prepared rows, of at least one, that have one key; the host waits."""
        kernels = self._kernels

        def largest_count() -> int:
            found = kernels.reduce(self._key_counts()[-1], plc.aggregation.max(), INT64)
            return int(found.to_py(stream=kernels.stream) or 0)

        return self._on_gpu("a join", largest_count)

    @functools.cached_property
    def _cached_key_counts(self) -> list[plc.Column]:
        """What `_key_counts` gives, kept: few keys, where one has many rows."""
        return self._on_gpu("a join", self._key_counts)

    def _key_counts(self) -> list[plc.Column]:
        """Each prepared key once, and the int64 number of its rows."""
        kernels, columns = self._kernels, self._build.columns
        request = GroupByRequest(columns[0], [plc.aggregation.count(NullPolicy.INCLUDE)])
        grouping = GroupBy(plc.Table(columns), NullPolicy.INCLUDE)
        keys, results = grouping.aggregate([request], stream=kernels.stream, mr=kernels.memory)
        return [*keys.columns(), kernels.convert(results[0].columns()[0], INT64)]

    def _count_pairs(self, keys: CudaFrame, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Runs of some rows, by the pairs that each row has; the host waits for their numbers."""
        *known, counts = self._cached_key_counts
        kernels, wanted = self._kernels, self._kernels.slice_frame(keys, start, stop)

        def pairs_of_rows() -> pa.RecordBatch:
            asked = _Keys(kernels, wanted.columns, wanted.rows, self._nulls_equal)
            spread = kernels.repeat_scalar(kernels.number(0), wanted.rows)
            if asked.rows:
                left, right = _equal_rows(kernels, asked.columns, known)
                spread = kernels.scatter(
                    kernels.gather([counts], right)[0], asked.original(kernels, left), spread
                )
            return transfer.to_arrow(kernels.session, make_frame([spread], wanted.rows), _COUNT)

        ends = np.cumsum(np.asarray(self._on_gpu("a join", pairs_of_rows).column(0)))
        cuts = np.searchsorted(
            ends, np.arange(self._largest_portion, ends[-1], self._largest_portion), side="right"
        )
        inner = [start + cut for cut in np.unique(cuts).tolist() if cut]
        yield from pairwise([start, *inner, stop])

    def _pairs_on_host(self, keys: CudaFrame) -> tuple[HostPositions, HostPositions]:
        pairs = sort_pairs(self._kernels, *self.pairs(keys))
        batch = transfer.to_arrow(self._kernels.session, make_frame(pairs, pairs[0].size()), _PAIR)
        positions, found = (np.asarray(column).astype(np.int64) for column in batch.columns)
        return positions, found


def _equal_rows(
    kernels: Kernels, left: Sequence[plc.Column], right: Sequence[plc.Column]
) -> tuple[plc.Column, plc.Column]:
    return inner_join(
        plc.Table(list(left)),
        plc.Table(list(right)),
        NullEquality.EQUAL,
        stream=kernels.stream,
        mr=kernels.memory,
    )


def comparable(kernels: Kernels, column: plc.Column) -> plc.Column:
    """The column with one NaN and one zero, floats as their bits."""
    bits = _BITS.get(column.type().id())
    if bits is None:
        return column
    one = plc.replace.normalize_nans_and_zeros(column, stream=kernels.stream, mr=kernels.memory)
    return view_as(one, bits)
