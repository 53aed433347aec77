"""Scalar functions by their DuckDB names: argument counts, the casts of arguments, the call.

Functions here raise `ValueError` in words for arguments that do not fit; the binder knows the place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.naming import suggestion
from bamquery.plan import types
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.plan.types import HUGEINT
from bamquery.sql import operators
from bamquery.sql.coercion import coerce, common_type, decode, is_null, is_string_literal
from bamquery.sql.operators import BOOLEAN, STRING, literal
from bamquery.type_names import type_name

Arguments = Sequence[Expression]

DATE_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: unit
        for unit, names in {
            "year": ("year", "years", "y", "yr", "yrs"),
            "quarter": ("quarter", "quarters"),
            "month": ("month", "months", "mon", "mons"),
            "day": ("day", "days", "d", "dayofmonth"),
            "hour": ("hour", "hours", "h", "hr", "hrs"),
            "minute": ("minute", "minutes", "m", "min", "mins"),
            "second": ("second", "seconds", "s", "sec", "secs"),
            "dayofweek": ("dayofweek", "dow", "weekday"),
            "isodow": ("isodow",),
            "dayofyear": ("dayofyear", "doy"),
            "week": ("week", "weeks", "w", "weekofyear"),
        }.items()
        for name in names
    }
)
"""DuckDB's names of a date's parts, and those of `bamquery.plan.functions`."""

_TRUNCATIONS: Final = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_CLOCK_PARTS: Final = frozenset({"hour", "minute", "second"})
_MICROSECONDS: Final = pa.timestamp("us")


@dataclass(frozen=True, slots=True)
class Function:
    """How calls of a name are bound; `most` is None where any number of arguments will do."""

    build: Callable[[str, Arguments], Expression]
    least: int
    most: int | None


def call(name: str, arguments: Arguments) -> Expression:
    """The call of the scalar function of that name (any case), one of `FUNCTIONS`.

    Raises:
        ValueError: a number or type of arguments that it does not take.
    """
    function = FUNCTIONS[name.lower()]
    check_count(name, len(arguments), function.least, function.most)
    return function.build(name.lower(), [decode(argument) for argument in arguments])


def check_count(name: str, count: int, least: int, most: int | None) -> None:
    """Raise `ValueError` where a function is called with too few or too many arguments."""
    if least <= count and (most is None or count <= most):
        return
    if most is None:
        wanted = f"at least {least} argument{'s' * (least != 1)}"
    elif least == most:
        wanted = f"{least} argument{'s' * (least != 1)}" if least else "no arguments"
    else:
        wanted = f"{least} {'or' if most == least + 1 else 'to'} {most} arguments"
    raise ValueError(f"{name.lower()}() takes {wanted}, not {count}")


def date_part(unit: str, value: Expression, what: str) -> Expression:
    """A part of a date, time or timestamp; `epoch` too."""
    value = decode(value)
    if unit.lower() == "epoch":
        return _epoch(what, [value])
    part = _unit(unit, DATE_PARTS)
    if pa.types.is_time64(value.type) and part in _CLOCK_PARTS:
        return Call("date_part", (literal(part, STRING), value), pa.int64())
    if pa.types.is_date(value.type) and part in _CLOCK_PARTS:
        value = Cast(value, _MICROSECONDS)
    _require_date(what, value)
    return Call("date_part", (literal(part, STRING), value), pa.int64())


def _unit(name: str, units: Mapping[str, str]) -> str:
    unit = units.get(name.lower())
    if unit is None:
        raise ValueError(f"'{name}' is not a part of a date that BamQuery knows.{suggestion(name, units)}")
    return unit


def _require_date(what: str, value: Expression) -> None:
    if not (pa.types.is_date(value.type) or pa.types.is_timestamp(value.type)):
        hint = ": write DATE '...' or TIMESTAMP '...'" if is_string_literal(value) else ""
        raise ValueError(f"{what} needs a date or timestamp, not {type_name(value.type)}{hint}")


def _same_type(function: str) -> Callable[[str, Arguments], Expression]:
    """Of a number, with the argument's own type."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = _number(name, arguments[0])
        if pa.types.is_unsigned_integer(value.type):
            return value
        return Call(function, (value,), value.type)

    return build


