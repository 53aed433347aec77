"""From the values that a file holds to the values of `trips`, row by row where one cannot be read.

Whole arrays are cast at once. Only where that fails is the array halved until the values at fault stand
alone, so a clean file pays nothing and a broken value costs about log2(rows) casts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.queries.trips.arrow import Array, arrow, compute, distinct, nulls, true_places
from bamquery.queries.trips.schema import COLUMNS, FLAGS, SERVICES, TRIPS, Kind, NameMap, TripColumn

# Texts that stand for "no value" in the files and in common copies of them.
NULL_TEXTS: Final = ("", "NULL", "null", "NaN", "nan", "\\N")
# Besides ISO 8601: how the city's open-data portal writes times.
PORTAL_TIMES: Final = ("%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")

Problems = dict[int, str]


@dataclass(frozen=True)
class Tidied:
    """Rows of `trips` made from one batch of a file.

    Attributes:
        batch: the rows that could be read, in order.
        problems: for each row of the source batch that could not be read, why.
    """

    batch: pa.RecordBatch
    problems: Problems


def tidy(arrays: Sequence[Array], names: NameMap) -> Tidied:
    """Turn a batch of a file into rows of `trips`; columns that the file lacks are null."""
    rows = len(arrays[0])
    problems: Problems = {}
    columns: list[Array] = []
    for column in COLUMNS:
        places = names.positions.get(column.name, ())
        if column.kind is Kind.SERVICE:
            service = arrow.array(np.full(rows, SERVICES.index(names.service), np.int8))
            columns.append(_from_places(service, SERVICES))
        elif not places:
            columns.append(_absent(rows, column))
        else:
            converted, found = _first_value([arrays[place] for place in places], column)
            columns.append(converted)
            for row, reason in found.items():
                problems[row] = f"{problems[row]}; {reason}" if row in problems else reason
    batch = pa.RecordBatch.from_arrays(columns, schema=TRIPS)
    if problems:
        keep = np.ones(rows, bool)
        keep[list(problems)] = False
        batch = batch.filter(arrow.array(keep))
    return Tidied(batch, problems)


def _absent(rows: int, column: TripColumn) -> Array:
    return (
        _from_places(nulls(rows, pa.int8()), FLAGS) if column.kind is Kind.FLAG else nulls(rows, column.type)
    )


def _from_places(places: Array, words: Sequence[str]) -> Array:
    """The words at these places of a list, as the dictionary type of `trips`."""
    array: Array = arrow.DictionaryArray.from_arrays(places, arrow.array(words, pa.large_string()))
    return array


def _first_value(arrays: Sequence[Array], column: TripColumn) -> tuple[Array, Problems]:
    """The first of several arrays that has a value; two different values for one row are a problem."""
    result, problems = _convert(arrays[0], column)
    for array in arrays[1:]:
        other, more = _convert(array, column)
        for row in true_places(compute.not_equal(result, other)):
            more[row] = f"{column.name}: two values, {result[row].as_py()!r} and {other[row].as_py()!r}"
        result = compute.coalesce(result, other)
        problems = {**more, **problems}
    return result, problems


def _convert(array: Array, column: TripColumn) -> tuple[Array, Problems]:
    if pa.types.is_null(array.type):
        return _absent(len(array), column), {}
    if column.kind in (Kind.TIME, Kind.AMOUNT):
        plain = compute.dictionary_decode(array) if pa.types.is_dictionary(array.type) else array
        return _times(plain, column) if column.kind is Kind.TIME else _amounts(plain, column)
    return _convert_distinct(array, column)


def _convert_distinct(array: Array, column: TripColumn) -> tuple[Array, Problems]:
    """Read each distinct value once (there are few, whatever their type), then spread the results."""
    read_as = _READERS[column.kind]
    values: list[int | str | None] = []
    reasons: Problems = {}
    held, indices = distinct(array)
    for place, value in enumerate(held):
        try:
            values.append(None if _is_null(value) else read_as(value, column))
        except ValueError as error:
            values.append(None)
            reasons[place] = f"{column.name}: {error}"
    problems: Problems = {}
    if reasons:
        for row in true_places(compute.is_in(indices, arrow.array(list(reasons), indices.type))):
            problems[row] = reasons[indices[row].as_py()]
    if column.kind is Kind.FLAG:
        return _from_places(arrow.array(values, pa.int8()).take(indices), FLAGS), problems
    spread: Array = arrow.array(values, column.type).take(indices)
    return spread, problems


def _is_null(value: str | float | None) -> bool:
    if isinstance(value, str):
        return value.strip() in NULL_TEXTS
    return value is None or math.isnan(value)


def _code(value: str | float, column: TripColumn) -> int:
    """A whole number that fits the column, or the number of a word."""
    number = value
    if isinstance(value, str):
        word = value.strip()
        known = column.words.get(word.casefold())
        if known is not None:
            return known
        try:
            number = float(word)
        except ValueError:
            expected = "a whole number or a known word" if column.words else "a whole number"
            raise ValueError(f"{value!r} is not {expected}") from None
    limit = 1 << (column.type.bit_width - 1)
    if not -limit <= float(number) < limit or not float(number).is_integer():
        raise ValueError(f"{value!r} is not a whole number from {-limit} to {limit - 1}")
    return int(number)


def _flag(value: str | float, _column: TripColumn) -> int:
    """Place in FLAGS."""
    text = str(value).strip().upper()
    if text in ("N", "0", "0.0"):
        return 0
    if text in ("Y", "1", "1.0"):
        return 1
    raise ValueError(f"{value!r} is neither N nor Y, 0 nor 1")


def _text(value: str | float, _column: TripColumn) -> str:
    return str(value).strip()


_READERS: Final[Mapping[Kind, Callable[[Any, TripColumn], int | str]]] = {
    Kind.CODE: _code,
    Kind.FLAG: _flag,
    Kind.TEXT: _text,
}


def _times(array: Array, column: TripColumn) -> tuple[Array, Problems]:
    if getattr(array.type, "tz", None) is not None:
        array = compute.local_timestamp(array)  # what a New York clock showed, as in every other file
    if _is_string(array):
        return _cast_each(_blank_to_null(array), column, _parse_times)
    return _cast_each(array, column, lambda piece: piece.cast(column.type))


def _parse_times(texts: Array) -> Array:
    try:
        return texts.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        for pattern in PORTAL_TIMES:
            parsed: Array = compute.strptime(texts, pattern, "us", error_is_null=True)
            if parsed.null_count == texts.null_count:
                return parsed
        raise


def _amounts(array: Array, column: TripColumn) -> tuple[Array, Problems]:
    if pa.types.is_decimal(array.type):
        # Through text: the nearest double, where Arrow's own cast may be one bit off.
        array = array.cast(pa.large_string())
    if _is_string(array):
        array = _blank_to_null(array)
    return _cast_each(array, column, lambda piece: piece.cast(column.type))


def _is_string(array: Array) -> bool:
    return (
        pa.types.is_string(array.type)
        or pa.types.is_large_string(array.type)
        or pa.types.is_string_view(array.type)
    )


def _blank_to_null(texts: Array) -> Array:
    trimmed = compute.utf8_trim_whitespace(texts)
    missing = compute.is_in(trimmed, arrow.array(NULL_TEXTS, trimmed.type))
    result: Array = compute.if_else(missing, arrow.scalar(None, trimmed.type), trimmed)
    return result


def _cast_each(array: Array, column: TripColumn, cast: Callable[[Array], Array]) -> tuple[Array, Problems]:
    """Cast an array; values that cannot be cast become null and are returned with their rows."""
    noun = "a time" if column.kind is Kind.TIME else "a number"
    problems: Problems = {}
    pieces: list[Array] = []
    waiting = [(0, array)]
    while waiting:
        start, piece = waiting.pop()
        try:
            pieces.append(cast(piece))
        except pa.ArrowInvalid:
            if len(piece) == 1:
                problems[start] = f"{column.name}: {piece[0].as_py()!r} is not {noun}"
                pieces.append(nulls(1, column.type))
            else:
                middle = len(piece) // 2
                waiting += [(start + middle, piece[middle:]), (start, piece[:middle])]
    return (pieces[0] if len(pieces) == 1 else arrow.concat_arrays(pieces)), problems
