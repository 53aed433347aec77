"""Which accumulator computes an aggregate function of `function_catalog.plan_functions`, by name and type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.accumulator import Accumulator
from bamquery.engine.cuda.aggregates.counts import Count, CountRows
from bamquery.engine.cuda.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cuda.aggregates.frequencies import Entropy, Mode
from bamquery.engine.cuda.aggregates.moments import Variance
from bamquery.engine.cuda.aggregates.ordered_rows import OrderedRow
from bamquery.engine.cuda.aggregates.pairs import ANSWERS, PairAggregate
from bamquery.engine.cuda.aggregates.products import bit_and, bit_or, bit_xor, product
from bamquery.engine.cuda.aggregates.quantiles import ContinuousQuantile, DiscreteQuantile, MedianDistance
from bamquery.engine.cuda.aggregates.row_values import RowValue
from bamquery.engine.cuda.aggregates.shapes import Shape
from bamquery.engine.cuda.aggregates.string_agg import StringAgg
from bamquery.engine.cuda.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum
from bamquery.engine.cuda.aggregates.value_lists import OrderedAggregate
from bamquery.engine.cuda.kernels import Constant
from bamquery.plan.expressions import AggregateCall, ColumnRef, SortKey


def _sum(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return FloatSum() if pa.types.is_floating(argument) else ExactSum(argument, result)


def _average(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    if pa.types.is_floating(argument):
        return FloatAverage()
    return ExactAverage(argument)


def _variance(
    argument: pa.DataType, result: pa.DataType, *, spare: int, root: bool, of_mean: bool = False
) -> Accumulator:
    return Variance(argument, spare=spare, root=root, of_mean=of_mean)


def _by_extreme(
    argument: pa.DataType, result: pa.DataType, *, greatest: bool, needed: tuple[int, ...]
) -> Accumulator:
    """Of rows of (value, by): the value of the first one whose `by` is the extreme."""
    key = SortKey(ColumnRef(1, "by", argument), descending=greatest)
    return OrderedRow([key], last=False, needed=needed)


def _of_pairs(function: str, argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return PairAggregate(function)


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
        "sem": partial(_variance, spare=0, root=True, of_mean=True),
        "skewness": lambda argument, result: Shape("skewness"),
        "kurtosis": lambda argument, result: Shape("kurtosis"),
        "kurtosis_pop": lambda argument, result: Shape("kurtosis_pop"),
        "product": lambda argument, result: product(),
        "bit_and": lambda argument, result: bit_and(result),
        "bit_or": lambda argument, result: bit_or(result),
        "bit_xor": lambda argument, result: bit_xor(result),
        "arg_min": partial(_by_extreme, greatest=False, needed=(0, 1)),
        "arg_max": partial(_by_extreme, greatest=True, needed=(0, 1)),
        "arg_min_null": partial(_by_extreme, greatest=False, needed=(1,)),
        "arg_max_null": partial(_by_extreme, greatest=True, needed=(1,)),
        "mode": lambda argument, result: Mode(),
        "entropy": lambda argument, result: Entropy(),
        "mad": lambda argument, result: MedianDistance(result),
        **{name: partial(_of_pairs, name) for name in (*ANSWERS, "regr_count")},
    }
)
"""Accumulators by function, from the first argument's type (a dictionary's values') and the result's."""

WITH_PARAMETER: Final[Mapping[str, Callable[[Constant, pa.DataType], Accumulator]]] = MappingProxyType(
    {
        "quantile_cont": lambda parameter, result: ContinuousQuantile(float(parameter.as_py()), result),
        "quantile_disc": lambda parameter, result: DiscreteQuantile(parameter.as_py()),
        "string_agg": lambda parameter, result: StringAgg(parameter),
    }
)
"""Accumulators by function, from the call's parameter and the result's type."""

_ONE_ROW: Final[Mapping[str, tuple[bool, tuple[int, ...]]]] = MappingProxyType(
    {"first": (False, ()), "last": (True, ()), "any_value": (False, (0,))}
)
"""Functions that take one row in an order: whether the last one, and which columns must not be null."""


def accumulator_of(call: AggregateCall) -> Accumulator:
    """What computes a call; it takes the call's arguments, then its sort keys."""
    result = value_type(call.type)
    if call.order and call.function in _ONE_ROW:
        last, needed = _ONE_ROW[call.function]
        return OrderedRow(call.order, last=last, needed=needed)
    if call.parameter is not None:
        accumulator = WITH_PARAMETER[call.function](call.parameter.value, result)
    else:
        argument = value_type(call.arguments[0].type) if call.arguments else pa.null()
        accumulator = ACCUMULATORS[call.function](argument, result)
    return OrderedAggregate(accumulator, len(call.arguments), call.order) if call.order else accumulator
