"""strftime and strptime: dates and times by patterns of `%` and a letter."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cancellation import check_cancelled
from bamquery.engine.cpu.calendar import CALENDAR, Integers, days_and_rest, first_day_of_month, months_of
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    array_of,
    column_of,
    compute,
    constant,
    from_values,
    spread,
    values_of,
)
from bamquery.engine.cpu.rows import per_value, value_of, with_constants
from bamquery.engine.cpu.text_sizes import occurrences, sizes, total, within_room
from bamquery.engine.time_units import units_per_day
from bamquery.errors import ExecutionError

_DAYS: Final = ["Sunday", *list(calendar.day_name)[:6]]
_MONTHS: Final = list(calendar.month_name)[1:]
_SPECIFIER: Final = re.compile(r"%(-?.)", re.DOTALL)
_COMPOSED: Final[Mapping[str, str]] = MappingProxyType(
    {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}
)
_CONSTANT: Final = frozenset("zZ%")
_OF_CLOCK: Final = frozenset("HIpMS")
_OF_FRACTION: Final = frozenset("fg")
"""Letters by what they write; all others write something of the day."""
_DAY_MICROSECONDS: Final = 86_400 * 10**6
_LONGEST: Final = 9
_LONGEST_COMPOSED: Final = 19
"""Bytes at most of what a letter writes, and of what a letter that stands for several does."""
_JOINED: Final = 1024
"""Parts of a pattern that are put together at once."""


class _Moments:
    """Days since 1970 and the time of day, of some moments."""

    def __init__(self, days: Integers, nanoseconds: Integers, *, has_zone: bool) -> None:
        self.days, self.nanoseconds, self.has_zone = days, nanoseconds, has_zone
        self.seconds = nanoseconds // 10**9
        self._known: dict[str, tuple[_Moments, Column]] = {}

    @classmethod
    def of(cls, column: Column) -> _Moments:
        """A column's, anything where it is null."""
        days, rest = days_and_rest(column)
        nanoseconds = rest * (86_400 * 10**9 // units_per_day(column.type))
        return cls(days, nanoseconds, has_zone=getattr(column.type, "tz", None) is not None)

    def distinct(self, letter: str) -> tuple[_Moments, Column]:
        """Moments that differ in what the letter writes, and which of them each moment is like."""
        if letter in _OF_CLOCK:
            return self._found("clock", self.seconds, lambda values: (values * 0, values * 10**9))
        if letter in _OF_FRACTION:
            micros = self.nanoseconds % 10**9 // 1000
            return self._found("fraction", micros, lambda values: (values * 0, values * 1000))
        if letter in _CONSTANT:
            return self._found("constant", self.days * 0, lambda values: (values, values))
        return self._found("day", self.days, lambda values: (values, values * 0))

    def _found(
        self, name: str, values: Integers, moments: Callable[[Integers], tuple[Integers, Integers]]
    ) -> tuple[_Moments, Column]:
        if name not in self._known:
            encoded = compute("dictionary_encode", from_values(values, pa.int64()))
            assert isinstance(encoded, pa.DictionaryArray)
            days, nanoseconds = moments(values_of(encoded.dictionary))
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
        "a": lambda m: _names(_DAYS, CALENDAR.iso_weekday(m.days) % 7, 3),
        "A": lambda m: _names(_DAYS, CALENDAR.iso_weekday(m.days) % 7),
        "w": lambda m: _numbers(CALENDAR.iso_weekday(m.days) % 7, 1),
        "u": lambda m: _numbers(CALENDAR.iso_weekday(m.days), 1),
        "d": lambda m: _numbers(m.days - first_day_of_month(months_of(m.days)) + 1, 2),
        "-d": lambda m: _numbers(m.days - first_day_of_month(months_of(m.days)) + 1, 1),
        "b": lambda m: _names(_MONTHS, months_of(m.days) % 12, 3),
        "h": lambda m: _names(_MONTHS, months_of(m.days) % 12, 3),
        "B": lambda m: _names(_MONTHS, months_of(m.days) % 12),
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


def _pieces(pattern: str, known: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Plain texts (False) and letters (True) of a pattern.

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
    return total(size, arguments)


def _strftime(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Each letter for its distinct values, put together for all."""
    column, pattern = arguments
    assert isinstance(column, pa.Array)
    moments = _Moments.of(column)
    written: dict[str, Column] = {}

    def part(text: str, is_letter: bool) -> Datum:
        if not is_letter:
            return constant(text, kind)
        if text not in written:
            distinct, places = moments.distinct(text.lstrip("-"))
            written[text] = spread(array_of(_WRITERS[text](distinct), kind), places)
        return written[text]

    blank = constant("", kind)
    nothing = column_of(blank, len(column))

    def joined(parts: Sequence[Datum]) -> Column:
        check_cancelled()
        options = pc.JoinOptions("emit_null")
        return compute("binary_join_element_wise", nothing, *parts, blank, options=options)

    pieces = _pieces(value_of(pattern), _WRITERS)
    lines: list[Column] = []
    while parts := [part(*piece) for piece in islice(pieces, _JOINED)]:
        lines.append(joined(parts))
    found = joined(lines) if len(lines) > 1 else lines[0]
    if not column.null_count:
        return found
    return compute("if_else", compute("is_valid", column), found, constant(None, kind))


# Reading.

_WEEKS: Final = frozenset("GVUW")
_MOST_WEEKS: Final = 53

_READERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("d", "-d", "m", "-m", "H", "-H", "I", "-I", "M", "-M", "S", "-S"), r"\d{1,2}"),
        **dict.fromkeys(("y", "-y"), r"\d{1,2}"),
        **dict.fromkeys(("j", "-j"), r"\d{1,3}"),
        **dict.fromkeys(("U", "W", "V"), r"\d{1,2}"),
        "Y": r"-?\d{1,4}",
        "G": r"\d{1,4}",
        "u": "[1-7]",
        "w": "[0-6]",
        "f": r"\d{1,6}",
        "g": r"\d{1,3}",
        "b": "|".join(name[:3] for name in _MONTHS),
        "h": "|".join(name[:3] for name in _MONTHS),
        "B": "|".join(_MONTHS),
        "a": "|".join(name[:3] for name in _DAYS),
        "A": "|".join(_DAYS),
        "p": "AM|PM",
        "z": r"[+-]\d{2}(?::?\d{2})?",
        "%": "%",
    }
)


def _reader(pattern: str) -> Callable[[str], int | None]:
    """What reads texts of a pattern as microseconds since 1970; None where one does not fit it."""
    pieces = list(_pieces(pattern, _READERS))
    letters = [text for text, is_letter in pieces if is_letter]
    if {"b", "h", "B"}.intersection(letters) and _WEEKS.intersection(letters):
        raise ExecutionError(f"'{pattern}' has the name of a month and a week, which are not read together")
    regex = "".join(f"({_READERS[text]})" if is_letter else re.escape(text) for text, is_letter in pieces)
    compiled = re.compile(rf"[ \t\n\v\f\r]*{regex}[ \t\n\v\f\r]*", re.ASCII | re.IGNORECASE)

    def read(text: str) -> int | None:
        match = compiled.fullmatch(text)
        if match is None:
            return None
        found = {letter.lstrip("-"): value for letter, value in zip(letters, match.groups(), strict=True)}
        days, clock = _days(found), _clock(found)
        if days is None or clock is None:
            return None
        return days * _DAY_MICROSECONDS + clock - _offset(found.get("z"))

    return read


def _year(found: Mapping[str, str]) -> int:
    if "y" in found:
        short = int(found["y"])
        return short + (1900 if short >= 69 else 2000)
    return int(found.get("Y", "1900"))


def _weekday(day: int) -> int:
    """From Monday, 0."""
    return (day + 3) % 7


def _day_of_week(found: Mapping[str, str], weeks: frozenset[str]) -> int | None:
    """The day of a week of ISO's or of the year; None for weeks of both, which contradict each other."""
    if weeks <= {"G", "V"} and not {"Y", "y", "j"} & found.keys():
        fourth = _day_number(int(found.get("G", "1900")), 1, 4)
        if fourth is None:
            return None
        return fourth - _weekday(fourth) + int(found.get("V", "1")) * 7 - 7 + int(found.get("u", "1")) - 1
    first = _day_number(_year(found), 1, 1)
    if len(weeks) > 1 or weeks <= {"G", "V"} or "j" in found or first is None:
        return None
    start, default = (6, "0") if "U" in weeks else (0, "1")
    week = first + (start - _weekday(first)) % 7 + int(found[min(weeks)]) * 7 - 7
    day = int(found.get("w", default))
    return week + (day if "U" in weeks else (day - 1) % 7)


def _days(found: Mapping[str, str]) -> int | None:
    year = _year(found)
    weeks = _WEEKS & found.keys()
    if any(int(found[letter]) > _MOST_WEEKS for letter in weeks - {"G"}) or int(found.get("V", "1")) < 1:
        return None
    is_of_week = weeks and not {"m", "d"} & found.keys()
    if is_of_week and not (weeks == {"G"} and {"Y", "y"} & found.keys()):
        return _day_of_week(found, weeks)
    if "j" in found:
        day = int(found["j"])
        first = _day_number(year, 1, 1)
        return first + day - 1 if first is not None and 1 <= day <= 365 + calendar.isleap(year) else None
    month = int(found.get("m", "1"))
    for letter in ("b", "h", "B"):
        if letter in found:
            month = [name[:3].lower() for name in _MONTHS].index(found[letter][:3].lower()) + 1
    return _day_number(year, month, int(found.get("d", "1")))


def _day_number(year: int, month: int, day: int) -> int | None:
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    months = np.array([(year - 1970) * 12 + month - 1])
    first, following = int(first_day_of_month(months)[0]), int(first_day_of_month(months + 1)[0])
    return first + day - 1 if first + day - 1 < following else None


def _clock(found: Mapping[str, str]) -> int | None:
    hour = int(found.get("H", "0"))
    if "I" in found:
        hour = int(found["I"])
        if not 1 <= hour <= 12:
            return None
        hour %= 12
    if "p" in found:
        if hour > 12:
            return None
        hour = hour % 12 + (12 if found["p"].upper() == "PM" else 0)
    minute, second = int(found.get("M", "0")), int(found.get("S", "0"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((found.get("f") or found.get("g") or "0").ljust(6, "0"))
    return ((hour * 60 + minute) * 60 + second) * 10**6 + micros


def _offset(zone: str | None) -> int:
    if zone is None:
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return (-seconds if zone[0] == "-" else seconds) * 10**6


def _strptime(*, try_: bool) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        pattern = value_of(arguments[1])
        read = _reader(pattern)

        def parse(text: str) -> int | None:
            found = read(text)
            if found is None and not try_:
                raise ValueError(f"'{text}' does not fit the pattern '{pattern}'; try_strptime() gives NULL")
            return found

        return per_value(parse)([arguments[0]], kind)

    return with_constants([1], apply)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "strftime": within_room("strftime", with_constants([1], _strftime), _written_size),
        "strptime": _strptime(try_=False),
        "try_strptime": _strptime(try_=True),
    }
)
