"""count and count(*)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    Gathered,
    StateColumns,
    count_by_group,
    count_values,
    sum_by_group,
)
from bamquery.engine.cpu.kernels import Column, from_values
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.plan.expressions import AggregateCall


class CountRows(Accumulator):
    """All rows; 0 for a group without any."""

    exact = True

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """One number a group."""
        return (count_by_group(codes, groups),)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Counts, of a column too."""
        return AggregateKind.COUNT

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """The counts."""
        return (gathered.counts,)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums."""
        return (sum_by_group(codes, np.asarray(state[0]), groups),)

    def final(self, state: StateColumns) -> Column:
        """The numbers."""
        return from_values(np.asarray(state[0]), pa.int64())


class Count(CountRows):
    """Rows whose argument is not null."""

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """One number a group."""
        return (count_values(column, codes, groups),)

    def from_average(self, state: StateColumns) -> StateColumns | None:
        """It is one of them."""
        return (state[-1],)
