"""Intervals as text, in DuckDB's spelling: `1 year 2 months 3 days 04:05:06.789`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fractions import Fraction

_BLANKS: Final = " \t\n"
_AMOUNT: Final = re.compile(r"[ \t\n]*(-?)(\d+)(?:\.(\d*))?[ \t\n]*([A-Za-z]*)", re.ASCII)
_END = r"(?=[ \t\n]|$)"
_CLOCK: Final = re.compile(
    rf"[ \t\n]*(-?)(\d+):(?:(\d{{1,2}})(?::(?:(\d{{1,2}})(?:\.(\d*))?|{_END})|{_END})|{_END})", re.ASCII
)
_AGO: Final = re.compile(r"[ \t\n]*ago[ \t\n]*$", re.ASCII | re.IGNORECASE)

_MICROSECONDS_PER_DAY: Final = 86_400 * 10**6
_DAYS_PER_MONTH: Final = 30
_MONTHS_PER_QUARTER: Final = 3
_PART: Final = range(-(2**31), 2**31)
"""What months and days may be."""
_MOST_MICROSECONDS: Final = (2**63 - 1) // 1000

_UNITS: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {
        name: (part, size)
        for part, size, names in (
            ("months", 12_000, "millennium millenniums millennia millenium mil mils"),
            ("months", 1200, "century centuries cent c"),
            ("months", 120, "decade decades dec decs"),
            ("months", 12, "year years y yr yrs"),
            ("months", 3, "quarter quarters"),
            ("months", 1, "month months mon mons"),
            ("days", 7, "week weeks w weekofyear"),
            ("days", 1, "day days d dayofmonth"),
            ("microseconds", 3600 * 10**6, "hour hours h hr hrs"),
            ("microseconds", 60 * 10**6, "minute minutes m min mins"),
            ("microseconds", 10**6, "second seconds s sec secs"),
            ("microseconds", 10**3, "millisecond milliseconds ms msec msecs msecond mseconds"),
            ("microseconds", 1, "microsecond microseconds us usec usecs usecond useconds"),
        )
        for name in names.split()
    }
)
"""Units, the part of an interval that they go to, and how much of it they are."""

Parts = tuple[int, int, int]
"""Months, days, microseconds."""


def parse_interval(text: str) -> Parts | None:
    """What a text says, or None where it says no interval.

    A number without a unit counts seconds, and is all of the text; a time of day ends it.
    """
    rest = text.lstrip(_BLANKS)
    if rest.startswith("@"):
        rest = rest[1:]
    totals = {"months": 0, "days": 0, "microseconds": 0}
    sign, seen, place = 1, False, 0
    while rest[place:].strip(_BLANKS):
        if (ago := _AGO.match(rest, place)) is not None and seen:
            sign, place = -1, ago.end()
            continue
        if (clock := _CLOCK.match(rest, place)) is not None:
            micros = _clock(clock)
            # What follows seconds is passed over, as DuckDB does.
            if micros is None or (clock.end() < len(rest) and clock[4] is None):
                return None
            totals["microseconds"] += micros
            seen, place = True, len(rest)
            continue
        amount = _AMOUNT.match(rest, place)
        alone = not seen and amount is not None and amount.end() == len(rest)
        if amount is None or not (amount[4] or alone) or not _add(totals, amount):
            return None
        seen, place = True, amount.end()
    months, days, micros = (sign * total for total in totals.values())
    if not seen or months not in _PART or days not in _PART or abs(micros) > _MOST_MICROSECONDS:
        return None
    return months, days, micros


def _clock(match: re.Match[str]) -> int | None:
    hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if minutes > 59 or seconds > 59:
        return None
    fraction = int(((match[5] or "") + "000000")[:6])
    micros = ((hours * 60 + minutes) * 60 + seconds) * 10**6 + fraction
    return -micros if match[1] else micros


def _add(totals: dict[str, int], match: re.Match[str]) -> bool:
    """Add an amount; False for a unit that there is not. A number alone counts seconds."""
    from fractions import Fraction  # noqa: PLC0415 (most queries have no intervals)

    unit = _UNITS.get(match[4].lower() or "second")
    if unit is None:
        return False
    part, size = unit
    sign = -1 if match[1] else 1
    digits = match[3] or ""
    totals[part] += sign * int(match[2]) * size
    fraction = Fraction(int(digits or "0"), 10 ** len(digits)) * size
    if part == "months" and size > _MONTHS_PER_QUARTER:
        totals["months"] += sign * _round_fraction(fraction)
    elif part == "months":
        totals["months"] += sign * int(fraction)
        days = (fraction - int(fraction)) * _DAYS_PER_MONTH
        if size == 1:
            totals["days"] += sign * int(days)
            totals["microseconds"] += sign * _round_fraction((days - int(days)) * _MICROSECONDS_PER_DAY)
        else:
            totals["days"] += sign * _round_fraction(days)
    elif part == "days":
        totals["days"] += sign * int(fraction)
        totals["microseconds"] += sign * _round_fraction((fraction - int(fraction)) * _MICROSECONDS_PER_DAY)
    elif size > 1:
        totals["microseconds"] += sign * _round_fraction(fraction)
    return True


def _round_fraction(fraction: Fraction) -> int:
    return (2 * fraction.numerator + fraction.denominator) // (2 * fraction.denominator)


def write(months: int, days: int, microseconds: int) -> str:
    """An interval's text; what is nothing is left out, but for a whole interval of nothing."""
    years, months = (abs(months) // 12 * _sign(months), abs(months) % 12 * _sign(months))
    parts = [_format_amount(years, "year"), _format_amount(months, "month"), _format_amount(days, "day")]
    if microseconds or not any(parts):
        size = abs(microseconds)
        seconds, fraction = divmod(size, 10**6)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        clock += f".{fraction:06d}".rstrip("0") if fraction else ""
        parts.append(f"-{clock}" if microseconds < 0 else clock)
    return " ".join(part for part in parts if part)


def _sign(number: int) -> int:
    return -1 if number < 0 else 1


def _format_amount(count: int, unit: str) -> str:
    return f"{count} {unit}{'s' * (abs(count) != 1)}" if count else ""