def _number(name: str, value: Expression) -> Expression:
    if is_null(value):
        return literal(None, pa.int64())
    if not types.is_numeric(value.type):
        raise ValueError(f"{name}() needs a number, not {type_name(value.type)}")
    return value


def _toward(function: str) -> Callable[[str, Arguments], Expression]:
    """Of floor and ceil: DOUBLE of an integer, a decimal's scale becomes 0."""

    def build(name: str, arguments: Arguments) -> Expression:
        value = _number(name, arguments[0])
        if types.is_integral(value.type):
            return coerce(value, pa.float64())
        if isinstance(value.type, pa.Decimal128Type):
            return Call(function, (value,), pa.decimal128(value.type.precision, 0))
        return Call(function, (value,), value.type)

    return build


def _round(name: str, arguments: Arguments) -> Expression:
    value = _number(name, arguments[0])
    digits = arguments[1] if len(arguments) > 1 else literal(0, pa.int32())
    if not isinstance(digits, Literal) or not digits.value.is_valid or not types.is_integral(digits.type):
        raise ValueError(f"{name}() needs an integer, as written in the statement, for its number of digits")
    count = max(min(int(digits.value.as_py()), 400), -400)
    if pa.types.is_unsigned_integer(value.type):
        value = coerce(value, HUGEINT if value.type == pa.uint64() else pa.int64())
    kind = value.type
    if isinstance(kind, pa.Decimal128Type) and not types.is_integral(kind):
        kind = pa.decimal128(kind.precision, min(max(count, 0), kind.scale))
    return Call("round", (value, literal(count, pa.int32())), kind)


def _double(function: str) -> Callable[[str, Arguments], Expression]:
    def build(name: str, arguments: Arguments) -> Expression:
        doubles = tuple(operators.as_double(argument, f"{name}()") for argument in arguments)
        return Call(function, doubles, pa.float64())

    return build


def _text(what: str, value: Expression) -> Expression:
    if is_null(value) or types.is_string(value.type):
        return coerce(value, STRING)
    raise ValueError(f"{what} needs VARCHAR, not {type_name(value.type)}: cast it")


def _of_text(function: str, kind: pa.DataType) -> Callable[[str, Arguments], Expression]:
    def build(name: str, arguments: Arguments) -> Expression:
        return Call(function, (_text(f"{name}()", arguments[0]),), kind)

    return build


def _matching(function: str) -> Callable[[str, Arguments], Expression]:
    def build(name: str, arguments: Arguments) -> Expression:
        return _match(function, f"{name}()", *arguments)

    return build


def _match(function: str, what: str, text: Expression, pattern: Expression) -> Expression:
    """A text and a pattern, which must be a literal."""
    text, pattern = _text(what, text), _text(what, pattern)
    if not isinstance(pattern, Literal):
        raise ValueError(f"{what} needs a pattern that is written in the statement, not computed")
    return Call(function, (text, pattern), BOOLEAN)


def like(function: str, text: Expression, pattern: Expression) -> Expression:
    """LIKE or ILIKE: `function` is `like` or `ilike`."""
    return _match(function, function.upper(), decode(text), decode(pattern))


def _substring(name: str, arguments: Arguments) -> Expression:
    window = [*arguments[1:], literal(None, pa.int64())][:2]
    places = []
    for place in window:
        if not isinstance(place, Literal) or not (types.is_integral(place.type) or not place.value.is_valid):
            raise ValueError(f"{name}() needs integers, as written in the statement, for start and length")
        places.append(coerce(place, pa.int64()))
    if any(is_null(argument) for argument in arguments[1:]):
        return literal(None, STRING)
    return Call("substring", (_text(f"{name}()", arguments[0]), *places), STRING)


def _left(name: str, arguments: Arguments) -> Expression:
    return _substring(name, [arguments[0], literal(1, pa.int64()), arguments[1]])


