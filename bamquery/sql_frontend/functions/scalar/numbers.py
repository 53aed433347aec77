"""Functions of numbers and of bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import coerce, is_null
from bamquery.sql_frontend.functions.operators import BOOLEAN, STRING, literal
from bamquery.sql_frontend.functions.scalar.signature import (
    BIGINT,
    DOUBLE,
    Arguments,
    Build,
    bigint,
    blob_argument,
    double_argument,
    integer,
    number_argument,
    string_argument,
)

_TINYINT: Final = pa.int8()

_TESTS_OF_MOMENTS: Final[Mapping[str, bool]] = MappingProxyType({"isinf": False, "isfinite": True})


def _sign(name: str, arguments: Arguments) -> Expression:
    value = number_argument(name, arguments[0])
    if pa.types.is_decimal(value.type):
        value = coerce(value, DOUBLE)
    return Call("sign", (value,), _TINYINT)


def _log(name: str, arguments: Arguments) -> Expression:
    """The logarithm to base 10, or to the base that comes first."""
    *base, value = (Call("log10", (double_argument(name, a),), DOUBLE) for a in arguments)
    return Call("divide", (value, base[0]), DOUBLE) if base else value


def _scale_by(factor: float) -> Build:
    """A DOUBLE times a constant."""

    def build(name: str, arguments: Arguments) -> Expression:
        return Call("multiply", (double_argument(name, arguments[0]), literal(factor, DOUBLE)), DOUBLE)

    return build


def _pi(name: str, arguments: Arguments) -> Expression:
    return literal(math.pi, DOUBLE)


def digit_count(name: str, value: Expression) -> int:
    """A number of digits, which must be written in the statement; within what makes a difference."""
    if isinstance(value, Cast) and isinstance(value.argument, Literal) and value.type == value.argument.type:
        value = value.argument  # +2, or a cast that only makes the type firm
    if not isinstance(value, Literal) or value.is_null or not types.is_integral(value.type):
        raise ValueError(f"{name}() needs an integer, as written in the statement, for its number of digits")
    return max(min(int(value.value.as_py()), 400), -400)


def rounded_type(kind: Any, digits: int) -> pa.DataType:
    """What rounding to so many digits gives: whole decimals may get a digit more."""
    if not isinstance(kind, pa.Decimal128Type) or kind == HUGEINT:
        return kind
    if kind.scale == 0 and -kind.precision <= digits < 0:
        return pa.decimal128(min(kind.precision + 1, 38), 0)
    return pa.decimal128(kind.precision, min(max(digits, 0), kind.scale))


def _to_digits(function: str) -> Build:
    """Of trunc and round_even: numbers cut or rounded to so many digits."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = number_argument(name, arguments[0])
        count = digit_count(name, arguments[1]) if len(arguments) > 1 else 0
        kind: Any = value.type
        if pa.types.is_unsigned_integer(kind) and function == "round_even" and len(arguments) > 1:
            kind = HUGEINT if kind == pa.uint64() else BIGINT
            value = coerce(value, kind)
        if types.is_integral(kind) and count >= 0:
            return value
        if function == "round_even":
            kind = rounded_type(kind, count)
        elif isinstance(kind, pa.Decimal128Type):
            kind = pa.decimal128(kind.precision, min(max(count, 0), kind.scale))
        return Call(function, (value, literal(count, pa.int32())), kind)

    return build


def _two_integers(function: str) -> Build:
    """Of gcd and lcm: BIGINT, or HUGEINT where an argument does not fit that."""

    def build(name: str, arguments: Arguments) -> Expression:
        for argument in arguments:
            if not (is_null(argument) or types.is_integral(argument.type)):
                raise ValueError(f"{name}() needs integers, not {type_name(argument.type)}")
        wide = any(argument.type in (HUGEINT, pa.uint64()) for argument in arguments)
        kind = HUGEINT if wide else BIGINT
        return Call(function, tuple(coerce(argument, kind) for argument in arguments), kind)

    return build


def _test_of_float(function: str) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        value = arguments[0]
        if function in _TESTS_OF_MOMENTS and (
            pa.types.is_date(value.type) or pa.types.is_timestamp(value.type)
        ):
            answer = literal(_TESTS_OF_MOMENTS[function], BOOLEAN)  # there are no infinite ones
            missing = operators.is_null_test(value, negate=False)
            return Call("case", (missing, literal(None, BOOLEAN), answer), BOOLEAN)
        if not pa.types.is_float32(value.type):
            value = double_argument(name, value)
        return Call(function, (value,), BOOLEAN)

    return build


def _next_after(name: str, arguments: Arguments) -> Expression:
    numbers = [number_argument(name, argument) for argument in arguments]
    floats = [pa.types.is_float32(argument.type) for argument in numbers]
    if any(floats) and not any(pa.types.is_float64(argument.type) for argument in numbers):
        return Call("nextafter", tuple(coerce(argument, pa.float32()) for argument in numbers), pa.float32())
    return Call("nextafter", tuple(double_argument(name, argument) for argument in arguments), DOUBLE)


def _bit_count(name: str, arguments: Arguments) -> Expression:
    value = arguments[0]
    if is_null(value):
        return literal(None, _TINYINT)
    if not types.is_integral(value.type):
        raise ValueError(f"{name}() needs an integer, not {type_name(value.type)}")
    return Call("bit_count", (value,), _TINYINT)


def _xor(name: str, arguments: Arguments) -> Expression:
    return operators.bitwise("bit_xor", *arguments)


def _digits(function: str) -> Build:
    """Hex and bin: of integers as two's complement, of strings and blobs byte by byte."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = arguments[0]
        if is_null(value):
            return literal(None, STRING)
        if types.is_string(value.type):
            return Call(function, (string_argument(name, value),), STRING)
        if pa.types.is_large_binary(value.type) and function == "hex":
            return Call(function, (blob_argument(name, value),), STRING)
        if types.is_integral(value.type):
            kind = value.type if value.type in (HUGEINT, pa.uint64()) else BIGINT
            return Call(function, (coerce(value, kind),), STRING)
        raise ValueError(f"{name}() needs an integer or VARCHAR, not {type_name(value.type)}")

    return build


def _to_base(name: str, arguments: Arguments) -> Expression:
    least = arguments[2] if len(arguments) > 2 else literal(0, pa.int32())
    return Call(
        "to_base", (bigint(name, arguments[0]), integer(name, arguments[1]), integer(name, least)), STRING
    )


def _operator(build: Any) -> Build:
    return lambda name, arguments: build(*arguments)


BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        "log": _log,
        "sign": _sign,
        "degrees": _scale_by(180.0 / math.pi),
        "radians": _scale_by(math.pi / 180.0),
        "pi": _pi,
        **{name: _to_digits(name) for name in ("trunc", "round_even")},
        **{name: _two_integers(name) for name in ("gcd", "lcm")},
        **{name: _test_of_float(name) for name in ("isnan", "isinf", "isfinite", "signbit")},
        "nextafter": _next_after,
        "add": _operator(operators.add),
        "subtract": _operator(operators.subtract),
        "multiply": _operator(operators.multiply),
        "divide": _operator(operators.floor_divide),
        "mod": _operator(operators.modulo),
        "xor": _xor,
        "bit_count": _bit_count,
        **{name: _digits(name) for name in ("hex", "bin")},
        "to_base": _to_base,
    }
)
"""How calls are bound of which the reference's signatures do not say all, by the first of the names."""
