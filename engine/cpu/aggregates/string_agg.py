"""string_agg: texts one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.value_lists import Gathered, lists_of
from bamquery.engine.cpu.kernels import Column, Constant, compute, constant_bytes, flags_of, null_where, nulls


class JoinedTexts(Gathered):
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
            flags_of(counts == 0), compute("binary_join", lists_of(values, counts), self._separator)
        )
