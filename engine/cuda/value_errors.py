"""Errors of values, in the words of the CPU device: it is asked about the first row that fails, only then.

The row is known to fail, and nothing that the CPU computes of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.expressions import function_registry as functions
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.transfer.arrow_layout import from_libcudf_layout
from bamquery.errors import ExecutionError


def fail_call(
    kernels: Kernels, name: str, arguments: Sequence[Operand], kind: pa.DataType, failed: plc.Column
) -> NoReturn:
    """Raise the error of a function on the first row where `failed` is true; there is one.

    Raises:
        ExecutionError: always.
    """
    given: list[Any] = [_first(kernels, argument, failed) for argument in arguments]
    _ask(lambda: functions.FUNCTIONS[name](given, kind))
    raise ExecutionError(f"{name}: a result does not fit {type_name(kind)}")


def fail_cast(kernels: Kernels, argument: Operand, kind: pa.DataType, failed: plc.Column) -> NoReturn:
    """Raise the error of a cast on the first row where `failed` is true; there is one.

    Raises:
        ExecutionError: always.
    """
    given = _first(kernels, argument, failed)
    _ask(lambda: cast(given, kind, try_=False))
    raise ExecutionError(f"a value of {type_name(argument.kind)} cannot be cast to {type_name(kind)}")


def _ask(compute: Callable[[], object]) -> None:
    try:
        compute()
    except pa.ArrowInvalid as error:
        raise ExecutionError(str(error)) from None


def _first(kernels: Kernels, argument: Operand, failed: plc.Column) -> Any:
    if not isinstance(argument.datum, plc.Column):
        return argument.datum
    column = kernels.slice_column(kernels.keep([argument.datum], failed)[0], 0, 1)
    kernels.session.synchronize()
    return from_libcudf_layout(column.to_arrow(stream=kernels.stream), argument.kind)