def _concat(name: str, arguments: Arguments) -> Expression:
    """concat() takes a null for an empty string, unlike ||."""
    texts = [operators.as_string(argument) for argument in arguments]
    filled = [Call("coalesce", (text, literal("", STRING)), STRING) for text in texts]
    result: Expression = filled[0]
    for text in filled[1:]:
        result = Call("concat", (result, text), STRING)
    return result


def _coalesce(name: str, arguments: Arguments) -> Expression:
    kind = common_type(arguments)
    if len(arguments) == 1:
        return coerce(arguments[0], kind)
    return Call("coalesce", tuple(coerce(argument, kind) for argument in arguments), kind)


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """CASE WHEN condition THEN value ... ELSE otherwise END."""
    values = [decode(value) for _, value in branches] + [decode(otherwise)]
    kind = common_type(values)
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


def _epoch(name: str, arguments: Arguments) -> Expression:
    (value,) = arguments
    _require_date(name, value)
    if pa.types.is_date(value.type):
        value = Cast(value, _MICROSECONDS)
    return Call("epoch", (value,), pa.float64())


def _date_part(name: str, arguments: Arguments) -> Expression:
    return date_part(_unit_argument(name, arguments[0]), arguments[1], f"{name}()")


def _date_trunc(name: str, arguments: Arguments) -> Expression:
    unit = _unit(_unit_argument(name, arguments[0]), DATE_PARTS)
    if unit not in _TRUNCATIONS:
        raise ValueError(f"{name}() does not take '{unit}'")
    value = arguments[1]
    _require_date(f"{name}()", value)
    kind = value.type
    if not (isinstance(kind, pa.TimestampType) and kind.tz is not None):
        kind = _MICROSECONDS
    return Call("date_trunc", (literal(unit, STRING), coerce(value, kind)), kind)


def _unit_argument(name: str, unit: Expression) -> str:
    if not is_string_literal(unit):
        raise ValueError(f"{name}() needs the part's name as a string in the statement")
    assert isinstance(unit, Literal)
    return str(unit.value.as_py())


def _part_named(name: str, arguments: Arguments) -> Expression:
    return date_part(name, arguments[0], f"{name}()")


def _modulo(name: str, arguments: Arguments) -> Expression:
    return operators.modulo(*arguments)


def _named(
    names: str, build: Callable[[str, Arguments], Expression], least: int, most: int | None = -1
) -> dict[str, Function]:
    function = Function(build, least, least if most == -1 else most)
    return dict.fromkeys(names.split(), function)


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **_named("abs", _same_type("abs"), 1),
        **_named("floor", _toward("floor"), 1),
        **_named("ceil ceiling", _toward("ceil"), 1),
        **_named("round", _round, 1, 2),
        **_named("sqrt", _double("sqrt"), 1),
        **_named("ln", _double("ln"), 1),
        **_named("exp", _double("exp"), 1),
        **_named("power pow", _double("power"), 2),
        **_named("mod", _modulo, 2),
        **_named("coalesce", _coalesce, 1, None),
        **_named("ifnull", _coalesce, 2),
        **_named("nullif", _nullif, 2),
        **_named("if", _if, 3),
        **_named("lower lcase", _of_text("lower", STRING), 1),
        **_named("upper ucase", _of_text("upper", STRING), 1),
        **_named("length len char_length character_length", _of_text("length", pa.int64()), 1),
        **_named("trim", _of_text("trim", STRING), 1),
        **_named("concat", _concat, 1, None),
        **_named("starts_with prefix", _matching("starts_with"), 2),
        **_named("contains", _matching("contains"), 2),
        **_named("substring substr", _substring, 2, 3),
        **_named("left", _left, 2),
        **_named("date_part datepart", _date_part, 2),
        **_named("date_trunc datetrunc", _date_trunc, 2),
        **_named("epoch", _epoch, 1),
        **_named("year quarter month day dayofmonth hour minute second", _part_named, 1),
        **_named("dayofweek weekday isodow dayofyear week weekofyear", _part_named, 1),
    }
)
