"""string_agg: strings one after the other."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.strings.combine import OutputIfEmptyList, SeparatorOnNulls

from bamquery.engine.cuda.aggregates.accumulator import StateColumns
from bamquery.engine.cuda.aggregates.value_lists import HolisticAggregate, make_lists
from bamquery.engine.cuda.kernels import Constant, Kernels
from bamquery.engine.cuda.vectors import Vector

_TEXT: Final[Any] = pa.large_string()


class StringAgg(HolisticAggregate):
    """Texts with a separator between each two; nulls are left out."""

    def __init__(self, separator: Constant) -> None:
        self._separator = separator

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """Null where there is no text, or no separator."""
        if not self._separator.is_valid or not len(counts):
            return kernels.nulls(len(counts), _TEXT)
        nothing = kernels.null(_TEXT)
        return plc.strings.combine.join_list_elements(
            make_lists(kernels, values[0], counts.column),
            kernels.scalar(self._separator),
            nothing,
            nothing,
            SeparatorOnNulls.NO,
            OutputIfEmptyList.NULL_ELEMENT,
            stream=kernels.stream,
            mr=kernels.memory,
        )
