"""Rows found by their keys; the host may ask for pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.frames import CudaFrame, CudaPositions, column_bytes, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels, view_as
from bamquery.engine.cuda.keys.device_join import CudaJoinProbe
from bamquery.engine.cuda.keys.key_table import KeyTable
from bamquery.engine.cuda.keys.portions import portion_bytes
from bamquery.engine.cuda.keys.row_pairs import FoundPairs, RowPairs
from bamquery.engine.cuda.transfer import record_batches as transfer
from bamquery.engine.device import HostPositions
from bamquery.engine.operators.join.device_join import DeviceJoin
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Field

Answer = TypeVar("Answer")

_LARGEST: Final = 1 << 26
"""Rows looked up at once at most, and about as many pairs; fewer under a small `gpu_memory_limit`."""
_PAIR_BYTES: Final = 16
"""Of a pair, and of a row while it is looked up."""
_BITS: Final = {TypeId.FLOAT32: plc.DataType(TypeId.INT32), TypeId.FLOAT64: INT64}
_PAIR: Final = (Field("found", pa.int32()), Field("position", pa.int32()))


SelectRows: TypeAlias = Callable[[Expression, CudaFrame], CudaPositions]
"""Finds the rows for which a condition is true."""


class RunOnGpu(Protocol):
    """Runs work in a GPU's context, its failures in words."""

    def __call__(self, what: str, compute: Callable[[], Answer]) -> Answer:
        """What `compute` gives."""
        ...


class CudaJoinTable:
    """See `bamquery.engine.device.JoinTable`. Rows are hashed once; each look-up reads the table."""

    def __init__(
        self,
        kernels: Kernels,
        on_gpu: RunOnGpu,
        select: SelectRows,
        keys: CudaFrame,
        nulls_equal: Sequence[bool],
    ) -> None:
        """`select`: gives the rows of a frame for which a condition is true."""
        self._kernels = kernels
        self._on_gpu = on_gpu
        self._select = select
        self._copied = 0
        self._table = on_gpu("a join", lambda: self._make_table(keys, nulls_equal))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._copied + self._table.nbytes

    def matches(self, keys: CudaFrame) -> Iterator[tuple[int, HostPositions, HostPositions]]:
        """Pairs of equal keys."""
        for pairs in self.pairs(keys):
            positions, found = self._on_gpu("a join", lambda: self._pairs_on_host(pairs))  # noqa: B023
            yield pairs.stop, positions, found

    def start_join(self, work: DeviceJoin[CudaFrame]) -> CudaJoinProbe:
        """A join with the rows; see `bamquery.engine.operators.join.device_join`."""
        return CudaJoinProbe(self._kernels, self._on_gpu, self._select, self, work)

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same key; the host waits once."""
        return self._on_gpu("a join", lambda: self._table.is_unique)

    def portions(self, rows: int) -> Iterator[tuple[int, int]]:
        """Runs of rows, each to be looked up at once; at least one, maybe without rows."""
        step = self._most_rows
        for start in range(0, max(rows, 1), step):
            yield start, min(start + step, rows)

    def pairs(self, keys: CudaFrame, *, outer: bool = False) -> Iterator[RowPairs]:
        """Pairs of equal keys, in order, for some rows at a time; `outer`: rows without a partner, too.

        Rows have no more than about as many pairs as rows are looked up at once, or are one row.
        """
        on_gpu = self._on_gpu
        for start, stop in self.portions(keys.rows):
            found = on_gpu("a join", lambda: self._look_up(keys, start, stop, outer))  # noqa: B023
            if isinstance(found, RowPairs):
                yield _moved(found, start)
                continue
            begin = first = 0
            while True:
                end, last = on_gpu("a join", lambda: found.find_end(begin, first, self._most_rows))  # noqa: B023
                pairs = on_gpu("a join", lambda: found.pairs(begin, end, first, last))  # noqa: B023
                yield _moved(pairs, start)
                if end == found.rows:
                    break
                begin, first = end, last

    def has_rows(self, keys: CudaFrame) -> plc.Column:
        """For each row of a portion whether a prepared row has its key; runs on the GPU."""
        return self._table.has_rows(self._plain(keys), keys.rows)

    def select(self, keys: CudaFrame, *, alone: bool) -> plc.Column | None:
        """Positions of a portion's rows with an equal prepared row, or without; None: of all."""
        return self._table.select(self._plain(keys), keys.rows, alone=alone)

    def _make_table(self, keys: CudaFrame, nulls_equal: Sequence[bool]) -> KeyTable:
        columns = self._plain(keys)
        self._copied = sum(
            column_bytes(one) for one, own in zip(columns, keys.columns, strict=True) if one is not own
        )
        return KeyTable(self._kernels, columns, keys.rows, nulls_equal)

    def _look_up(self, keys: CudaFrame, start: int, stop: int, outer: bool) -> FoundPairs | RowPairs:
        rows = self._kernels.slice_frame(keys, start, stop)
        return self._table.pairs(self._plain(rows), rows.rows, outer=outer)

    def _plain(self, keys: CudaFrame) -> list[plc.Column]:
        return [comparable(self._kernels, column) for column in keys.columns]

    @property
    def _most_rows(self) -> int:
        return min(_LARGEST, portion_bytes(self._kernels) // _PAIR_BYTES)

    def _pairs_on_host(self, pairs: RowPairs) -> tuple[HostPositions, HostPositions]:
        columns = [pairs.found] if pairs.positions is None else [pairs.found, pairs.positions]
        frame = make_frame(columns, pairs.found.size())
        batch = transfer.to_arrow(self._kernels.session, frame, _PAIR[: len(columns)])
        found, *positions = (np.asarray(column).astype(np.int64) for column in batch.columns)
        own = positions[0] if positions else np.arange(pairs.stop - pairs.start)
        return own + pairs.start, found


def _moved(pairs: RowPairs, by: int) -> RowPairs:
    return replace(pairs, start=pairs.start + by, stop=pairs.stop + by) if by else pairs


def comparable(kernels: Kernels, column: plc.Column) -> plc.Column:
    """The column with one NaN and one zero, floats as their bits."""
    bits = _BITS.get(column.type().id())
    if bits is None:
        return column
    one = plc.replace.normalize_nans_and_zeros(column, stream=kernels.stream, mr=kernels.memory)
    return view_as(one, bits)
