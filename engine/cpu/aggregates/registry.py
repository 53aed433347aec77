"""Which accumulator computes an aggregate function of `function_catalog.plan_functions`, by name and type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cpu.aggregates.accumulator import Accumulator
from bamquery.engine.cpu.aggregates.by_extreme import ArgExtreme
from bamquery.engine.cpu.aggregates.compensated import CompensatedSum
from bamquery.engine.cpu.aggregates.counts import Count, CountRows
from bamquery.engine.cpu.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cpu.aggregates.frequencies import Entropy, Mode
from bamquery.engine.cpu.aggregates.moments import Variance
from bamquery.engine.cpu.aggregates.ordered_rows import OrderedRow
from bamquery.engine.cpu.aggregates.pairs import ANSWERS, PairAggregate
from bamquery.engine.cpu.aggregates.products import bit_and, bit_or, bit_xor, product
from bamquery.engine.cpu.aggregates.quantiles import ContinuousQuantile, DiscreteQuantile, MedianDistance
from bamquery.engine.cpu.aggregates.row_values import RowValue
from bamquery.engine.cpu.aggregates.shapes import Shape
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum
from bamquery.engine.cpu.aggregates.value_lists import OrderedAggregate
from bamquery.engine.cpu.kernels import Constant
from bamquery.plan.expressions import AggregateCall
from bamquery.plan.functions import adds_in_order


def _sum(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return FloatSum() if pa.types.is_floating(argument) else ExactSum(result)


def _average(argument: pa.DataType, result: pa.DataType) -> Accumulator:
    if pa.types.is_floating(argument):
        return FloatAverage()
    return ExactAverage(argument.scale if isinstance(argument, pa.Decimal128Type) else 0)


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
        "var_samp": lambda argument, result: Variance(spare=1, root=False),
        "var_pop": lambda argument, result: Variance(spare=0, root=False),
        "stddev_samp": lambda argument, result: Variance(spare=1, root=True),
        "stddev_pop": lambda argument, result: Variance(spare=0, root=True),
        "bool_and": lambda argument, result: BooleanExtreme(greatest=False),
        "bool_or": lambda argument, result: BooleanExtreme(greatest=True),
        "any_value": lambda argument, result: RowValue(last=False, skip_nulls=True),
        "first": lambda argument, result: RowValue(last=False, skip_nulls=False),
        "last": lambda argument, result: RowValue(last=True, skip_nulls=False),
        "sem": lambda argument, result: Variance(spare=0, root=True, of_mean=True),
        "skewness": lambda argument, result: Shape("skewness"),
        "kurtosis": lambda argument, result: Shape("kurtosis"),
        "kurtosis_pop": lambda argument, result: Shape("kurtosis_pop"),
        "product": lambda argument, result: product(),
        "bit_and": lambda argument, result: bit_and(result),
        "bit_or": lambda argument, result: bit_or(result),
        "bit_xor": lambda argument, result: bit_xor(result),
        "arg_min": lambda argument, result: ArgExtreme(greatest=False, skip_nulls=True),
        "arg_max": lambda argument, result: ArgExtreme(greatest=True, skip_nulls=True),
        "arg_min_null": lambda argument, result: ArgExtreme(greatest=False, skip_nulls=False),
        "arg_max_null": lambda argument, result: ArgExtreme(greatest=True, skip_nulls=False),
        "fsum": lambda argument, result: CompensatedSum(mean=False),
        "favg": lambda argument, result: CompensatedSum(mean=True),
        "mode": lambda argument, result: Mode(),
        "entropy": lambda argument, result: Entropy(),
        "mad": lambda argument, result: MedianDistance(result),
        **{name: partial(_of_pairs, name) for name in (*ANSWERS, "regr_count")},
    }
)
"""Accumulators by function, from the first argument's type (decoded) and the result's."""

WITH_PARAMETER: Final[Mapping[str, Callable[[Constant, pa.DataType], Accumulator]]] = MappingProxyType(
    {
        "quantile_cont": lambda parameter, result: ContinuousQuantile(float(parameter.as_py()), result),
        "quantile_disc": lambda parameter, result: DiscreteQuantile(parameter.as_py()),
        "string_agg": lambda parameter, result: StringAgg(parameter),
    }
)
"""Accumulators by function, from the call's parameter and the result's type."""


_ONE_ROW: Final[Mapping[str, tuple[bool, bool]]] = MappingProxyType(
    {"first": (False, False), "last": (True, False), "any_value": (False, True)}
)
"""Functions that take one row in an order: whether the last one, and whether nulls do not count."""


_ONE_BY_ONE: Final[Mapping[str, Callable[[], Accumulator]]] = MappingProxyType(
    {"sum": lambda: FloatSum(one_by_one=True), "avg": lambda: FloatAverage(one_by_one=True)}
)
"""Of floats in an order of their own: what is rounded on the way depends on it."""


def accumulator_of(call: AggregateCall) -> Accumulator:
    """What computes a call; it takes the call's columns as `pack_struct` has them, sort keys last."""
    result = value_type(call.type)
    if call.order and call.function in _ONE_ROW:
        last, skip_nulls = _ONE_ROW[call.function]
        return OrderedRow(call.order, last=last, skip_nulls=skip_nulls)
    if call.parameter is not None:
        accumulator = WITH_PARAMETER[call.function](call.parameter.value, result)
    else:
        argument = value_type(call.arguments[0].type) if call.arguments else pa.null()
        one_by_one = _ONE_BY_ONE.get(call.function) if adds_in_order(call) else None
        accumulator = one_by_one() if one_by_one else ACCUMULATORS[call.function](argument, result)
    return OrderedAggregate(accumulator, len(call.arguments), call.order) if call.order else accumulator
