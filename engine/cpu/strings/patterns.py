"""Patterns: LIKE with an escape character, GLOB, and regular expressions of RE2, which DuckDB has too."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    any_true,
    as_column,
    compute,
    constant,
    convert,
    where,
)
from bamquery.engine.cpu.strings.sizes import (
    column_string_bytes,
    occurrences,
    sizes,
    total_over_rows,
    with_room_check,
)
from bamquery.engine.cpu.value_kernels import per_value, pieces, python_value, row_count, with_constants
from bamquery.engine.execution.string_limits import current_string_limits
from bamquery.errors import ExecutionError

_NEVER: Final = r"\z\A."
_MOST_GROUPS: Final = 9
_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {"i": "(?i)", "c": "(?-i)", "s": "(?s)", "m": "(?-s)", "n": "(?-s)", "p": "(?-s)"}
)
"""Options of DuckDB's functions, and RE2's own; `l` (a literal) and `g` (all of them) are none of it."""


def quote_regex(text: str) -> str:
    """A text as a regular expression that matches it."""
    return "".join(f"\\{c}" if c in string.punctuation else ("\\x00" if c == "\0" else c) for c in text)


_OF_ONE: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "g": ("all of them", "regexp_replace"),
        "k": ("the text where nothing matches", "regexp_extract"),
    }
)
"""Options of one function: what they mean, and which one."""


def pattern_with(pattern: str, options: str, name: str) -> str:
    """The pattern with options in front of it; blanks among them mean nothing.

    Raises:
        ExecutionError: an option that there is not, or not for that function.
    """
    for option in options:
        meaning, function = _OF_ONE.get(option, ("", name))
        if function != name:
            raise ExecutionError(f"the option '{option}' ({meaning}) is for {function}() only")
        if not (meaning or option == "l" or option in _FLAGS or option in string.whitespace):
            raise ExecutionError(
                f"'{option}' is not an option of regular expressions: c, i, l, m, n, p, s, g or k"
            )
    flags = "".join(_FLAGS.get(option, "") for option in options)
    return flags + (quote_regex(pattern) if "l" in options else pattern)


def _compile(pattern: str) -> str:
    """The pattern, which means something on its own, before anything is put around it.

    Raises:
        pa.ArrowInvalid: it means nothing; the error names the user's pattern.
    """
    options = pc.MatchSubstringOptions(pattern)
    compute("match_substring_regex", pa.array([""], pa.large_string()), options=options)
    return pattern


def _pattern(arguments: Sequence[Datum], options_at: int, name: str) -> str:
    options = python_value(arguments[options_at]) if len(arguments) > options_at else ""
    return _compile(pattern_with(python_value(arguments[1]), options, name))


def _matches(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    pattern = _pattern(arguments, 2, "regexp_matches")
    return compute("match_substring_regex", arguments[0], options=pc.MatchSubstringOptions(pattern))


def _full_match(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    pattern = _pattern(arguments, 2, "regexp_full_match")
    options = pc.MatchSubstringOptions(rf"\A(?:{pattern})\z")
    return compute("match_substring_regex", arguments[0], options=options)


def _replace(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    options = python_value(arguments[3]) if len(arguments) > 3 else ""
    pattern = _pattern(arguments, 3, "regexp_replace")
    column = as_column(arguments[0], 1)
    if not any_true(compute("is_valid", column)):  # then a replacement that means nothing is not looked at
        return column
    return _with_replacement(column, pattern, python_value(arguments[2]), options)


def _with_replacement(column: Datum, pattern: str, replacement: str, options: str) -> Column:
    given = pc.ReplaceSubstringOptions(pattern, replacement, max_replacements=-1 if "g" in options else 1)
    return compute("replace_substring_regex", column, options=given)


def _replaced_size(arguments: Sequence[Datum]) -> float | np.floating[Any]:
    """Bytes of each text with the replacement at every place, with all of the text for a group.

    Of one text for which that is too much the matches are counted.
    """
    text, _, replacement, *rest = arguments
    own = sizes(text)
    everywhere = bool(rest) and (isinstance(rest[0], pa.Array) or "g" in (python_value(rest[0]) or ""))
    added = sizes(replacement) * (own + 1.0 if everywhere else 1.0) + occurrences(replacement, "\\") * own
    bound = total_over_rows(own + added, arguments)
    if bound <= current_string_limits().most or row_count(arguments) > 1:
        return bound
    return _counted_size(arguments)


def _counted_size(arguments: Sequence[Datum]) -> float:
    """Bytes of one text with its replacements, a group being as long as the match it is in at most."""
    column, *constants = (as_column(argument, 1) for argument in arguments)
    given: list[str] = [value[0].as_py() for value in constants if not value.null_count]
    if column.null_count or len(given) < len(constants):
        return 0.0
    pattern, replacement, options = given if len(given) > 2 else [*given, ""]
    pattern = _compile(pattern_with(pattern, options, "regexp_replace"))
    without = column_string_bytes(_with_replacement(column, pattern, "", options), 1)
    count = column_string_bytes(_with_replacement(column, pattern, "x", options), 1) - without
    escaped: list[str] = re.findall(r"\\([0-9\\])", replacement)
    groups = sum(sign != "\\" for sign in escaped)
    plain = len(replacement.encode()) - len(escaped) - groups
    return without + count * plain + groups * (column_string_bytes(column, 1) - without)


def _extract(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """What a group (0: all of it) matched first; where nothing does an empty text, or with `k` the text."""
    pattern = _pattern(arguments, 3, "regexp_extract")
    group = python_value(arguments[2]) if len(arguments) > 2 else 0
    if not 0 <= group <= _MOST_GROUPS:
        raise ExecutionError(f"a group's number must be from 0 to {_MOST_GROUPS}, not {group}")
    column = arguments[0]
    keeps = len(arguments) > 3 and "k" in python_value(arguments[3])
    empty = where(compute("is_valid", column), constant("", kind), constant(None, kind))
    otherwise = as_column(column, len(empty)) if keeps else empty
    if group > _group_count(pattern):
        return otherwise
    if group == _MOST_GROUPS:
        raise ExecutionError("regexp_extract() can tell 8 groups of a pattern")
    # Where the pattern matches first, what stands before is as short as can be.
    whole = rf"\A(?s:.*?)({pattern})(?s:.*)\z"
    options = pc.ReplaceSubstringOptions(whole, f"\\{group + 1}", max_replacements=1)
    found = compute("replace_substring_regex", column, options=options)
    matches = compute("match_substring_regex", column, options=pc.MatchSubstringOptions(pattern))
    return where(matches, found, otherwise)


def _group_count(pattern: str) -> int:
    """How many groups a pattern of RE2 has: parentheses that are not escaped, in a class, or `(?`."""
    plain = re.sub(r"\\Q.*?(\\E|$)|\\.|\[\^?\]?(\\.|\[:\w+:\]|[^\]\\])*\]", "", pattern, flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?P?<", plain))


def _escaped_regex(pattern: str, escape: str) -> tuple[str, bool]:
    """LIKE's pattern for RE2; what follows the escape character stands for itself.

    The pattern is for a text's beginning (True) where nothing follows the last escape character.

    Raises:
        ExecutionError: more than one character.
    """
    if len(escape.encode()) > 1:
        raise ExecutionError("ESCAPE needs one ASCII character, or none")

    def parts() -> Iterator[str | None]:
        characters = iter(pattern)
        for character in characters:
            if character == escape:
                following = next(characters, None)
                yield None if following is None else quote_regex(following)
            else:
                yield {"%": ".*", "_": "."}.get(character) or quote_regex(character)

    found = list(parts())
    is_open = found[-1:] == [None]
    return rf"\A(?s:{''.join(part or '' for part in found)})" + ("" if is_open else r"\z"), is_open


def _like_escape(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """As DuckDB has it, an escape character at the end is wrong where a text comes so far."""
    if not any_true(compute("is_valid", arguments[0])):  # nothing is compared, whatever the escape is
        return compute("match_substring_regex", arguments[0], options=pc.MatchSubstringOptions(""))
    pattern, is_open = _escaped_regex(python_value(arguments[1]), python_value(arguments[2]))
    found = compute("match_substring_regex", arguments[0], options=pc.MatchSubstringOptions(pattern))
    if is_open and any_true(found):
        raise ExecutionError("the pattern of LIKE ends with its escape character")
    return found


def _ilike_escape(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    column, pattern, escape = arguments
    lowered: Any = compute("utf8_lower", pa.array([python_value(pattern)], pa.large_string()))[0]
    return _like_escape([compute("utf8_lower", column), lowered, escape], kind)


def _glob(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Over bytes, as DuckDB has it: `?` is one byte."""
    regex = _glob_regex(python_value(arguments[1]).encode())
    content = convert(arguments[0], pa.large_binary())
    return compute("match_substring_regex", content, options=pc.MatchSubstringOptions(regex))


