"""strftime: dates and times written by patterns of `%` and a letter."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.calendar import CALENDAR, Integers, days_and_rest, first_day_of_month, months_of
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    compute,
    concatenate,
    constant,
    from_values,
    make_array,
    stored_values,
    take_shared,
)
from bamquery.engine.cpu.strings.sizes import occurrences, sizes, total_over_rows, with_room_check
from bamquery.engine.cpu.value_kernels import python_value, with_constants
from bamquery.engine.formulas.time_units import units_per_day
from bamquery.errors import ExecutionError
from bamquery.statement_context.cancellation import check_cancelled

DAY_NAMES: Final = ["Sunday", *list(calendar.day_name)[:6]]
MONTH_NAMES: Final = list(calendar.month_name)[1:]
_SPECIFIER: Final = re.compile(r"%(-?.)", re.DOTALL)
_COMPOSED: Final[Mapping[str, str]] = MappingProxyType(
    {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}
)
_CONSTANT: Final = frozenset("zZ%")
_OF_CLOCK: Final = frozenset("HIpMS")
_OF_FRACTION: Final = frozenset("fgn")
"""Letters by what they write; all others write something of the day."""
_LONGEST: Final = 9
_LONGEST_COMPOSED: Final = 19
"""Bytes at most of what a letter writes, and of what a letter that stands for several does."""
_WRITTEN: Final = 1 << 14
"""Moments that are written at once."""
_JOINED: Final = 1024
"""Parts of a pattern that are put together at once."""


class _Moments:
    """Days since 1970 and the time of day, of some moments."""

    def __init__(self, days: Integers, nanoseconds: Integers, *, has_zone: bool) -> None:
        self.days, self.nanoseconds, self.has_zone = days, nanoseconds, has_zone
        self.seconds = nanoseconds // 10**9
        self._known: dict[str, tuple[_Moments, Column]] = {}

    @classmethod
    def from_column(cls, column: Column) -> _Moments:
        """A column's, anything where it is null."""
        days, rest = days_and_rest(column)
        nanoseconds = rest * (86_400 * 10**9 // units_per_day(column.type))
        return cls(days, nanoseconds, has_zone=getattr(column.type, "tz", None) is not None)

    def parts(self) -> Iterator[_Moments]:
        """Some after the other, at least one, as long as the query goes on."""
        for start in range(0, max(len(self.days), 1), _WRITTEN):
            check_cancelled()
            some = slice(start, start + _WRITTEN)
            yield _Moments(self.days[some], self.nanoseconds[some], has_zone=self.has_zone)

    def distinct(self, letter: str) -> tuple[_Moments, Column]:
        """Moments that differ in what the letter writes, and which of them each moment is like."""
        if letter in _OF_CLOCK:
            return self._memoize("clock", self.seconds, lambda values: (values * 0, values * 10**9))
        if letter in _OF_FRACTION:
            fraction = self.nanoseconds % 10**9
            return self._memoize("fraction", fraction, lambda values: (values * 0, values))
        if letter in _CONSTANT:
            return self._memoize("constant", self.days * 0, lambda values: (values, values))
        return self._memoize("day", self.days, lambda values: (values, values * 0))

    def _memoize(
        self, name: str, values: Integers, moments: Callable[[Integers], tuple[Integers, Integers]]
    ) -> tuple[_Moments, Column]:
        if name not in self._known:
            encoded = compute("dictionary_encode", from_values(values, pa.int64()))
            assert isinstance(encoded, pa.DictionaryArray)
            days, nanoseconds = moments(stored_values(encoded.dictionary))
            self._known[name] = _Moments(days, nanoseconds, has_zone=self.has_zone), encoded.indices
        return self._known[name]

    def hour(self, *, of_twelve: bool = False) -> Integers:
        hours = self.seconds // 3600
        return (hours + 11) % 12 + 1 if of_twelve else hours

    def day_of_year(self) -> Integers:
        day: Integers = self.days - CALENDAR.first_day_of_year(self.days) + 1
        return day

    def week(self, first: int) -> Integers:
        """The week of the year, from its first Sunday (0) or Monday (1); before it 0."""
        weekday: Integers = (CALENDAR.iso_weekday(self.days) - first) % 7
        return (self.day_of_year() - 1 + 7 - weekday) // 7


def _numbers(values: Integers, width: int) -> list[str]:
    return [f"{value:0{width}d}" for value in values.tolist()]


def _years(values: Integers) -> list[str]:
    return [f"{year:04d}" if 0 <= year <= 9999 else str(year) for year in values.tolist()]


def _names(names: Sequence[str], places: Integers, length: int | None = None) -> list[str]:
    return [names[place][:length] for place in places.tolist()]


_WRITERS: Final[Mapping[str, Callable[[_Moments], list[str]]]] = MappingProxyType(
    {
        "a": lambda m: _names(DAY_NAMES, CALENDAR.iso_weekday(m.days) % 7, 3),
        "A": lambda m: _names(DAY_NAMES, CALENDAR.iso_weekday(m.days) % 7),
        "w": lambda m: _numbers(CALENDAR.iso_weekday(m.days) % 7, 1),
        "u": lambda m: _numbers(CALENDAR.iso_weekday(m.days), 1),
        "d": lambda m: _numbers(m.days - first_day_of_month(months_of(m.days)) + 1, 2),
        "-d": lambda m: _numbers(m.days - first_day_of_month(months_of(m.days)) + 1, 1),
        "b": lambda m: _names(MONTH_NAMES, months_of(m.days) % 12, 3),
        "h": lambda m: _names(MONTH_NAMES, months_of(m.days) % 12, 3),
        "B": lambda m: _names(MONTH_NAMES, months_of(m.days) % 12),
        "m": lambda m: _numbers(months_of(m.days) % 12 + 1, 2),
        "-m": lambda m: _numbers(months_of(m.days) % 12 + 1, 1),
        "y": lambda m: _numbers(np.abs(CALENDAR.year_of(m.days)) % 100, 2),
        "-y": lambda m: _numbers(np.abs(CALENDAR.year_of(m.days)) % 100, 1),
        "Y": lambda m: _years(CALENDAR.year_of(m.days)),
        "H": lambda m: _numbers(m.hour(), 2),
        "-H": lambda m: _numbers(m.hour(), 1),
        "I": lambda m: _numbers(m.hour(of_twelve=True), 2),
        "-I": lambda m: _numbers(m.hour(of_twelve=True), 1),
        "p": lambda m: ["AM" if hour < 12 else "PM" for hour in m.hour().tolist()],
        "M": lambda m: _numbers(m.seconds // 60 % 60, 2),
        "-M": lambda m: _numbers(m.seconds // 60 % 60, 1),
        "S": lambda m: _numbers(m.seconds % 60, 2),
        "-S": lambda m: _numbers(m.seconds % 60, 1),
        "f": lambda m: _numbers(m.nanoseconds // 1000 % 10**6, 6),
        "g": lambda m: _numbers(m.nanoseconds // 10**6 % 1000, 3),
        "n": lambda m: _numbers(m.nanoseconds % 10**9, 9),
        "j": lambda m: _numbers(m.day_of_year(), 3),
        "-j": lambda m: _numbers(m.day_of_year(), 1),
        "U": lambda m: _numbers(m.week(0), 2),
        "W": lambda m: _numbers(m.week(1), 2),
        "G": lambda m: _years(CALENDAR.iso_year(m.days)),
        "V": lambda m: _numbers(CALENDAR.iso_week(m.days), 2),
        "z": lambda m: ["+00"] * len(m.days),
        "Z": lambda m: ["UTC" if m.has_zone else ""] * len(m.days),
        "%": lambda m: ["%"] * len(m.days),
    }
)


def pieces_of(pattern: str, known: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Plain strings (False) and letters (True) of a pattern.

    Raises:
        ExecutionError: there is nothing, or a letter that means nothing.
    """
    if not pattern:
        raise ExecutionError("the pattern of dates and times is empty")
    pattern = re.sub(r"%([cxXT])", lambda match: _COMPOSED[match[1]], pattern)
    place = 0
    for match in _SPECIFIER.finditer(pattern):
        if match[1] not in known:
            raise ExecutionError(
                f"%{match[1]} in '{pattern}' is no part of a date or time that is known here"
            )
        if match.start() > place:
            yield pattern[place : match.start()], False
        yield match[1], True
        place = match.end()
    if pattern[place:].endswith("%"):
        raise ExecutionError(f"'{pattern}' ends with a %, which needs a letter")
    if pattern[place:]:
        yield pattern[place:], False


def _written_size(arguments: Sequence[Datum]) -> np.floating[Any]:
    """Bytes of each pattern with the longest of what each letter writes."""
    pattern = arguments[1]
    letters, composed = occurrences(pattern, "%"), occurrences(pattern, "%c")
    size = sizes(pattern) + letters * (_LONGEST - 2) + composed * (_LONGEST_COMPOSED - _LONGEST)
    return total_over_rows(size, arguments)


def _strftime(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Each letter for its distinct values, put together for all."""
    column, pattern = arguments
    assert isinstance(column, pa.Array)
    moments = _Moments.from_column(column)
    written: dict[str, Column] = {}

    def part(text: str, is_letter: bool) -> Datum:
        if not is_letter:
            return constant(text, kind)
        if text not in written:
            distinct, places = moments.distinct(text.lstrip("-"))
            written_parts = [make_array(_WRITERS[text](part), kind) for part in distinct.parts()]
            written[text] = take_shared(concatenate(written_parts), places)
        return written[text]

    blank = constant("", kind)
    nothing = as_column(blank, len(column))

    def join_pieces(parts: Sequence[Datum]) -> Column:
        check_cancelled()
        options = pc.JoinOptions("emit_null")
        return compute("binary_join_element_wise", nothing, *parts, blank, options=options)

    pieces = pieces_of(python_value(pattern), _WRITERS)
    lines: list[Column] = []
    while parts := [part(*piece) for piece in islice(pieces, _JOINED)]:
        lines.append(join_pieces(parts))
    found = join_pieces(lines) if len(lines) > 1 else lines[0]
    if not column.null_count:
        return found
    return compute("if_else", compute("is_valid", column), found, constant(None, kind))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "strftime": with_room_check("strftime", with_constants([1], _strftime), _written_size),
    }
)
