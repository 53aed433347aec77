"""ORDER BY: all rows in order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.late_filter import LateFilter
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import drained, gathered, sliced
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.nodes import SortKey

_BUCKET_ROWS: Final = 1 << 20
"""Rows sorted at once: a fraction of a second, after which a query can stop."""
_SAMPLES: Final = 16
"""Sampled rows for each bucket: the largest bucket is then seldom twice the mean."""


class Sort(Operator[Frame], Generic[Frame]):
    """The child's rows in stable order; holds them all within `memory_limit`.

    Many rows are sorted by sampling: rows of a sample split the order into buckets, each chunk is sorted
    and cut at them, and each bucket's pieces are sorted again. All of that runs on all threads, in steps
    short enough to be cancelled between.
    """

    def __init__(self, child: Operator[Frame], keys: Sequence[SortKey]) -> None:
        super().__init__(child.fields, (child,), OperatorProfile("Sort", {"keys": len(keys)}))
        self._keys = tuple(keys)

    def narrow(self, value: Expression, late: LateFilter) -> bool:
        """The child's columns are its own."""
        return self.children[0].narrow(value, late)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """All rows, once they have come."""
        device = context.device
        with context.memory.reservation("ORDER BY") as memory:
            held, rows = self._collect(context, memory)
            if rows <= _BUCKET_ROWS:
                memory.resize(3 * memory.held)  # the rows, joined, in order
                ordered = device.sort(device.concatenate(held), self._keys)
                held.clear()
                yield from sliced(device, ordered)
            else:
                memory.resize(memory.held + memory.held // 2)  # a bucket of each thread, joined and in order
                yield from self._sorted_buckets(context, held, rows)
            self.profile.details["peak_memory"] = memory.peak

    def _collect(self, context: ExecutionContext[Frame], memory: Reservation) -> tuple[list[Frame], int]:
        """The child's rows and their number."""
        device = context.device
        held: list[Frame] = [device.empty(self.fields)]
        rows = 0
        with (
            closing(self.children[0].frames(context)) as frames,
            closing(gathered(device, frames)) as chunks,
        ):
            for chunk in chunks:
                held.append(chunk)
                rows += device.row_count(chunk)
                memory.resize(memory.held + device.nbytes(chunk))
        return held, rows

    def _sorted_buckets(
        self, context: ExecutionContext[Frame], held: list[Frame], rows: int
    ) -> Generator[Frame, None, None]:
        device = context.device
        buckets = -(-rows // _BUCKET_ROWS)
        splitters = self._splitters(device, held, rows, buckets)

        def cut(chunk: Frame) -> list[Frame]:
            return _cut(device, chunk, splitters, len(self.fields), self._keys)

        pieces: list[list[Frame]] = [[] for _ in range(buckets)]
        with closing(ordered_map(context, cut, drained(held))) as chunks:
            for chunk in chunks:
                for bucket, piece in zip(pieces, chunk, strict=True):
                    bucket.append(piece)

        def order(bucket: list[Frame]) -> Frame:
            return device.sort(device.concatenate(bucket), self._keys)

        with closing(ordered_map(context, order, drained(pieces))) as ordered:
            for frame in ordered:
                yield from sliced(device, frame)

    def _splitters(self, device: Device[Frame], held: Sequence[Frame], rows: int, buckets: int) -> Frame:
        """`buckets` - 1 rows in order that split the rows into parts of about one size."""
        step = max(rows // (buckets * _SAMPLES), 1)
        samples: list[Frame] = []
        first = step // 2
        for chunk in held:
            count = device.row_count(chunk)
            samples.append(device.take(chunk, np.arange(first, count, step)))
            first += step * max(-(-(count - first) // step), 0) - count
        ordered = device.sort(device.concatenate(samples), self._keys)
        places = np.arange(1, buckets) * device.row_count(ordered) // buckets
        return device.take(ordered, places)


def _cut(
    device: Device[Frame], chunk: Frame, splitters: Frame, columns: int, keys: Sequence[SortKey]
) -> list[Frame]:
    """The chunk in order, in one piece for each bucket: from a splitter on, up to the next."""
    marked = [_marked(device, splitters, True), _marked(device, chunk, False)]
    # The sort is stable, so a splitter stands before rows that equal it: all of those go into its bucket.
    ordered = device.sort(device.concatenate(marked), keys)
    places = device.matching(ColumnRef(columns, "splitter", pa.bool_()), ordered).tolist()
    rows = device.select(ordered, range(columns))
    starts, ends = [0, *(place + 1 for place in places)], [*places, device.row_count(ordered)]
    return [device.slice(rows, start, end - start) for start, end in zip(starts, ends, strict=True)]


def _marked(device: Device[Frame], frame: Frame, mark: bool) -> Frame:
    """The frame with one more column, which says whether its rows are splitters."""
    column = device.evaluate([Literal(pa.scalar(mark, pa.bool_()))], frame)
    return device.join_columns([frame, column])
