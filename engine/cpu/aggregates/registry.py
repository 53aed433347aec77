"""The accumulators of `bamquery.engine.aggregate_families` on this device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.aggregate_families import make_accumulator
from bamquery.engine.cpu.aggregates.accumulator import Accumulator
from bamquery.engine.cpu.aggregates.by_extreme import ArgExtreme
from bamquery.engine.cpu.aggregates.compensated import CompensatedSum
from bamquery.engine.cpu.aggregates.counts import Count, CountRows
from bamquery.engine.cpu.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cpu.aggregates.frequencies import Entropy, Mode
from bamquery.engine.cpu.aggregates.moments import Variance
from bamquery.engine.cpu.aggregates.ordered_rows import OrderedRow
from bamquery.engine.cpu.aggregates.pairs import PairAggregate
from bamquery.engine.cpu.aggregates.products import bit_and, bit_or, bit_xor, product
from bamquery.engine.cpu.aggregates.quantiles import ContinuousQuantile, DiscreteQuantile, MedianDistance
from bamquery.engine.cpu.aggregates.row_values import RowValue
from bamquery.engine.cpu.aggregates.shapes import Shape
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum, limb_count
from bamquery.engine.cpu.aggregates.value_lists import OrderedAggregate
from bamquery.plan.expressions import AggregateCall


def _sum(call: AggregateCall) -> Accumulator:
    if pa.types.is_floating(value_type(call.arguments[0].type)):
        return FloatSum()
    return ExactSum(value_type(call.type), limb_count(value_type(call.arguments[0].type)))


def _average(call: AggregateCall) -> Accumulator:
    argument = value_type(call.arguments[0].type)
    if pa.types.is_floating(argument):
        return FloatAverage()
    scale = argument.scale if isinstance(argument, pa.Decimal128Type) else 0
    return ExactAverage(scale, limb_count(argument))


def _one_row(call: AggregateCall, *, last: bool, skip_nulls: bool) -> Accumulator:
    if call.order:
        return OrderedRow(call.order, last=last, skip_nulls=skip_nulls)
    return RowValue(last=last, skip_nulls=skip_nulls)


FAMILIES: Final[Mapping[str, Callable[..., Accumulator]]] = MappingProxyType(
    {
        "rows": lambda call: CountRows(),
        "values": lambda call: Count(),
        "sum": _sum,
        "average": _average,
        "extreme": lambda call, greatest: extreme(value_type(call.arguments[0].type), greatest=greatest),
        "variance": lambda call, **options: Variance(**options),
        "extreme of truth values": lambda call, greatest: BooleanExtreme(greatest=greatest),
        "one row": _one_row,
        "row of an extreme": lambda call, **options: ArgExtreme(**options),
        "product": lambda call: product(),
        "bit_and": lambda call: bit_and(value_type(call.type)),
        "bit_or": lambda call: bit_or(value_type(call.type)),
        "bit_xor": lambda call: bit_xor(value_type(call.type)),
        "compensated sum": lambda call, mean: CompensatedSum(mean=mean),
        "shape": lambda call, function: Shape(function),
        "pairs": lambda call, function: PairAggregate(function),
        "continuous quantile": lambda call: ContinuousQuantile(
            float(call.parameter.value.as_py()), value_type(call.type)
        ),
        "discrete quantile": lambda call: DiscreteQuantile(call.parameter.value.as_py()),
        "mode": lambda call: Mode(),
        "entropy": lambda call: Entropy(),
        "median distance": lambda call: MedianDistance(value_type(call.type)),
        "joined strings": lambda call: StringAgg(call.parameter.value),
    }
)


def accumulator_of(call: AggregateCall) -> Accumulator:
    """What computes a call; it takes the call's columns as `pack_struct` has them, sort keys last."""
    return make_accumulator(call, FAMILIES, OrderedAggregate)
