"""Which accumulator computes an aggregate function of `bamquery.plan.functions`, by name and type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.aggregates.accumulator import Accumulator
from bamquery.engine.cuda.aggregates.counts import Count, CountRows
from bamquery.engine.cuda.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cuda.aggregates.moments import Variance
from bamquery.engine.cuda.aggregates.rows import RowValue
from bamquery.engine.cuda.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum


def _sum(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return FloatSum() if pa.types.is_floating(argument) else ExactSum(result)


def _average(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    if pa.types.is_floating(argument):
        return FloatAverage()
    return ExactAverage(argument.scale if isinstance(argument, pa.Decimal128Type) else 0)


def _variance(argument: pa.DataType, result: pa.DataType, *, spare: int, root: bool) -> Accumulator:
    return Variance(argument, spare=spare, root=root)


ACCUMULATORS: Final[Mapping[str, Callable[[pa.DataType, pa.DataType], Accumulator]]] = MappingProxyType(
    {
        "count_star": lambda argument, result: CountRows(),
        "count": lambda argument, result: Count(),
        "sum": _sum,
        "avg": _average,
        "min": lambda argument, result: extreme(argument, greatest=False),
        "max": lambda argument, result: extreme(argument, greatest=True),
        "var_samp": partial(_variance, spare=1, root=False),
        "var_pop": partial(_variance, spare=0, root=False),
        "stddev_samp": partial(_variance, spare=1, root=True),
        "stddev_pop": partial(_variance, spare=0, root=True),
        "bool_and": lambda argument, result: BooleanExtreme(greatest=False),
        "bool_or": lambda argument, result: BooleanExtreme(greatest=True),
        "any_value": lambda argument, result: RowValue(last=False, skip_nulls=True),
        "first": lambda argument, result: RowValue(last=False, skip_nulls=False),
        "last": lambda argument, result: RowValue(last=True, skip_nulls=False),
    }
)
"""Accumulators by function, from the argument's type (a dictionary's values') and the result's."""
