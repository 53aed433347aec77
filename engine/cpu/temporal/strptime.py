"""strptime: strings read as moments by patterns of `%` and a letter, from left to right and never back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.calendar import first_day_of_month
from bamquery.engine.cpu.kernels import Column, Datum, Implementation
from bamquery.engine.cpu.temporal.strftime import DAY_NAMES, MONTH_NAMES, pieces_of
from bamquery.engine.cpu.value_kernels import per_value, python_value, with_constants
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND
from bamquery.errors import ExecutionError
from bamquery.plan.literals.time_zones import offset_seconds

_DAY_NANOSECONDS: Final = 86_400 * 10**9
_MOST_PIECES: Final = 1000
_BLANKS: Final = r"[ \t\n\v\f\r]"
_ONE_OR_TWO: Final = r"\d{1,2}+"

_READERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("d", "-d", "m", "-m", "H", "-H", "I", "-I", "M", "-M", "S", "-S"), _ONE_OR_TWO),
        **dict.fromkeys(("y", "-y", "U", "W", "V"), _ONE_OR_TWO),
        **dict.fromkeys(("j", "-j"), r"\d{1,3}+"),
        "Y": r"\d{1,4}+",
        "G": r"\d{1,4}+",
        "u": r"\d",
        "w": r"\d",
        "f": r"\d{1,6}+",
        "g": r"\d{1,3}+",
        "n": r"\d{1,9}+",
        "b": "(?i:" + "|".join(name[:3] for name in MONTH_NAMES) + ")",
        "h": "(?i:" + "|".join(name[:3] for name in MONTH_NAMES) + ")",
        "B": "(?i:" + "|".join(MONTH_NAMES) + ")",
        "a": "(?i:" + "|".join(name[:3] for name in DAY_NAMES) + ")",
        "A": "(?i:" + "|".join(DAY_NAMES) + ")",
        "p": "(?i:AM|PM)",
        "z": r"[+-]\d{2}(?::?\d{2}(?::\d{2})?+)?+",
        "Z": r"[A-Za-z0-9_/+:-]++",
        "%": "%",
    }
)
"""What a letter reads; digits as many as there are, and none of them given back to the next letter."""

_RANGES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "d": (1, 31),
        "m": (1, 12),
        "H": (0, 23),
        "I": (1, 12),
        "M": (0, 59),
        "S": (0, 59),
        "U": (0, 53),
        "W": (0, 53),
        "V": (1, 53),
        "j": (1, 366),
        "u": (1, 7),
        "w": (0, 6),
    }
)
_DATES: Final = frozenset("dm")
_YEARS: Final = frozenset("Yy")
_ISO: Final = frozenset("GV")
_OF_YEAR: Final = frozenset("UWj")


def _day_source(letters: Sequence[str]) -> str | None:
    """How the day is found: by "d" (year, month and day), or one of GVUWj; None where letters conflict.

    Their order matters: days and months count before all others, years before weeks of ISO that come first.
    """
    found = ""
    seen: set[str] = set()
    for letter in letters:
        if letter == "u" and "u" in seen:
            return None
        if letter in _DATES:
            found = "d"
        elif letter in _YEARS and found in ("", "G", "V"):
            found = "Y"
        elif letter in _ISO and found != "d" and (letter, found) != ("G", "Y"):
            if found and (found not in _ISO or letter in seen):
                return None
            found = letter
        elif letter in _OF_YEAR and found != "d":
            if found not in ("", "Y"):
                return None
            found = letter
        seen.add(letter)
    return found


def _reader(pattern: str) -> Callable[[str], int | None]:
    """What reads strings of a pattern as nanoseconds since 1970; None where one does not fit it."""
    pieces = list(islice(pieces_of(pattern, _READERS), _MOST_PIECES + 1))
    if len(pieces) > _MOST_PIECES:
        raise ExecutionError(f"a pattern of dates and times has more than {_MOST_PIECES} parts")
    letters = [text.lstrip("-") for text, is_letter in pieces if is_letter]
    day_by = _day_source(letters)

    def piece_pattern(text: str, is_letter: bool) -> str:
        if is_letter:
            return f"({_READERS[text]})"
        return "".join(
            f"{_BLANKS}++" if part.isspace() else re.escape(part)
            for part in re.split(f"({_BLANKS}+)", text)
            if part
        )

    regex = "".join(piece_pattern(*piece) for piece in pieces)
    compiled = re.compile(rf"{_BLANKS}*+{regex}{_BLANKS}*+", re.ASCII)

    def read_moment(text: str) -> int | None:
        match = compiled.fullmatch(text)
        if match is None or day_by is None:
            return 0 if text.strip().lower() == "epoch" else None
        values = list(zip(letters, match.groups(), strict=True))
        if any(
            not _RANGES[letter][0] <= int(v) <= _RANGES[letter][1]
            for letter, v in values
            if letter in _RANGES
        ):
            return None
        found: dict[str, str] = {}
        for letter, value in values:  # the last of equal letters counts, and is the last
            found.pop(letter, None)
            found[letter] = value
        days, clock = _days(found, day_by), _clock(found)
        if days is None or clock is None:
            return None
        local = days * _DAY_NANOSECONDS + clock
        away = _zone_offset(found["Z"], local) if "Z" in found else 0
        return local - (_offset(found["z"]) if "z" in found else away)

    return read_moment


def _is_in_range(letter: str, value: str) -> bool:
    low, high = _RANGES.get(letter, (None, None))
    return low is None or high is None or low <= int(value) <= high


class _UnknownZoneError(ValueError):
    """A text that fits the pattern, with a zone that there is not."""


def _zone_offset(name: str, local: int) -> int:
    """Nanoseconds east of UTC at a local time."""
    seconds = offset_seconds(name, local // 10**9)
    if seconds is None:
        raise _UnknownZoneError(f"there is no time zone '{name}'; try_strptime() gives NULL")
    return seconds * 10**9


def _days(found: Mapping[str, str], day_by: str) -> int | None:
    year = _year(found)
    if day_by in _ISO:
        fourth = _day_number(int(found.get("G", "1900")), 1, 4)
        if fourth is None:
            return None
        return fourth - _weekday(fourth) + int(found.get("V", "1")) * 7 - 7 + int(found.get("u", "1")) - 1
    first = _day_number(year, 1, 1)
    if day_by in ("U", "W"):
        if first is None:
            return None
        start, default = (6, "0") if day_by == "U" else (0, "1")
        week = first + (start - _weekday(first)) % 7 + int(found[day_by]) * 7 - 7
        day = int(found.get("w", default))
        return week + (day if day_by == "U" else (day - 1) % 7)
    if day_by == "j":
        day = int(found["j"])
        return None if first is None else first + day - 1
    return _day_number(year, _month(found), int(found.get("d", "1")))


def _last_read(found: Mapping[str, str], letters: str) -> tuple[str, str]:
    """Of letters that say the same, the one that comes last in the pattern, and what it read."""
    return next((pair for pair in reversed(list(found.items())) if pair[0] in letters), ("", ""))


def _month(found: Mapping[str, str]) -> int:
    letter, text = _last_read(found, "mbhB")
    if letter in ("b", "h", "B"):
        return [name[:3].lower() for name in MONTH_NAMES].index(text[:3].lower()) + 1
    return int(text or "1")


def _year(found: Mapping[str, str]) -> int:
    letter, text = _last_read(found, "Yy")
    if letter == "y":
        return int(text) + (1900 if int(text) >= 69 else 2000)
    return int(text or "1900")


def _weekday(day: int) -> int:
    """From Monday, 0."""
    return (day + 3) % 7


def _day_number(year: int, month: int, day: int) -> int | None:
    months = np.array([(year - 1970) * 12 + month - 1])
    first, following = int(first_day_of_month(months)[0]), int(first_day_of_month(months + 1)[0])
    return first + day - 1 if first + day - 1 < following else None


def _clock(found: Mapping[str, str]) -> int | None:
    hour = int(_last_read(found, "HI")[1] or "0")
    if "p" in found:
        if hour > 12:
            return None
        hour = hour % 12 + (12 if found["p"].upper() == "PM" else 0)
    minute, second = int(found.get("M", "0")), int(found.get("S", "0"))
    fraction = _last_read(found, "nfg")[1]
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int(fraction.ljust(9, "0"))


def _offset(zone: str) -> int:
    """Nanoseconds east of UTC."""
    digits = zone[1:].replace(":", "").ljust(6, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:4])) * 60 + int(digits[4:])
    return (-seconds if zone[0] == "-" else seconds) * 10**9


def _strptime(*, try_: bool) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        pattern = python_value(arguments[1])
        read = _reader(pattern)
        assert isinstance(kind, pa.TimestampType)
        unit = 10**9 // UNITS_PER_SECOND[kind.unit]

        def parse(text: str) -> int | None:
            try:
                found = read(text)
            except _UnknownZoneError:
                if try_:
                    return None
                raise
            if found is None and not try_:
                raise ValueError(f"'{text}' does not fit the pattern '{pattern}'; try_strptime() gives NULL")
            if found is not None and not -(2**63) < found // unit < 2**63:
                if try_:
                    return None
                raise ExecutionError(f"'{text}' is outside of what TIMESTAMP_NS holds")
            return None if found is None else found // unit

        return per_value(parse)([arguments[0]], kind)

    return with_constants([1], apply)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {"strptime": _strptime(try_=False), "try_strptime": _strptime(try_=True)}
)
