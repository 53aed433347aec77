"""count and count(*)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.aggregates.accumulator import GatheredWords, ReductionAggregate, StateColumns
from bamquery.engine.cuda.aggregates.reductions import Reduction, count_values, total_counts
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.plan.expressions import AggregateCall


class CountRows(ReductionAggregate):
    """All rows; 0 for a group without any."""

    exact = True

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """One number a group."""
        return (count_values(kernels),)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Counts, of a column too."""
        return AggregateKind.COUNT

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """The counts."""
        return (gathered.count,)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The sums."""
        return (total_counts(state[0]),)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The numbers."""
        return state[0]


class Count(CountRows):
    """Rows whose argument is not null."""

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """One number a group."""
        return (count_values(kernels, rows[0]),)
