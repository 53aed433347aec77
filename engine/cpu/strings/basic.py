"""Functions of strings: UTF-8, counted in code points."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.type_groups import FURTHEST_PLACE
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    compute,
    constant,
    convert,
    match_parts,
    nulls,
    where,
)
from bamquery.engine.cpu.strings.sizes import concatenated_size, with_room_check
from bamquery.engine.cpu.value_kernels import with_constants
from bamquery.engine.formulas.spaces import SPACES
from bamquery.errors import ExecutionError

_LONGEST_PART: Final = 64
"""Characters of what is between two percent signs, beyond which it is not compared place by place."""
LONGEST: Final = 1 << 32
"""No text has as many characters; Arrow multiplies places with more than that, and overflows."""


def _rows(arguments: Sequence[Datum]) -> int:
    return next(len(a) for a in arguments if isinstance(a, pa.Array))


def _literal(datum: Datum) -> str | None:
    assert isinstance(datum, pa.Scalar), "the binder passes literals only"
    value: str | None = datum.as_py()
    return value


def _length(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    return convert(compute("utf8_length", arguments[0]), kind)


def _concat(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    name = "binary_join_element_wise"
    return compute(name, *arguments, constant("", pa.large_string()), options=pc.JoinOptions("emit_null"))


def _like(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    pattern = _literal(arguments[1])
    if pattern is None:
        return nulls(_rows(arguments), kind)
    literal = pattern.strip("%")
    if not {"%", "_"} & set(pattern):
        return compute("equal", arguments[0], constant(literal, pa.large_string()))
    starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
    longest = max(map(len, literal.split("%")))
    # Of long parts RE2 looks at each byte once, whatever they are.
    if "_" not in literal and 0 < longest <= _LONGEST_PART and ("%" in literal or not (starts or ends)):
        assert isinstance(arguments[0], pa.Array), "the pattern is not"
        return match_parts(arguments[0], pattern, at_start=starts, at_end=ends)
    if "%" not in literal and "_" not in literal:
        kernels = {(True, True): "match_substring", (True, False): "ends_with", (False, True): "starts_with"}
        kernel = kernels[not starts, not ends]
        return compute(kernel, arguments[0], options=pc.MatchSubstringOptions(literal))
    options = pc.MatchSubstringOptions(_as_regex(pattern))
    return compute("match_substring_regex", arguments[0], options=options)


def _as_regex(pattern: str) -> str:
    """For RE2. Arrow's own LIKE takes a backslash for an escape, which DuckDB does not."""
    parts = {"%": ".*", "_": "."} | {sign: f"\\{sign}" for sign in string.punctuation if sign not in "%_"}
    return rf"\A(?s:{''.join(parts.get(character, character) for character in pattern)})\z"


def _ilike(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    pattern = _literal(arguments[1])
    if pattern is None:
        return nulls(_rows(arguments), kind)
    lowered = compute("utf8_lower", as_column(constant(pattern, pa.large_string()), 1))[0]
    return _like([compute("utf8_lower", arguments[0]), lowered], kind)


def _match_pattern(name: str) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        pattern = _literal(arguments[1])
        if pattern is None:
            return nulls(_rows(arguments), kind)
        return compute(name, arguments[0], options=pc.MatchSubstringOptions(pattern))

    return apply


def substring(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """The window of DuckDB: positions count from 1, below 0 from the end; a length below 0 goes back."""
    column, start, length = arguments
    assert isinstance(start, pa.Scalar)
    assert isinstance(length, pa.Scalar)
    first, size = start.as_py(), length.as_py()
    if first is None:
        return nulls(_rows(arguments), kind)
    check_place("substring", column, first)
    if size is not None:
        check_place("substring", column, size)
    begin = first - 1 if first >= 0 else first  # 0 is the place before the first character
    if size is None:
        return _slice(column, max(begin, 0) if first >= 0 else begin, None)
    low, high = sorted((begin, begin + size))
    if first >= 0:
        return _slice(column, max(low, 0), max(high, 0))
    # Places from the end; at 0 and beyond, the window goes on to the string's end.
    if low >= 0:
        return _slice(column, 0, 0)
    return _slice(column, low, high if high < 0 else None)


def check_place(name: str, column: Datum, place: int) -> None:
    """Fail where there is a text, and the place or length is none that strings have.

    Raises:
        ExecutionError: it is so.
    """
    if -FURTHEST_PLACE <= place < FURTHEST_PLACE:
        return
    assert isinstance(column, pa.Array)
    if column.null_count == len(column):
        return
    raise ExecutionError(f"{name}(): {place} is beyond any place in a text, 2^32")


def _slice(column: Datum, start: int, stop: int | None) -> Column:
    limit = LONGEST
    start = max(min(start, limit), -limit)
    stop = None if stop is None else max(min(stop, limit), -limit)
    if stop is not None and stop == start:
        empty = constant("", pa.large_string())
        return where(compute("is_valid", column), empty, constant(None, pa.large_string()))
    return compute("utf8_slice_codeunits", column, options=pc.SliceOptions(start, stop))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "lower": lambda arguments, kind: compute("utf8_lower", arguments[0]),
        "upper": lambda arguments, kind: compute("utf8_upper", arguments[0]),
        "length": _length,
        "concat": with_room_check("concat", _concat, concatenated_size),
        "like": with_constants([1], _like),
        "ilike": with_constants([1], _ilike),
        "starts_with": with_constants([1], _match_pattern("starts_with"), str.startswith),
        "ends_with": with_constants([1], _match_pattern("ends_with"), str.endswith),
        "contains": with_constants([1], _match_pattern("match_substring"), str.__contains__),
        "substring": substring,
        "trim": lambda arguments, kind: compute("utf8_trim", arguments[0], options=pc.TrimOptions(SPACES)),
    }
)
