"""What the CPU computes for rooms that know no device: constants, values of files, errors in its words.

They ask here, and here only, so that operators name no device and the GPU's rooms nothing of the CPU's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.device import CPU, CpuDevice
from bamquery.plan.expressions import Expression

Values: TypeAlias = "pa.Array[Any] | pa.Scalar[Any]"


def is_computable(expression: Expression) -> bool:
    """Whether the CPU has all that the expression is made of."""
    return not CPU.expression_refusals(expression)


def evaluate(expression: Expression, rows: pa.RecordBatch) -> Values:
    """The expression's value for each row, or one for all of at least one row.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    from bamquery.engine.cpu.expressions import evaluation  # noqa: PLC0415 (few plans need it)

    return evaluation.evaluate(expression, rows)


def matching_rows(condition: Expression, rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Positions of the rows for which the condition is true.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    return CpuDevice().matching_positions(condition, rows)
