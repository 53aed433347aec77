"""Functions that cut, pad, search and take apart strings: UTF-8, counted in code points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    compute,
    constant,
    convert,
)
from bamquery.engine.cpu.strings.basic import LONGEST, check_place, substring
from bamquery.engine.cpu.strings.graphemes import reversed_string
from bamquery.engine.cpu.strings.sizes import (
    concatenated_size,
    joined_size,
    padded_size,
    repeated_size,
    replaced_size,
    translated_size,
    with_room_check,
)
from bamquery.engine.cpu.value_kernels import per_value, pieces, python_value, row_count, with_constants
from bamquery.engine.formulas.spaces import SPACES
from bamquery.statement_context.cancellation import check_cancelled

_PARTS: Final = 1024
"""Parts of a text passed over between two questions whether the query goes on."""


def _is_ascii(column: Datum) -> bool:
    return bool(pc.all(compute("string_is_ascii", column)).as_py() is not False)


def _trim(kernel: str, *, spaces: bool) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        characters = SPACES if spaces else python_value(arguments[1])
        if not characters:
            return as_column(arguments[0], row_count(arguments))
        return compute(kernel, arguments[0], options=pc.TrimOptions(characters))

    return apply if spaces else with_constants([1], apply)


def _left(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """The first n characters, all but the last -n where n is negative."""
    count = python_value(arguments[1])
    if count > 0:
        check_place("left", arguments[0], count)
    return _slice_characters(arguments[0], 0, count)


def _right(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """The last n characters, all but the first -n where n is negative."""
    count = python_value(arguments[1])
    if count == 0:
        return _slice_characters(arguments[0], 0, 0)
    return _slice_characters(arguments[0], -count, None)


def _slice_characters(column: Datum, start: int, stop: int | None) -> Column:
    if stop == 0:
        return _blank(column)
    limit = LONGEST
    start = max(min(start, limit), -limit)
    stop = None if stop is None else max(min(stop, limit), -limit)
    return compute("utf8_slice_codeunits", column, options=pc.SliceOptions(start, stop))


def _blank(column: Datum) -> Column:
    empty, null = constant("", column.type), constant(None, column.type)
    return compute("if_else", compute("is_valid", column), empty, null)


def _substring_at(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    rest = [*arguments[1:], constant(None, pa.int64())]
    return substring([arguments[0], *rest[:2]], kind)


def _substring_between(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """From one place to another, both included, as far as the text goes."""
    begin, end = _bounds(python_value(arguments[1]), python_value(arguments[2]))
    return _slice_characters(arguments[0], begin, end)


def _substring_between_one(text: str, first: int, last: int) -> str:
    begin, end = _bounds(first, last)
    return text[begin:end]


def _bounds(first: int, last: int) -> tuple[int, int | None]:
    """Python's."""
    return first if first < 0 else max(first, 1) - 1, None if last == -1 else last + (last < 0)


