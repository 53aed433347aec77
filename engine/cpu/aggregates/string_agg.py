"""string_agg: strings one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.value_lists import HolisticAggregate, make_lists
from bamquery.engine.cpu.kernels import (
    Column,
    Constant,
    boolean_column,
    compute,
    constant_bytes,
    null_where,
    nulls,
)


class StringAgg(HolisticAggregate):
    """Texts with a separator between each two; nulls are left out."""

    def __init__(self, separator: Constant) -> None:
        self._separator = separator
        self.between = constant_bytes(separator)
        """Bytes of the separator."""

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no text, or no separator."""
        if not self._separator.is_valid:
            return nulls(len(counts), values.type)
        return null_where(
            boolean_column(counts == 0), compute("binary_join", make_lists(values, counts), self._separator)
        )
