"""Functions of strings: UTF-8, counted in code points."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pylibcudf as plc
from pylibcudf.strings.side_type import SideType

from bamquery.engine.cuda.kernels import INT64, Constant, Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.strings.match_parts import match_parts
from bamquery.engine.formulas.spaces import SPACES

_TEXT: Any = pa.large_string()
_LAST_CODE_POINT: Final = 0x1FFFF
"""Beyond are ideographs and characters for private use, which have no case."""
_SURROGATES: Final = range(0xD800, 0xE000)
FAR: Final = 2**31 - 1


@functools.cache
def _case_table(kernel: str) -> dict[int | str, int | str]:
    """Every character that Arrow's `utf8_lower` or `utf8_upper` changes, so that both devices agree.

    libcudf's own tables are of another version of Unicode, and know characters that become several.
    """
    points = [point for point in range(1, _LAST_CODE_POINT + 1) if point not in _SURROGATES]
    characters: Any = pa.array([chr(point) for point in points], _TEXT)
    changed: list[str] = pc.call_function(kernel, [characters]).to_pylist()
    return {
        point: ord(character)
        for point, character in zip(points, changed, strict=True)
        if character != chr(point)
    }


def _case_function(kernel: str) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        return _translate(kernels, _string_column(kernels, arguments), kernel)

    return apply


def _translate(kernels: Kernels, column: plc.Column, kernel: str) -> plc.Column:
    return plc.strings.translate.translate(
        column, _case_table(kernel), stream=kernels.stream, mr=kernels.memory
    )


def _string_column(kernels: Kernels, arguments: Sequence[Operand]) -> plc.Column:
    return kernels.column(arguments[0].datum, argument_rows(arguments))


def _text(kernels: Kernels, value: str) -> plc.Scalar:
    constant: Constant = pa.scalar(value, _TEXT)
    return kernels.scalar(constant)


def _length(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = _string_column(kernels, arguments)
    counted = plc.strings.attributes.count_characters(column, stream=kernels.stream, mr=kernels.memory)
    return kernels.convert(counted, INT64)


def _concat(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    rows = argument_rows(arguments)
    table = plc.Table([kernels.column(argument.datum, rows) for argument in arguments])
    return plc.strings.combine.concatenate(
        table, _text(kernels, ""), kernels.null(_TEXT), stream=kernels.stream, mr=kernels.memory
    )


def _like(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    pattern = arguments[1].literal
    if pattern is None:
        return kernels.nulls(argument_rows(arguments), kind)
    return _match_like(kernels, _string_column(kernels, arguments), pattern)


def _match_like(kernels: Kernels, column: plc.Column, pattern: str) -> plc.Column:
    found = match_parts(kernels, column, pattern)
    if found is None:
        found = plc.strings.contains.like(column, pattern, stream=kernels.stream, mr=kernels.memory)
    return found


def _ilike(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    pattern = arguments[1].literal
    if pattern is None:
        return kernels.nulls(argument_rows(arguments), kind)
    lowered: Any = pc.call_function("utf8_lower", [pa.array([pattern], _TEXT)])
    column = _translate(kernels, _string_column(kernels, arguments), "utf8_lower")
    return _match_like(kernels, column, lowered[0].as_py())


def _starts_with(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    prefix = arguments[1].literal
    if prefix is None:
        return kernels.nulls(argument_rows(arguments), kind)
    column, target = _string_column(kernels, arguments), _text(kernels, prefix)
    return plc.strings.find.starts_with(column, target, stream=kernels.stream, mr=kernels.memory)


def _contains(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    part = arguments[1].literal
    if part is None:
        return kernels.nulls(argument_rows(arguments), kind)
    column, target = _string_column(kernels, arguments), _text(kernels, part)
    return plc.strings.find.contains(column, target, stream=kernels.stream, mr=kernels.memory)


def _substring(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """The window of DuckDB: positions count from 1, below 0 from the end; a length below 0 goes back."""
    first, size = arguments[1].literal, arguments[2].literal
    column = _string_column(kernels, arguments)
    if first is None:
        return kernels.nulls(column.size(), kind)
    begin = first - 1 if first >= 0 else first  # 0 is the place before the first character
    if size is None:
        return slice_places(kernels, column, max(begin, 0) if first >= 0 else begin, FAR)
    low, high = sorted((begin, begin + size))
    if first >= 0:
        return slice_places(kernels, column, max(low, 0), max(high, 0))
    # Places from the end; at 0 and beyond, the window goes on to the string's end.
    if low >= 0:
        return slice_places(kernels, column, 0, 0)
    return slice_places(kernels, column, low, high if high < 0 else FAR)


def slice_places(kernels: Kernels, column: plc.Column, start: int, stop: int) -> plc.Column:
    """Characters from one place to before another; negative ones count from the end."""
    start, stop = (max(min(place, FAR), -FAR) for place in (start, stop))
    if start == stop:
        return kernels.where(kernels.is_valid(column), _text(kernels, ""), kernels.null(_TEXT))
    first, last, step = (kernels.number(place, pa.int32()) for place in (start, stop, 1))
    return plc.strings.slice.slice_strings(
        column, first, last, step, stream=kernels.stream, mr=kernels.memory
    )


def _trim(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return plc.strings.strip.strip(
        _string_column(kernels, arguments),
        SideType.BOTH,
        _text(kernels, SPACES),
        stream=kernels.stream,
        mr=kernels.memory,
    )


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "lower": _case_function("utf8_lower"),
        "upper": _case_function("utf8_upper"),
        "length": _length,
        "concat": _concat,
        "like": _like,
        "ilike": _ilike,
        "starts_with": _starts_with,
        "contains": _contains,
        "substring": _substring,
        "trim": _trim,
    }
)
