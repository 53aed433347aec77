"""Decimals of few digits in 64 bits, which is how they stay: half the memory, and half of what programs read.

Plans know decimals of 128 bits only. A narrow column is the source of a late one, which programs load as it
is, and which makes rows of it wide once libcudf or an answer takes them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.cache.late_columns import Held, LateColumn, all_rows
from bamquery.engine.cuda.device_memory import memory_errors
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import device_type, narrow_kind


def narrow_frame(kernels: Kernels, frame: CudaFrame, schema: pa.Schema) -> CudaFrame:
    """The frame, whose columns are all of the schema's, with narrow decimals; the host waits for each.

    Raises:
        MemoryLimitError: there is too little memory.
    """
    session = kernels.session
    with memory_errors("decimals of 64 bits", session.limit):
        held = [_narrow(kernels, column, field) for column, field in zip(frame.held, schema, strict=True)]
    return make_frame(held, frame.rows)


def _narrow(kernels: Kernels, column: Held, field: pa.Field[Any]) -> Held:
    """As it is where it has more digits, or, whatever its type says, a value of more than 64 bits."""
    kind = narrow_kind(field.type)
    if kind == field.type or isinstance(column, LateColumn):
        return column
    found = kernels.convert(column, device_type(kind))
    again = kernels.convert(found, column.type())
    if kernels.any_true(kernels.test(BinaryOperator.NOT_EQUAL, again, column)):
        return column
    return all_rows(kernels, found)
