"""Functions of texts and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import Call, Expression, Literal
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import coerce, is_null, is_string_literal
from bamquery.sql_frontend.functions.operators import BOOLEAN, STRING, literal
from bamquery.sql_frontend.functions.scalar.signature import (
    BIGINT,
    BLOB,
    DOUBLE,
    INTEGER,
    Arguments,
    Build,
    Function,
    bigint,
    blob,
    call,
    double,
    integer,
    named,
    text,
)

_MOST_GROUPS: Final = 9


def _trim(function: str) -> Build:
    """Spaces, or the characters of the second argument."""

    def build(name: str, arguments: Arguments) -> Expression:
        value, *characters = (text(name, argument) for argument in arguments)
        return Call(f"{function}_of" if characters else function, (value, *characters), STRING)

    return build


def _substring(name: str, arguments: Arguments) -> Expression:
    if any(is_null(argument) for argument in arguments):
        return literal(None, STRING)
    value, *places = (text(name, arguments[0]), *(bigint(name, a) for a in arguments[1:]))
    for place in places:
        _check_place(name, place)
    if all(isinstance(place, Literal) and place.value.is_valid for place in places):
        return Call("substring", (value, *[*places, literal(None, BIGINT)][:2]), STRING)
    return Call("substring_at", (value, *places), STRING)


def _check_place(name: str, place: Expression) -> None:
    """Raise `ValueError` where a constant is no place or length that a text may have."""
    value = place.value.as_py() if isinstance(place, Literal) else None
    if value is not None and not -types.FURTHEST_PLACE <= value < types.FURTHEST_PLACE:
        raise ValueError(f"{name}(): {value} is beyond any place in a text, 2^32")


def _left(name: str, arguments: Arguments) -> Expression:
    value, count = text(name, arguments[0]), bigint(name, arguments[1])
    if isinstance(count, Literal) and count.value.is_valid and count.value.as_py() >= 0:
        _check_place(name, count)
    if isinstance(count, Literal) and count.value.is_valid and count.value.as_py() >= 0:
        return Call("substring", (value, literal(1, BIGINT), count), STRING)
    return Call("left", (value, count), STRING)


def _right(name: str, arguments: Arguments) -> Expression:
    return Call("right", (text(name, arguments[0]), bigint(name, arguments[1])), STRING)


def _concat(name: str, arguments: Arguments) -> Expression:
    """concat() takes a null for an empty string, unlike ||."""
    texts = [operators.as_string(argument) for argument in arguments]
    filled = [Call("coalesce", (value, literal("", STRING)), STRING) for value in texts]
    result: Expression = filled[0]
    for value in filled[1:]:
        result = Call("concat", (result, value), STRING)
    return result


def _concat_ws(name: str, arguments: Arguments) -> Expression:
    separator, *others = (operators.as_string(argument) for argument in arguments)
    return Call("concat_ws", (separator, *others), STRING)


def _text_or_blob(function: str, kind: pa.DataType) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        (value,) = arguments
        is_blob = pa.types.is_large_binary(value.type)
        return Call(function, (blob(name, value) if is_blob else text(name, value),), kind)

    return build


def _octet_length(name: str, arguments: Arguments) -> Expression:
    (value,) = arguments
    if types.is_string(value.type):
        raise ValueError(f"{name}() needs BLOB, not VARCHAR: strlen() counts the bytes of a text")
    return Call("strlen", (blob(name, value),), BIGINT)


def _matching(function: str) -> Build:
    def build(name: str, arguments: Arguments) -> Expression:
        return match(function, name, *arguments)

    return build


def _contains(name: str, arguments: Arguments) -> Expression:
    """A NULL beside a constant has no type: there are lists and maps that contain, too."""
    whole, part = arguments
    if is_null(part) and (is_null(whole) or is_string_literal(whole)):
        raise ValueError(f"{name}() needs VARCHAR, not NULL: write NULL::VARCHAR")
    return match("contains", name, *arguments)


def _not_matching(function: str) -> Build:
    return lambda name, arguments: operators.negation(match(function, name, *arguments))


def match(function: str, name: str, *arguments: Expression) -> Expression:
    """Whether a text fits a pattern; null where either is null."""
    return Call(function, tuple(text(name, argument) for argument in arguments), BOOLEAN)


def _regexp(function: str, kind: pa.DataType, texts: int) -> Build:
    """A text, patterns, and options, which are constants."""

    def build(name: str, arguments: Arguments) -> Expression:
        given = [text(name, argument) for argument in arguments]
        check_options(name, given[texts:])
        return Call(function, tuple(given), kind)

    return build


def check_options(name: str, given: Arguments) -> None:
    """Raise `ValueError` unless the options of a regular expression are written in the statement."""
    for options in given:
        if not isinstance(options, Literal):
            raise ValueError(f"{name}() needs its options as a string in the statement")
        if not options.value.is_valid:
            raise ValueError(f"the options of {name}() cannot be NULL")


def _regexp_extract(name: str, arguments: Arguments) -> Expression:
    value, pattern = (text(name, argument) for argument in arguments[:2])
    if len(arguments) == 2:
        return Call("regexp_extract", (value, pattern), STRING)
    group = arguments[2]
    options = [text(name, argument) for argument in arguments[3:]]
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
        (text(name, path), *(take(name, value) for take, value in zip(takers, others, strict=False))),
        STRING,
    )


def _flag(name: str, value: Expression) -> Expression:
    """BOOLEAN; NULL is FALSE."""
    return Call("coalesce", (operators.as_boolean(value, name), literal(False, BOOLEAN)), BOOLEAN)


def _separator(name: str, value: Expression) -> Expression:
    """A word for what parts of a path stand between; NULL is as any word that is none."""
    return Call("coalesce", (text(name, value), literal("both_slash", STRING)), STRING)


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **named("lower lcase", call("lower", STRING, text), 1),
        **named("upper ucase", call("upper", STRING, text), 1),
        **named("length len char_length character_length", call("length", BIGINT, text), 1),
        **named("strlen", call("strlen", BIGINT, text), 1),
        **named("bit_length", call("bit_length", BIGINT, text), 1),
        **named("octet_length", _octet_length, 1),
        **named("trim", _trim("trim"), 1, 2),
        **named("ltrim", _trim("ltrim"), 1, 2),
        **named("rtrim", _trim("rtrim"), 1, 2),
        **named("concat", _concat, 1, None),
        **named("concat_ws", _concat_ws, 2, None),
        **named("substring substr", _substring, 2, 3),
        **named("left", _left, 2),
        **named("right", _right, 2),
        **named("lpad", call("lpad", STRING, text, integer, text), 3),
        **named("rpad", call("rpad", STRING, text, integer, text), 3),
        **named("replace", call("replace", STRING, text), 3),
        **named("translate", call("translate", STRING, text), 3),
        **named("overlay", call("overlay", STRING, text, text, bigint), 3, 4),
        **named("repeat", call("repeat", STRING, text, bigint), 2),
        **named("reverse", call("reverse", STRING, text), 1),
        **named("split_part", call("split_part", STRING, text, text, bigint), 3),
        **named("position strpos instr", call("position", BIGINT, text), 2),
        **named("starts_with prefix", _matching("starts_with"), 2),
        **named("ends_with suffix", _matching("ends_with"), 2),
        **named("contains", _contains, 2),
        **named("like_escape", _matching("like_escape"), 3),
        **named("ilike_escape", _matching("ilike_escape"), 3),
        **named("not_like_escape", _not_matching("like_escape"), 3),
        **named("not_ilike_escape", _not_matching("ilike_escape"), 3),
        **named("regexp_matches", _regexp("regexp_matches", BOOLEAN, 2), 2, 3),
        **named("regexp_full_match", _regexp("regexp_full_match", BOOLEAN, 2), 2, 3),
        **named("regexp_replace", _regexp("regexp_replace", STRING, 3), 3, 4),
        **named("regexp_extract", _regexp_extract, 2, 4),
        **named("regexp_escape", call("regexp_escape", STRING, text), 1),
        **named("ascii", call("ascii", INTEGER, text), 1),
        **named("ord unicode", call("unicode", INTEGER, text), 1),
        **named("chr", call("chr", STRING, integer), 1),
        **named("md5", _text_or_blob("md5", STRING), 1),
        **named("sha1", _text_or_blob("sha1", STRING), 1),
        **named("sha256", _text_or_blob("sha256", STRING), 1),
        **named("base64 to_base64", call("to_base64", STRING, blob), 1),
        **named("from_base64", call("from_base64", BLOB, text), 1),
        **named("encode", call("encode", BLOB, text), 1),
        **named("decode", call("decode", STRING, blob), 1),
        **named("url_encode", call("url_encode", STRING, text), 1),
        **named("url_decode", call("url_decode", STRING, text), 1),
        **named("strip_accents", call("strip_accents", STRING, text), 1),
        **named("nfc_normalize", call("nfc_normalize", STRING, text), 1),
        **named("format_bytes formatreadablesize", call("format_bytes", STRING, bigint), 1),
        **named("formatreadabledecimalsize", call("format_decimal_bytes", STRING, bigint), 1),
        **named("parse_filename", _parse_filename, 1, 3),
        **named("parse_dirname", call("parse_dirname", STRING, text, _separator), 1, 2),
        **named("parse_dirpath", call("parse_dirpath", STRING, text, _separator), 1, 2),
        **named("bar", call("bar", STRING, double), 3, 4),
        **named("levenshtein editdist3", call("levenshtein", BIGINT, text), 2),
        **named("damerau_levenshtein", call("damerau_levenshtein", BIGINT, text), 2),
        **named("hamming mismatches", call("hamming", BIGINT, text), 2),
        **named("jaccard", call("jaccard", DOUBLE, text), 2),
        **named("jaro_similarity", call("jaro_similarity", DOUBLE, text), 2),
        **named("jaro_winkler_similarity", call("jaro_winkler_similarity", DOUBLE, text), 2),
    }
)
