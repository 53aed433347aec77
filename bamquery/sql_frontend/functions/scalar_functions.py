"""Scalar functions by their DuckDB names: the casts of arguments, the call.

Functions here raise `ValueError` in words for arguments that do not fit; the binder knows the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.function_catalog import any_type
from bamquery.function_catalog import numbers as of_numbers
from bamquery.function_catalog import strings as of_strings
from bamquery.function_catalog import times as of_times
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.bindings import bindings
from bamquery.sql_frontend.functions.coercion import coerce, common_type, decode, is_null
from bamquery.sql_frontend.functions.operators import STRING, literal
from bamquery.sql_frontend.functions.scalar import dates, intervals, numbers
from bamquery.sql_frontend.functions.scalar import strings as string_functions
from bamquery.sql_frontend.functions.scalar.dates import at_time_zone, date_part
from bamquery.sql_frontend.functions.scalar.intervals import interval_of_unit
from bamquery.sql_frontend.functions.scalar.signature import (
    Arguments,
    Build,
    build_as_written,
    number_argument,
)
from bamquery.sql_frontend.functions.scalar.strings import match

__all__ = [
    "FUNCTIONS",
    "at_time_zone",
    "call",
    "case",
    "date_part",
    "interval_of_unit",
    "like",
]

_SPELLED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "like": "LIKE",
        "ilike": "ILIKE",
        "like_escape": "LIKE ... ESCAPE",
        "ilike_escape": "ILIKE ... ESCAPE",
        "glob": "GLOB",
        "regexp_full_match": "SIMILAR TO",
        "regexp_matches": "~",
        "starts_with": "^@",
    }
)
"""How the operators on strings are written."""


def call(name: str, arguments: Arguments) -> Expression:
    """The call of the scalar function of that name (any case), one of `FUNCTIONS`.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    return FUNCTIONS[name.lower()].bind(name.lower(), arguments)


def _same_type(function: str) -> Build:
    """Of a number, with the argument's own type."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = number_argument(name, arguments[0])
        if pa.types.is_unsigned_integer(value.type):
            return Cast(value, value.type)  # the same values, but in GROUP BY CUBE a key of its own
        return Call(function, (value,), value.type)

    return build


def _round_toward(function: str) -> Build:
    """Of floor and ceil: DOUBLE of an integer, a decimal's scale becomes 0."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = number_argument(name, arguments[0])
        if types.is_integral(value.type):
            return coerce(value, pa.float64())
        if isinstance(value.type, pa.Decimal128Type):
            return Call(function, (value,), pa.decimal128(value.type.precision, 0))
        return Call(function, (value,), value.type)

    return build


def _round(name: str, arguments: Arguments) -> Expression:
    value = number_argument(name, arguments[0])
    count = numbers.digit_count(name, arguments[1]) if len(arguments) > 1 else 0
    if pa.types.is_unsigned_integer(value.type):
        value = coerce(value, HUGEINT if value.type == pa.uint64() else pa.int64())
    return Call("round", (value, literal(count, pa.int32())), numbers.rounded_type(value.type, count))


def like(function: str, subject: Expression, *patterns: Expression) -> Expression:
    """LIKE, ILIKE, GLOB and regular expressions: `function` is of `function_catalog.plan_functions`."""
    return match(function, _SPELLED.get(function, function), *(decode(e) for e in (subject, *patterns)))


def _coalesce(name: str, arguments: Arguments) -> Expression:
    kind = common_type(arguments)
    if len(arguments) == 1:
        return coerce(arguments[0], kind)
    return Call("coalesce", tuple(coerce(argument, kind) for argument in arguments), kind)


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """CASE WHEN condition THEN value ... ELSE otherwise END."""
    values = [decode(value) for _, value in branches] + [decode(otherwise)]
    kind = common_type([values[-1], *values[:-1]])
    arguments: list[Expression] = []
    for (condition, _), value in zip(branches, values, strict=False):
        arguments += [operators.as_boolean(condition, "WHEN"), coerce(value, kind)]
    return Call("case", (*arguments, coerce(values[-1], kind)), kind)


def _nullif(name: str, arguments: Arguments) -> Expression:
    value, other = arguments
    if is_null(value):
        return value
    return Call(
        "case", (operators.compare("equal", value, other), literal(None, value.type), value), value.type
    )


def _if(name: str, arguments: Arguments) -> Expression:
    condition, value, otherwise = arguments
    return case([(condition, value)], otherwise)


def _extreme(function: str) -> Build:
    """Greatest and least: nulls do not count."""

    def build(name: str, arguments: Arguments) -> Expression:
        kind = common_type(arguments)
        if pa.types.is_null(kind):
            return literal(None, kind)
        given = tuple(coerce(argument, kind) for argument in arguments)
        return Call(function, given, kind) if len(given) > 1 else given[0]

    return build


def _typeof(name: str, arguments: Arguments) -> Expression:
    spelled = type_name(arguments[0].type)
    return literal(spelled.lower() if name == "pg_typeof" else spelled, STRING)


def _constant_or_null(name: str, arguments: Arguments) -> Expression:
    """The first, or null where another is null; a constant NULL leaves it without a type, as in DuckDB."""
    value, *others = arguments
    if any(map(_is_constant_null, arguments)):
        return literal(None, pa.null())
    tests = [operators.is_null_test(other, negate=False) for other in others]
    missing = tests[0] if len(tests) == 1 else operators.logical("or", tests)
    return Call("case", (missing, literal(None, value.type), value), value.type)


def _is_constant_null(expression: Expression) -> bool:
    while isinstance(expression, Cast):
        expression = expression.argument
    return isinstance(expression, Literal) and expression.is_null


def _floor_quotient(name: str, arguments: Arguments) -> Expression:
    """fdiv(): floor(x / y)."""
    return _round_toward("floor")(name, [operators.divide(*arguments)])


def _floor_modulo(name: str, arguments: Arguments) -> Expression:
    """fmod(): x - y * floor(x / y)."""
    whole = _floor_quotient(name, arguments)
    return operators.subtract(arguments[0], operators.multiply(arguments[1], whole))


BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        **numbers.BUILDERS,
        **string_functions.BUILDERS,
        **dates.BUILDERS,
        **intervals.BUILDERS,
        "abs": _same_type("abs"),
        **{name: _round_toward(name) for name in ("floor", "ceil")},
        "round": _round,
        "fmod": _floor_modulo,
        "fdiv": _floor_quotient,
        **dict.fromkeys(("coalesce", "ifnull"), _coalesce),
        "nullif": _nullif,
        "if": _if,
        **{name: _extreme(name) for name in ("greatest", "least")},
        "constant_or_null": _constant_or_null,
        **dict.fromkeys(("typeof", "pg_typeof"), _typeof),
    }
)

FUNCTIONS: Final = bindings(
    (entry for room in (of_numbers, of_strings, of_times, any_type) for entry in room.SECTION.entries),
    lambda entry: BUILDERS.get(entry.name) or build_as_written(entry),
)
"""All of values, by name; those of the connection are bound elsewhere."""
