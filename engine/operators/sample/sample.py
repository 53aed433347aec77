"""Some of the rows, drawn at random: each for itself, in runs, or a number of them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import limit_rows
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.sample.reservoir import Reservoir
from bamquery.engine.operators.scan.chunk_selection import rows_without_columns
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan import nodes

RUN_ROWS: Final = 1024
"""Rows that are drawn together where runs are: a vector, as long as nothing is filtered before."""


class Sample(Operator[Frame], Generic[Frame]):
    """The child's rows that are drawn, in their order. With a seed they are the same each time.

    A share of the rows is drawn as they come, with nothing held; a number of them is held, in files where it
    does not fit `memory_limit`.
    """

    def __init__(self, child: Operator[Frame], sample: nodes.Sample) -> None:
        size = f"{sample.count} rows" if sample.percent is None else f"{sample.percent:g} %"
        seed = {} if sample.seed is None else {"seed": sample.seed}
        details = {"size": size, "drawn": "in runs" if sample.by_run else "row by row", **seed}
        super().__init__(child.fields, (child,), OperatorProfile("Sample", details))
        self.reservations = int(sample.percent is None and bool(child.fields))
        self._sample = sample

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Parts of the child's frames; a number of rows comes once all have been seen."""
        draw = np.random.default_rng(self._sample.seed)
        if self._sample.percent is None:
            yield from self._number(context, draw) if self.fields else self._first_rows(context)
            return
        share = self._sample.percent / 100
        row, run_kept = 0, False
        with closing(self.children[0].frames(context)) as frames:
            for frame in frames:
                rows = context.device.row_count(frame)
                if self._sample.by_run:
                    begin = -row % RUN_ROWS
                    runs = draw.random(-(-max(rows - begin, 0) // RUN_ROWS)) < share
                    begun = np.full(min(begin, rows), run_kept)
                    kept = np.concatenate([begun, np.repeat(runs, RUN_ROWS)])[:rows]
                    run_kept = bool(kept[-1]) if rows else run_kept
                else:
                    kept = draw.random(rows) < share
                row += rows
                positions = np.flatnonzero(kept)
                if len(positions):
                    yield self._take_drawn(context.device, frame, positions)

    def _number(
        self, context: ExecutionContext[Frame], draw: np.random.Generator
    ) -> Generator[Frame, None, None]:
        """The rows with the smallest of random keys: any set of so many is as likely as another."""
        device, wanted = context.device, self._sample.count
        if not wanted:
            return
        with (
            context.memory.reservation("sampling") as memory,
            closing(Reservoir(context, wanted, self.fields, memory, self.profile)) as drawn,
        ):
            with closing(self.children[0].frames(context)) as frames:
                for frame in frames:
                    keys = draw.random(device.row_count(frame))
                    positions = np.flatnonzero(keys < drawn.limit)
                    if len(positions):
                        drawn.add(self._take_drawn(device, frame, positions), keys[positions])
            with closing(drawn.frames()) as rows:
                yield from rows

    def _first_rows(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The first rows, which are like any others where there are no columns."""
        with (
            closing(self.children[0].frames(context)) as frames,
            closing(limit_rows(context.device, frames, self._sample.count, 0)) as rows,
        ):
            yield from rows

    def _take_drawn(self, device: Device[Frame], frame: Frame, positions: NDArray[np.int64]) -> Frame:
        if len(positions) == device.row_count(frame):
            return frame
        if not self.fields:
            return device.from_arrow(rows_without_columns(len(positions)))
        return device.take(frame, positions)
