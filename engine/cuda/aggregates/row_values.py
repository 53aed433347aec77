"""first, last and any_value: one row's value for the group."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.libcudf_types import device_type


class RowValue(Accumulator):
    """The value of a group's first or last row, or of the first that is not null.

    Args:
        last: the last row rather than the first.
        skip_nulls: rows with nulls do not count.
    """

    def __init__(self, *, last: bool, skip_nulls: bool) -> None:
        self._aggregation = plc.aggregation.max() if last else plc.aggregation.min()
        self._skip_nulls = skip_nulls

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The value, and whether there was a row."""
        (column,) = rows
        if self._skip_nulls and column.null_count():
            codes, (column,) = codes.filter(kernels, kernels.is_valid(column), column)
        return self._choose_rows(kernels, column, codes)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The first or last state's that has a row."""
        values, seen = state
        codes, (values,) = codes.filter(kernels, seen, values)
        return self._choose_rows(kernels, values, codes)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The values."""
        return state[0]

    def _choose_rows(self, kernels: Kernels, column: plc.Column, codes: GroupCodes) -> StateColumns:
        rows = column.size()
        if not rows:
            nothing = plc.Column.all_null_like(column, codes.groups, stream=kernels.stream, mr=kernels.memory)
            return (nothing, kernels.repeat_scalar(kernels.truth(False), codes.groups))
        places = codes.reduce(kernels, kernels.positions(rows), self._aggregation, device_type(pa.int32()))
        beyond = kernels.fill_null(places, kernels.number(rows, pa.int32()))
        return (kernels.gather([column], beyond, nullify=True)[0], kernels.is_valid(places))
