"""The values of range() and generate_series(), computed as they are asked for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.scan.chunk_selection import rows_without_columns
from bamquery.engine.operators.scan.chunks import ChunkLimits
from bamquery.engine.profiling.operator_profile import SeriesProfile
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Scan
from bamquery.plan.series import Series
from bamquery.storage.format.layout import VECTOR_ROWS

_ROWS_WITHOUT_COLUMNS: Final = 1 << 22
"""Rows of a frame without columns: few frames for count(*), little memory where a constant is computed."""


class SeriesScan(Operator[Frame], Generic[Frame]):
    """Computes chunks on all threads, the first one small for a LIMIT's sake; frames come in order."""

    def __init__(self, scan: Scan, series: Series) -> None:
        details: dict[str, object] = {"function": series.name, "values": series.rows}
        if scan.predicates:
            details["where"] = " AND ".join(map(format_expression, scan.predicates))
        self._position = SeriesProfile("Series", details, rows_total=series.rows)
        super().__init__(scan.fields, (), self._position)
        self._series = series
        self._columns = scan.columns
        self._predicates = scan.predicates

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """One frame a chunk."""

        def compute(chunk: tuple[int, int]) -> tuple[int, Frame]:
            start, stop = chunk
            if not self._columns and not self._predicates:
                return stop, context.device.from_arrow(rows_without_columns(stop - start))
            numbers: Any = self._series.values(start, stop)
            values: Any = pa.Array.from_buffers(
                self._series.type, len(numbers), [None, pa.py_buffer(numbers)]
            )
            frame = context.device.from_arrow(pa.record_batch([values], [self._series.name]))
            for predicate in self._predicates:
                frame = context.device.filter(frame, predicate)
            return stop, context.device.select(frame, self._columns)

        frames = ordered_map(context, compute, self._chunks(ChunkLimits.for_threads(context.memory.share)))
        try:
            for stop, frame in frames:
                yield frame
                del frame  # not held while the next one is computed
                self._position.rows_scanned = stop
        finally:
            frames.close()

    def _chunks(self, limits: ChunkLimits) -> Generator[tuple[int, int], None, None]:
        if not self._columns and not self._predicates:
            first = most = _ROWS_WITHOUT_COLUMNS
        else:
            first, most = limits.first * VECTOR_ROWS, min(limits.vectors, limits.given) * VECTOR_ROWS
        start, size = 0, first
        while start < self._series.rows:
            stop = min(start + size, self._series.rows)
            yield start, stop
            start, size = stop, min(size * limits.growth, most)
