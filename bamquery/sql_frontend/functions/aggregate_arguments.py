"""What aggregate functions take: an argument with its casts, and the result's type that follows from it.

Functions here raise `ValueError` in words for arguments that do not fit; the binder knows the place.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import coerce, is_null
from bamquery.sql_frontend.functions.operators import BOOLEAN, STRING, literal

Argument: TypeAlias = Callable[[str, Expression], tuple[Expression, pa.DataType]]
"""From the function's name and an argument: the argument with its casts, and the result's type."""

_MAX_WIDTH: Final = 38


def any_value(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """Of any type, as it is."""
    if is_null(value):
        return coerce(value, pa.int32()), pa.int32()
    return value, value.type


def value_to_count(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """Of any type; the answer is a number of rows."""
    return any_value(name, value)[0], pa.int64()


def number_to_sum(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """A number or a truth value; the sum's type."""
    kind = value.type
    if is_null(value) or pa.types.is_boolean(kind):
        return coerce(value, pa.int32()), HUGEINT
    if types.is_integral(kind):
        return value, HUGEINT
    if isinstance(kind, pa.Decimal128Type):
        return value, pa.decimal128(_MAX_WIDTH, kind.scale)
    return _number(name, value), pa.float64()


def number_to_average(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """A number; the answer is a double."""
    if is_null(value):
        return coerce(value, pa.float64()), pa.float64()
    return _number(name, value), pa.float64()


def number_as_double(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """A number, as a double."""
    if is_null(value):
        return coerce(value, pa.float64()), pa.float64()
    return coerce(_number(name, value), pa.float64()), pa.float64()


def any_value_to_double(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """Of any type, as it is; the answer is a double."""
    return any_value(name, value)[0], pa.float64()


def truth(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """A truth value."""
    if types.is_numeric(value.type):
        raise ValueError(f"{name}() needs BOOLEAN, not {type_name(value.type)}: compare it with something")
    return operators.as_boolean(value, f"{name}()"), BOOLEAN


def bits(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """An integer of up to 64 bits."""
    if is_null(value):
        return coerce(value, pa.int64()), pa.int64()
    if value.type == HUGEINT:
        raise ValueError(f"{name}() of HUGEINT is not supported: cast it to BIGINT")
    if not pa.types.is_integer(value.type):
        raise ValueError(f"{name}() needs an integer, not {type_name(value.type)}")
    return value, value.type


def string_value(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """Anything, as text."""
    return coerce(value, STRING), STRING


def between_values(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """What lies between two values: a number or a moment. Integers as doubles, dates as timestamps."""
    kind = value.type
    if is_null(value) or types.is_integral(kind):
        return coerce(value, pa.float64()), pa.float64()
    if types.is_numeric(kind) or kind == pa.time64("us"):
        return value, kind
    if pa.types.is_timestamp(kind) and (kind.unit == "us" or kind.tz is not None):
        return value, kind
    if pa.types.is_temporal(kind) and not (types.is_interval(kind) or pa.types.is_time(kind)):
        return coerce(value, pa.timestamp("us")), pa.timestamp("us")
    hint = ": write quantile_disc()" if name == "quantile_cont" else ""
    raise ValueError(f"{name}() needs a number, a date or a time, not {type_name(kind)}{hint}")


def median(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """As `between_values`, but timestamps of seconds stay such."""
    if pa.types.is_timestamp(value.type):
        return value, value.type
    return between_values(name, value)


def distances(name: str, value: Expression) -> tuple[Expression, pa.DataType]:
    """A number; integers as doubles."""
    if not is_null(value) and pa.types.is_temporal(value.type):
        raise ValueError(f"{name}() of {type_name(value.type)} is not supported: it would be an INTERVAL")
    if not is_null(value):
        _number(name, value)
    return between_values(name, value)


def quantile(name: str, value: Expression) -> Literal:
    """Which quantile: a number from -1 to 1, a decimal as it is written."""
    constant = fold_expression(value)
    if not isinstance(constant, Literal):
        raise ValueError(f"{name}() needs a constant for its second argument")
    if constant.is_null:
        raise ValueError(f"{name}() needs a number from -1 to 1 for its second argument, not NULL")
    if not types.is_numeric(constant.type):
        raise ValueError(
            f"{name}() needs a number from -1 to 1 for its second argument, not {type_name(constant.type)}"
        )
    share: Any = constant.value.as_py()
    if not -1 <= share <= 1:
        raise ValueError(f"{name}() needs a number from -1 to 1 for its second argument, not {share}")
    if isinstance(share, Decimal):
        return constant
    return literal(float(share), pa.float64())


def percentile(name: str, value: Expression, *, descending: bool) -> Literal:
    """Which quantile of an order that is written: from 0 to 1, negative where it counts from the greatest."""
    constant = quantile(name, value)
    share: Any = constant.value.as_py()
    if share < 0:
        raise ValueError(f"{name}() with an order needs a number from 0 to 1, not {share}")
    return literal(-float(share), pa.float64()) if descending else constant


def separator(name: str, value: Expression) -> Literal:
    """What stands between strings."""
    constant = fold_expression(value)
    if not isinstance(constant, Literal):
        raise ValueError(f"{name}() needs a constant for its separator")
    if not (is_null(constant) or types.is_string(constant.type)):
        raise ValueError(f"{name}() needs VARCHAR for its separator, not {type_name(constant.type)}")
    converted = coerce(constant, STRING)
    assert isinstance(converted, Literal)
    return converted


def _number(name: str, value: Expression) -> Expression:
    if not types.is_numeric(value.type):
        raise ValueError(f"{name}() needs a number, not {type_name(value.type)}")
    return value
