"""Aggregate functions by their DuckDB names: argument counts, the casts of arguments, the result's type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.plan import types
from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.plan.types import HUGEINT
from bamquery.sql import operators
from bamquery.sql.coercion import coerce, decode, is_null
from bamquery.sql.functions import case, check_count
from bamquery.sql.operators import BOOLEAN, literal
from bamquery.type_names import type_name

_MAX_WIDTH: Final = 38


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How calls of a name are bound.

    Attributes:
        function: the name in `bamquery.plan.functions`.
        argument: the argument with its casts, and the result's type; from the name and the argument.
        distinct: what DISTINCT does: "counts", "ignored" as it changes nothing, or "refused".
    """

    function: str
    argument: Callable[[str, Expression], tuple[Expression, pa.DataType]]
    distinct: str


def is_aggregate(name: str) -> bool:
    """Whether a function of that name (any case) is an aggregate."""
    return name.lower() in AGGREGATES or name.lower() in _CONDITIONAL_COUNTS


def call(
    name: str, arguments: Sequence[Expression], *, distinct: bool, where: Expression | None
) -> AggregateCall:
    """The call of the aggregate of that name (any case); without arguments, ``count`` counts rows.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    name = name.lower()
    if name == "count" and not arguments:
        return AggregateCall("count_star", (), pa.int64(), filter=where)
    check_count(name, len(arguments), 1, 1)
    value = decode(arguments[0])
    if name in _CONDITIONAL_COUNTS:
        return _conditional_count(name, value, where)
    aggregate = AGGREGATES[name]
    if distinct and aggregate.distinct == "refused":
        raise ValueError(f"{name}() does not take DISTINCT")
    argument, kind = aggregate.argument(name, value)
    return AggregateCall(
        aggregate.function,
        (argument,),
        kind,
        distinct=distinct and aggregate.distinct == "counts",
        filter=where,
    )


def _conditional_count(name: str, condition: Expression, where: Expression | None) -> AggregateCall:
    """count_if(c): how often c is true, as HUGEINT, null for no rows, which is what a sum of ones is."""
    condition, _ = _truth(name, condition)
    one_or_zero = case([(condition, literal(1, pa.int64()))], literal(0, pa.int64()))
    return AggregateCall("sum", (one_or_zero,), HUGEINT, filter=where)


def _anything(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    if is_null(value):
        return coerce(value, pa.int32()), pa.int32()
    return value, value.type


def _counted(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    return _anything(name, value)[0], pa.int64()


def _summed(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    kind = value.type
    if is_null(value) or pa.types.is_boolean(kind):
        return coerce(value, pa.int32()), HUGEINT
    if types.is_integral(kind):
        return value, HUGEINT
    if isinstance(kind, pa.Decimal128Type):
        return value, pa.decimal128(_MAX_WIDTH, kind.scale)
    return _number(name, value), pa.float64()


def _averaged(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    if is_null(value):
        return coerce(value, pa.float64()), pa.float64()
    return _number(name, value), pa.float64()


def _in_double(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    if is_null(value):
        return coerce(value, pa.float64()), pa.float64()
    return coerce(_number(name, value), pa.float64()), pa.float64()


def _number(name: str, value: Expression) -> Expression:
    if not types.is_numeric(value.type):
        raise ValueError(f"{name}() needs a number, not {type_name(value.type)}")
    return value


def _truth(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    if types.is_numeric(value.type):
        raise ValueError(f"{name}() needs BOOLEAN, not {type_name(value.type)}: compare it with something")
    return operators.as_boolean(value, f"{name}()"), BOOLEAN


AGGREGATES: Final[Mapping[str, Aggregate]] = MappingProxyType(
    {
        "count": Aggregate("count", _counted, "counts"),
        "sum": Aggregate("sum", _summed, "counts"),
        "avg": Aggregate("avg", _averaged, "counts"),
        "mean": Aggregate("avg", _averaged, "counts"),
        "min": Aggregate("min", _anything, "ignored"),
        "max": Aggregate("max", _anything, "ignored"),
        "stddev": Aggregate("stddev_samp", _in_double, "refused"),
        "stddev_samp": Aggregate("stddev_samp", _in_double, "refused"),
        "stddev_pop": Aggregate("stddev_pop", _in_double, "refused"),
        "variance": Aggregate("var_samp", _in_double, "refused"),
        "var_samp": Aggregate("var_samp", _in_double, "refused"),
        "var_pop": Aggregate("var_pop", _in_double, "refused"),
        "bool_and": Aggregate("bool_and", _truth, "ignored"),
        "bool_or": Aggregate("bool_or", _truth, "ignored"),
        "any_value": Aggregate("any_value", _anything, "ignored"),
        "first": Aggregate("first", _anything, "refused"),
        "arbitrary": Aggregate("first", _anything, "refused"),
        "last": Aggregate("last", _anything, "refused"),
    }
)

_CONDITIONAL_COUNTS: Final = frozenset({"count_if", "countif"})
