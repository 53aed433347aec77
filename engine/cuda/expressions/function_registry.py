"""The scalar functions of `function_catalog.plan_functions` on this device, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda import comparisons
from bamquery.engine.cuda.expressions import interpolation
from bamquery.engine.cuda.kernels import Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.numeric import arithmetic, mathematics, rounding
from bamquery.engine.cuda.strings import basic, editing
from bamquery.engine.cuda.temporal import date_parts as temporal
from bamquery.engine.cuda.temporal import instants


def _not(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return kernels.invert(_column(kernels, arguments))


def _is_null(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return kernels.is_null(_column(kernels, arguments))


def _is_not_null(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return kernels.is_valid(_column(kernels, arguments))


def _column(kernels: Kernels, arguments: Sequence[Operand]) -> plc.Column:
    return kernels.column(arguments[0].datum, argument_rows(arguments))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        **arithmetic.FUNCTIONS,
        **rounding.FUNCTIONS,
        **comparisons.FUNCTIONS,
        **basic.FUNCTIONS,
        **temporal.FUNCTIONS,
        **mathematics.FUNCTIONS,
        **editing.FUNCTIONS,
        **instants.FUNCTIONS,
        **interpolation.FUNCTIONS,
        "not": _not,
        "is_null": _is_null,
        "is_not_null": _is_not_null,
    }
)
"""All but `and`, `or`, `coalesce` and `case`, which decide which rows their arguments are computed for."""
