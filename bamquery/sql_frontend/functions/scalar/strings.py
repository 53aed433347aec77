"""Functions of strings and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.assumptions import ask
from bamquery.plan.expressions import Call, Expression, Literal
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import coerce, is_null, is_string_literal
from bamquery.sql_frontend.functions.operators import BOOLEAN, STRING, literal
from bamquery.sql_frontend.functions.scalar.signature import (
    BIGINT,
    INTEGER,
    Arguments,
    Build,
    bigint,
    blob_argument,
    call_builder,
    string_argument,
)

_MOST_GROUPS: Final = 9
_PATTERN_FUNCTIONS: Final = ("starts_with", "ends_with", "like_escape", "ilike_escape")


def _trim(function: str) -> Build:
    """Spaces, or the characters of the second argument."""

    def build(name: str, arguments: Arguments) -> Expression:
        value, *characters = (string_argument(name, argument) for argument in arguments)
        return Call(f"{function}_of" if characters else function, (value, *characters), STRING)

    return build


def _substring(name: str, arguments: Arguments) -> Expression:
    if any(is_null(argument) for argument in arguments):
        return literal(None, STRING)
    value, *places = (string_argument(name, arguments[0]), *(bigint(name, a) for a in arguments[1:]))
    for place in places:
        _check_place(name, place)
    if all(isinstance(place, Literal) and not place.is_null for place in places):
        return Call("substring", (value, *[*places, literal(None, BIGINT)][:2]), STRING)
    return Call("substring_at", (value, *places), STRING)


def _check_place(name: str, place: Expression) -> None:
    """Raise `ValueError` where a constant is no place or length that a text may have."""
    if isinstance(place, Literal) and not place.is_null and ask(_is_too_far, place):
        raise ValueError(f"{name}(): {place.value.as_py()} is beyond any place in a text, 2^32")


def _is_too_far(place: Literal) -> bool:
    return not -types.FURTHEST_PLACE <= place.value.as_py() < types.FURTHEST_PLACE


def _is_counted_from_left(count: Literal) -> bool:
    return bool(count.value.as_py() >= 0)


def _left(name: str, arguments: Arguments) -> Expression:
    value, count = string_argument(name, arguments[0]), bigint(name, arguments[1])
    if isinstance(count, Literal) and not count.is_null and ask(_is_counted_from_left, count):
        _check_place(name, count)
    if isinstance(count, Literal) and not count.is_null and ask(_is_counted_from_left, count):
        return Call("substring", (value, literal(1, BIGINT), count), STRING)
    return Call("left", (value, count), STRING)


def _concat(name: str, arguments: Arguments) -> Expression:
    """concat() takes a null for an empty string, unlike ||."""
    strings = [operators.as_string(argument) for argument in arguments]
    filled = [Call("coalesce", (value, literal("", STRING)), STRING) for value in strings]
    result: Expression = filled[0]
    for value in filled[1:]:
        result = Call("concat", (result, value), STRING)
    return result


def _concat_ws(name: str, arguments: Arguments) -> Expression:
    separator, *others = (operators.as_string(argument) for argument in arguments)
    return Call("concat_ws", (separator, *others), STRING)


def _string_or_blob(function: str, kind: pa.DataType) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        (value,) = arguments
        is_blob = pa.types.is_large_binary(value.type)
        return Call(
            function, (blob_argument(name, value) if is_blob else string_argument(name, value),), kind
        )

    return build


def _octet_length(name: str, arguments: Arguments) -> Expression:
    (value,) = arguments
    if types.is_string(value.type):
        raise ValueError(f"{name}() needs BLOB, not VARCHAR: strlen() counts the bytes of a text")
    return Call("strlen", (blob_argument(name, value),), BIGINT)


def _pattern_function(function: str) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        return match(function, name, *arguments)

    return build


def _contains(name: str, arguments: Arguments) -> Expression:
    """A NULL beside a constant has no type: there are lists and maps that contain, too."""
    whole, part = arguments
    if is_null(part) and (is_null(whole) or is_string_literal(whole)):
        raise ValueError(f"{name}() needs VARCHAR, not NULL: write NULL::VARCHAR")
    return match("contains", name, *arguments)


def _negated_pattern_function(function: str) -> Build:
    return lambda name, arguments: operators.negation(match(function, name, *arguments))


def match(function: str, name: str, *arguments: Expression) -> Expression:
    """Whether a text fits a pattern; null where either is null."""
    return Call(function, tuple(string_argument(name, argument) for argument in arguments), BOOLEAN)


def _regexp(function: str, kind: pa.DataType, strings: int) -> Build:
    """A text, patterns, and options, which are constants."""

    def build(name: str, arguments: Arguments) -> Expression:
        given = [string_argument(name, argument) for argument in arguments]
        check_options(name, given[strings:])
        return Call(function, tuple(given), kind)

    return build


def check_options(name: str, given: Arguments) -> None:
    """Raise `ValueError` unless the options of a regular expression are written in the statement."""
    for options in given:
        if not isinstance(options, Literal):
            raise ValueError(f"{name}() needs its options as a string in the statement")
        if options.is_null:
            raise ValueError(f"the options of {name}() cannot be NULL")


def _regexp_extract(name: str, arguments: Arguments) -> Expression:
    value, pattern = (string_argument(name, argument) for argument in arguments[:2])
    if len(arguments) == 2:
        return Call("regexp_extract", (value, pattern), STRING)
    group = arguments[2]
    options = [string_argument(name, argument) for argument in arguments[3:]]
    check_options(name, options)
    if is_null(group):  # DuckDB's answer
        keeps = any(isinstance(given, Literal) and "k" in given.value.as_py() for given in options)
        found = value if keeps else literal("", STRING)
        return Call(
            "case", (operators.is_null_test(value, negate=False), literal(None, STRING), found), STRING
        )
    if not isinstance(group, Literal) or not types.is_integral(group.type):
        raise ValueError(f"{name}() needs the group's number as an integer in the statement")
    if not 0 <= int(group.value.as_py()) <= _MOST_GROUPS:
        raise ValueError(f"a group's number must be from 0 to {_MOST_GROUPS}, not {group.value.as_py()}")
    return Call("regexp_extract", (value, pattern, coerce(group, INTEGER), *options), STRING)


def _parse_filename(name: str, arguments: Arguments) -> Expression:
    path, *others = arguments
    if len(others) == 1 and types.is_string(others[0].type):
        others.insert(0, literal(False, BOOLEAN))
    takers = (_flag, _separator)
    return Call(
        "parse_filename",
        (
            string_argument(name, path),
            *(take(name, value) for take, value in zip(takers, others, strict=False)),
        ),
        STRING,
    )


def _flag(name: str, value: Expression) -> Expression:
    """BOOLEAN; NULL is FALSE."""
    return Call("coalesce", (operators.as_boolean(value, name), literal(False, BOOLEAN)), BOOLEAN)


def _separator(name: str, value: Expression) -> Expression:
    """A word for what parts of a path stand between; NULL is as any word that is none."""
    return Call("coalesce", (string_argument(name, value), literal("both_slash", STRING)), STRING)


BUILDERS: Final[Mapping[str, Build]] = MappingProxyType(
    {
        "octet_length": _octet_length,
        **{name: _trim(name) for name in ("trim", "ltrim", "rtrim")},
        "concat": _concat,
        "concat_ws": _concat_ws,
        "substring": _substring,
        "left": _left,
        **{name: _pattern_function(name) for name in _PATTERN_FUNCTIONS},
        "contains": _contains,
        "not_like_escape": _negated_pattern_function("like_escape"),
        "not_ilike_escape": _negated_pattern_function("ilike_escape"),
        "regexp_matches": _regexp("regexp_matches", BOOLEAN, 2),
        "regexp_full_match": _regexp("regexp_full_match", BOOLEAN, 2),
        "regexp_replace": _regexp("regexp_replace", STRING, 3),
        "regexp_extract": _regexp_extract,
        **{name: _string_or_blob(name, STRING) for name in ("md5", "sha1", "sha256")},
        "parse_filename": _parse_filename,
        "parse_dirname": call_builder("parse_dirname", STRING, string_argument, _separator),
        "parse_dirpath": call_builder("parse_dirpath", STRING, string_argument, _separator),
    }
)
"""How calls are bound of which the reference's signatures do not say all, by the first of the names."""
