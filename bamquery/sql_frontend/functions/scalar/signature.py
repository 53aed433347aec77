"""How scalar functions take arguments: the casts that bring them to what is wanted.

Functions here raise `ValueError` in words for arguments that do not fit; the binder knows the place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.function_catalog.entry import Entry
from bamquery.plan.expressions import Call, Expression
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import coerce, is_integer_literal, is_null, is_string_literal
from bamquery.sql_frontend.functions.operators import STRING, literal

Arguments = Sequence[Expression]
Build = Callable[[str, Arguments], Expression]
Taker = Callable[[str, Expression], Expression]
"""Brings an argument of the function of that name to the type it wants."""

BLOB: Final = pa.large_binary()
DOUBLE: Final = pa.float64()
BIGINT: Final = pa.int64()
INTEGER: Final = pa.int32()


def call_builder(function: str, kind: pa.DataType, *takers: Taker) -> Build:
    """A function whose arguments have fixed types; the last taker is for all that follow."""

    def build(name: str, arguments: Arguments) -> Expression:
        taken = [takers[min(i, len(takers) - 1)](name, a) for i, a in enumerate(arguments)]
        return Call(function, tuple(taken), kind)

    return build


def string_argument(name: str, value: Expression) -> Expression:
    """VARCHAR."""
    if is_null(value) or types.is_string(value.type):
        return coerce(value, STRING)
    what = f"{name}()" if name.islower() and name.isidentifier() else name  # an operator's name is no call
    raise ValueError(f"{what} needs VARCHAR, not {type_name(value.type)}: cast it")


def blob_argument(name: str, value: Expression) -> Expression:
    """BLOB; a string in the statement is read as one."""
    if is_null(value) or is_string_literal(value) or pa.types.is_large_binary(value.type):
        return coerce(value, BLOB)
    raise ValueError(f"{name}() needs BLOB, not {type_name(value.type)}: cast it")


def double_argument(name: str, value: Expression) -> Expression:
    """Any number as DOUBLE."""
    return operators.as_double(value, f"{name}()")


def number_argument(name: str, value: Expression) -> Expression:
    """Any number; NULL is a BIGINT."""
    if is_null(value):
        return literal(None, BIGINT)
    if not types.is_numeric(value.type):
        raise ValueError(f"{name}() needs a number, not {type_name(value.type)}")
    return value


def integer_reader(kind: Any) -> Taker:
    """An integer that fits the type: a literal, or a narrower type."""
    low, high = types.integer_range(kind)

    def take(name: str, value: Expression) -> Expression:
        if is_null(value) or is_integer_literal(value) or is_string_literal(value):
            return coerce(value, kind)
        if types.is_integral(value.type):
            least, most = types.integer_range(value.type)
            if low <= least and most <= high:
                return coerce(value, kind)
        raise ValueError(f"{name}() needs {type_name(kind)}, not {type_name(value.type)}: cast it")

    return take


bigint: Final = integer_reader(BIGINT)
integer: Final = integer_reader(INTEGER)

_TAKERS: Final[Mapping[str, Taker]] = MappingProxyType(
    {
        "VARCHAR": string_argument,
        "BLOB": blob_argument,
        "DOUBLE": double_argument,
        "BIGINT": bigint,
        "INTEGER": integer,
    }
)
_ANSWERS: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "VARCHAR": STRING,
        "BLOB": BLOB,
        "DOUBLE": DOUBLE,
        "BIGINT": BIGINT,
        "INTEGER": INTEGER,
        "HUGEINT": types.HUGEINT,
        "TIME": pa.time64("us"),
        "TIMESTAMP_NS": pa.timestamp("ns"),
        "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
    }
)


def build_as_written(entry: Entry) -> Build:
    """How a call is bound of which the entry's one signature says all."""
    (signature,) = entry.parsed_signatures()
    (function,) = entry.plan_functions
    takers = (_TAKERS[parameter.type] for parameter in signature.parameters)
    return call_builder(function, _ANSWERS[signature.return_type], *takers)