def _byte(code: int) -> str:
    return f"\\x{code:02x}"


def _glob_regex(pattern: bytes) -> str:
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place : place + 1]
        place += 1
        if sign == b"*":
            parts.append(".*")
        elif sign == b"?":
            parts.append(".")
        elif sign == b"[":
            bracket, place = _glob_class(pattern, place)
            if bracket is None:
                return _NEVER
            parts.append(bracket)
        elif sign == b"\\":
            if place == len(pattern):
                return _NEVER
            parts.append(_byte(pattern[place]))
            place += 1
        else:
            parts.append(_byte(sign[0]))
    return rf"\A(?s:{''.join(parts)})\z"


def _glob_class(pattern: bytes, place: int) -> tuple[str | None, int]:
    """What stands in brackets, as a class, and where it ends; None where they are not closed."""
    negated = pattern[place : place + 1] == b"!"
    place += negated
    first, inside = place, ""
    while place < len(pattern):
        if pattern[place : place + 1] == b"]" and place > first:
            nothing = r"\x00-\xff" if negated else ""
            if not inside:
                return (f"[{nothing}]" if nothing else r"(?:\z\A.)"), place + 1
            return f"[{'^' if negated else ''}{inside}]", place + 1
        is_range = pattern[place + 1 : place + 2] == b"-" and pattern[place + 2 : place + 3] not in (
            b"",
            b"]",
        )
        if is_range:
            low, high = pattern[place], pattern[place + 2]
            inside += f"{_byte(low)}-{_byte(high)}" if low <= high else ""
            place += 3
        else:
            inside += _byte(pattern[place])
            place += 1
    return None, place


_ESCAPES: Final = {
    code: "\\x00" if not code else f"\\{chr(code)}"
    for code in range(128)
    if chr(code) != "_" and not chr(code).isalnum()
}


def _regexp_escape(text: str) -> str:
    """Every character but letters, digits, `_` and what is not ASCII with a backslash."""
    return "".join(piece.translate(_ESCAPES) for piece in pieces(text))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "regexp_matches": with_constants([1, 2], _matches),
        "regexp_full_match": with_constants([1, 2], _full_match),
        "regexp_replace": with_room_check(
            "regexp_replace", with_constants([1, 2, 3], _replace), _replaced_size
        ),
        "regexp_extract": with_constants([1, 2, 3], _extract),
        "regexp_escape": per_value(_regexp_escape),
        "like_escape": with_constants([1, 2], _like_escape),
        "ilike_escape": with_constants([1, 2], _ilike_escape),
        "glob": with_constants([1], _glob),
    }
)