def _pad(name: str, *, before: bool) -> Callable[[str, int, str], str]:
    def pad(text: str, length: int, characters: str) -> str:
        missing = length - len(text)
        if missing <= 0:
            return text[: max(length, 0)]
        if not characters:
            raise ValueError(f"{name}() needs characters to pad with")
        padding = (characters * (missing // len(characters) + 1))[:missing]
        return padding + text if before else text + padding

    return pad


def _replace(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    column, old, new = arguments
    if not python_value(old):
        return as_column(column, row_count(arguments))
    options = pc.ReplaceSubstringOptions(python_value(old), python_value(new))
    return compute("replace_substring", column, options=options)


def _replace_one(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _repeat(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    rows = row_count(arguments)
    column, count = (as_column(argument, rows) for argument in arguments)
    counts = compute(
        "max_element_wise",
        count,
        constant(0, pa.int64()),
        options=pc.ElementWiseAggregateOptions(skip_nulls=False),
    )
    return compute("binary_repeat", column, counts)


def _position(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Where the part begins, from 1; 0 where it is not there."""
    column, part = arguments
    if _is_ascii(column):
        options = pc.MatchSubstringOptions(python_value(part))
        found = convert(compute("find_substring", column, options=options), pa.int64())
        return compute("add", found, constant(1, pa.int64()))
    return per_value(_position_one)(arguments, kind)


def _position_one(text: str, part: str) -> int:
    return text.find(part) + 1


def _split_part(text: str, separator: str, number: int) -> str:
    """Part number so-and-so, from the end if negative; nothing where there is none."""
    if number < 0:
        number += (text.count(separator) if separator else len(text) - 1) + 2
    if number < 1:
        return ""
    return _part(text, separator, number) if separator else text[number - 1 : number]


def _part(text: str, separator: str, number: int) -> str:
    """Part number so-and-so of a text, from 1 on, found one after the other."""
    start = 0
    for place in range(number - 1):
        if place % _PARTS == 0:
            check_cancelled()
        found = text.find(separator, start)
        if found < 0:
            return ""
        start = found + len(separator)
    end = text.find(separator, start)
    return text[start:] if end < 0 else text[start:end]


def _translate(text: str, characters: str, others: str) -> str:
    """Characters replaced one by one; the first of equal ones counts, and what has no other goes."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(characters):
        table.setdefault(ord(character), others[place] if place < len(others) else None)
    return "".join(piece.translate(table) for piece in pieces(text))


def _code_point(empty: int) -> Callable[[str], int]:
    return lambda text: ord(text[0]) if text else empty


def _character(code: int) -> str:
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError(f"{code} is not the number of a Unicode character")
    return chr(code)


def _overlay(text: str, other: str, start: int, *count: int) -> str:
    """The text with some characters, as many as the other has unless it is said, in another's place."""
    length = count[0] if count and count[0] >= 0 else len(other)
    begin = max(start - 1, 0)
    return text[:begin] + other + text[max(start - 1 + length, begin) :]


def _concat_ws(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Strings that are not null, a separator between them; null where the separator is."""
    separator, *strings = arguments
    rows = row_count(arguments)
    between = as_column(separator, rows)
    options = pc.JoinOptions("emit_null")
    joined = as_column(constant(None, kind), rows)
    for text in strings:
        column = as_column(text, rows)
        longer = compute("binary_join_element_wise", joined, column, between, options=options)
        joined = compute("coalesce", longer, joined, column)
    found = compute("coalesce", joined, constant("", kind))
    return compute("if_else", compute("is_valid", between), found, constant(None, kind))


def _reverse(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    (column,) = arguments
    if _is_ascii(column):
        return compute("utf8_reverse", column)
    return per_value(reversed_string)(arguments, kind)


def _byte_count(factor: int) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        counts = convert(compute("binary_length", arguments[0]), kind)
        return compute("multiply", counts, constant(factor, kind)) if factor != 1 else counts

    return apply


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "ltrim": _trim("utf8_ltrim", spaces=True),
        "rtrim": _trim("utf8_rtrim", spaces=True),
        "trim_of": _trim("utf8_trim", spaces=False),
        "ltrim_of": _trim("utf8_ltrim", spaces=False),
        "rtrim_of": _trim("utf8_rtrim", spaces=False),
        "left": with_constants([1], _left),
        "right": with_constants([1], _right),
        "text_between": with_constants([1, 2], _substring_between, _substring_between_one),
        "substring_at": with_constants([1, 2], _substring_at),
        "lpad": with_room_check("lpad", per_value(_pad("lpad", before=True)), padded_size),
        "rpad": with_room_check("rpad", per_value(_pad("rpad", before=False)), padded_size),
        "replace": with_room_check("replace", with_constants([1, 2], _replace, _replace_one), replaced_size),
        "repeat": with_room_check("repeat", _repeat, repeated_size),
        "reverse": _reverse,
        "position": with_constants([1], _position, _position_one),
        "split_part": per_value(_split_part),
        "translate": with_room_check("translate", per_value(_translate), translated_size),
        "ascii": per_value(_code_point(0)),
        "unicode": per_value(_code_point(-1)),
        "chr": per_value(_character),
        "overlay": with_room_check("overlay", per_value(_overlay), concatenated_size),
        "concat_ws": with_room_check("concat_ws", _concat_ws, joined_size),
        "strlen": _byte_count(1),
        "bit_length": _byte_count(8),
    }
)
