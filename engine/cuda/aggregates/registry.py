"""The accumulators of `bamquery.engine.aggregate_families` on this device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.aggregate_families import make_accumulator
from bamquery.engine.cuda.aggregates.accumulator import Accumulator
from bamquery.engine.cuda.aggregates.counts import Count, CountRows
from bamquery.engine.cuda.aggregates.extremes import BooleanExtreme, extreme
from bamquery.engine.cuda.aggregates.frequencies import Entropy, Mode
from bamquery.engine.cuda.aggregates.moments import Variance
from bamquery.engine.cuda.aggregates.ordered_rows import OrderedRow
from bamquery.engine.cuda.aggregates.pairs import PairAggregate
from bamquery.engine.cuda.aggregates.products import bit_and, bit_or, bit_xor, product
from bamquery.engine.cuda.aggregates.quantiles import ContinuousQuantile, DiscreteQuantile, MedianDistance
from bamquery.engine.cuda.aggregates.row_values import RowValue
from bamquery.engine.cuda.aggregates.shapes import Shape
from bamquery.engine.cuda.aggregates.string_agg import StringAgg
from bamquery.engine.cuda.aggregates.sums import ExactAverage, ExactSum, FloatAverage, FloatSum
from bamquery.engine.cuda.aggregates.value_lists import OrderedAggregate
from bamquery.plan.expressions import AggregateCall, ColumnRef, SortKey


def _argument(call: AggregateCall) -> pa.DataType:
    return value_type(call.arguments[0].type)


def _sum(call: AggregateCall) -> Accumulator:
    argument = _argument(call)
    return FloatSum() if pa.types.is_floating(argument) else ExactSum(argument, value_type(call.type))


def _average(call: AggregateCall) -> Accumulator:
    argument = _argument(call)
    return FloatAverage() if pa.types.is_floating(argument) else ExactAverage(argument)


def _row_of_an_extreme(call: AggregateCall, *, greatest: bool, skip_nulls: bool) -> Accumulator:
    """Of rows of (value, by): the value of the first one whose `by` is the extreme."""
    key = SortKey(ColumnRef(1, "by", _argument(call)), descending=greatest)
    return OrderedRow([key], last=False, needed=(0, 1) if skip_nulls else (1,))


def _one_row(call: AggregateCall, *, last: bool, skip_nulls: bool) -> Accumulator:
    if call.order:
        return OrderedRow(call.order, last=last, needed=(0,) if skip_nulls else ())
    return RowValue(last=last, skip_nulls=skip_nulls)


FAMILIES: Final[Mapping[str, Callable[..., Accumulator]]] = MappingProxyType(
    {
        "rows": lambda call: CountRows(),
        "values": lambda call: Count(),
        "sum": _sum,
        "average": _average,
        "extreme": lambda call, greatest: extreme(_argument(call), greatest=greatest),
        "variance": lambda call, **options: Variance(_argument(call), **options),
        "extreme of truth values": lambda call, greatest: BooleanExtreme(greatest=greatest),
        "one row": _one_row,
        "row of an extreme": _row_of_an_extreme,
        "product": lambda call: product(),
        "bit_and": lambda call: bit_and(value_type(call.type)),
        "bit_or": lambda call: bit_or(value_type(call.type)),
        "bit_xor": lambda call: bit_xor(value_type(call.type)),
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
    """What computes a call; it takes the call's arguments, then its sort keys."""
    return make_accumulator(call, FAMILIES, OrderedAggregate)
