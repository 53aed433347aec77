"""Errors of values, in the words of the CPU device: it is asked about the first row that fails, only then.

The row is known to fail, and nothing that the CPU computes of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.names import type_name
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.transfer.arrow_layout import from_libcudf_layout
from bamquery.engine.host_evaluation import evaluate
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal


def fail_call(
    kernels: Kernels, name: str, arguments: Sequence[Operand], kind: pa.DataType, failed: plc.Column
) -> NoReturn:
    """Raise the error of a function on the first row where `failed` is true; there is one.

    Raises:
        ExecutionError: always.
    """
    _ask(kernels, lambda given: Call(name, given, kind), arguments, failed)
    raise ExecutionError(f"{name}: a result does not fit {type_name(kind)}")


def fail_cast(kernels: Kernels, argument: Operand, kind: pa.DataType, failed: plc.Column) -> NoReturn:
    """Raise the error of a cast on the first row where `failed` is true; there is one.

    Raises:
        ExecutionError: always.
    """
    _ask(kernels, lambda given: Cast(given[0], kind), [argument], failed)
    raise ExecutionError(f"a value of {type_name(argument.kind)} cannot be cast to {type_name(kind)}")


def _ask(
    kernels: Kernels,
    compute: Callable[[tuple[Expression, ...]], Expression],
    arguments: Sequence[Operand],
    failed: plc.Column,
) -> None:
    given: list[Expression] = []
    columns: list[pa.Array[Any]] = []
    for argument in arguments:
        if isinstance(argument.datum, plc.Column):
            given.append(ColumnRef(len(columns), "", argument.kind))
            columns.append(_first_failed(kernels, argument.datum, argument.kind, failed))
        else:
            given.append(Literal(argument.datum))
    row = pa.RecordBatch.from_arrays(columns, names=[str(column) for column in range(len(columns))])
    try:
        evaluate(compute(tuple(given)), row)
    except pa.ArrowInvalid as error:
        raise ExecutionError(str(error)) from None


def _first_failed(
    kernels: Kernels, column: plc.Column, kind: pa.DataType, failed: plc.Column
) -> pa.Array[Any]:
    first = kernels.slice_column(kernels.keep([column], failed)[0], 0, 1)
    kernels.session.synchronize()
    return from_libcudf_layout(first.to_arrow(stream=kernels.stream), kind)
