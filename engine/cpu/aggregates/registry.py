"""Which accumulator computes an aggregate function of `bamquery.plan.functions`, by name and type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.cpu.aggregates.accumulator import Accumulator
from bamquery.engine.cpu.aggregates.counts import Count, CountRows
from bamquery.engine.cpu.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cpu.aggregates.moments import Variance
from bamquery.engine.cpu.aggregates.rows import RowValue
from bamquery.engine.cpu.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum


def _sum(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return FloatSum() if pa.types.is_floating(argument) else ExactSum(result)


def _average(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    if pa.types.is_floating(argument):
        return FloatAverage()
    return ExactAverage(argument.scale if isinstance(argument, pa.Decimal128Type) else 0)


ACCUMULATORS: Final[Mapping[str, Callable[[pa.DataType, pa.DataType], Accumulator]]] = MappingProxyType(
    {
        "count_star": lambda argument, result: CountRows(),
        "count": lambda argument, result: Count(),
        "sum": _sum,
        "avg": _average,
        "min": lambda argument, result: extreme(argument, greatest=False),
        "max": lambda argument, result: extreme(argument, greatest=True),
        "var_samp": lambda argument, result: Variance(spare=1, root=False),
        "var_pop": lambda argument, result: Variance(spare=0, root=False),
        "stddev_samp": lambda argument, result: Variance(spare=1, root=True),
        "stddev_pop": lambda argument, result: Variance(spare=0, root=True),
        "bool_and": lambda argument, result: BooleanExtreme(greatest=False),
        "bool_or": lambda argument, result: BooleanExtreme(greatest=True),
        "any_value": lambda argument, result: RowValue(last=False, skip_nulls=True),
        "first": lambda argument, result: RowValue(last=False, skip_nulls=False),
        "last": lambda argument, result: RowValue(last=True, skip_nulls=False),
    }
)
"""Accumulators by function, from the argument's type (decoded) and the result's."""
