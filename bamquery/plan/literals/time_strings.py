"""What one text means as a date, a time or a timestamp: DuckDB's spellings.

Each function gives None for a text that means nothing of the kind, or nothing within the type.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import numpy as np

from bamquery.data_types.limits import FIRST_SECOND, LARGEST_DAY, LARGEST_UNIT
from bamquery.plan.literals.number_strings import BLANKS, EXACT, round_number
from bamquery.plan.literals.time_zones import offset_seconds

_DATE = r"(?P<year>-?\d{1,30})(?P<by>[-/ \\])(?P<month>\d{1,2})(?P=by)(?P<day>\d{1,2})(?P<bc> \([bB][cC]\))?"
_SECONDS = r"(?P<seconds>(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)"
_CLOCK = rf"(?P<hour>\d{{1,9}}):(?:(?P<minute>\d{{1,2}})(?::{_SECONDS}?)?)?"
_OFFSET = r"(?P<sign>[+-])(?P<hours>\d\d)(?::(?P<minutes>\d\d)(?::(?P<rest>\d\d))?|(?P<joined>\d\d))?"
_ZONE = rf"(?:Z|{_OFFSET}| (?P<name>[\w/+:-]*))"
_MOMENT: Final = re.compile(
    rf"[{BLANKS}]*{_DATE}(?:(?:T|[{BLANKS}])[{BLANKS}]*{_CLOCK}(?:{_ZONE}[{BLANKS}]*)?)?", re.ASCII
)
_TIME_OF_DAY: Final = re.compile(rf"[{BLANKS}]*{_CLOCK}", re.ASCII)

_DAY_SECONDS: Final = 86_400
_MICROSECONDS: Final = 6
_MOST_YEARS: Final = 10**7
"""Beyond any date's; spares counting the months of more."""


def date(text: str) -> int | None:
    """Days since 1970-01-01; a time of day may follow, and is dropped."""
    if _is_epoch(text):
        return 0
    match = _MOMENT.fullmatch(text) or _MOMENT.fullmatch(text.rstrip(BLANKS))
    if match is None:
        return None
    if match["hour"] is not None and (match.end() < len(text) or _units(match, _MICROSECONDS) is None):
        return None  # blanks may follow a day, but not the minutes alone
    days = _days(match)
    return days if days is not None and abs(days) <= LARGEST_DAY else None


def time(text: str, digits: int) -> int | None:
    """Units of 10**-digits seconds since midnight; a date may stand before.

    Behind a time with seconds anything may stand, and is dropped.
    """
    match = _TIME_OF_DAY.match(text)
    if match is not None and (match["seconds"] is not None or match.end() == len(text)):
        return _units(match, digits)
    if timestamp(text, _MICROSECONDS, in_utc=False) is None:
        return None
    instant = _local(text, digits)
    return None if instant is None else instant[0] % (_DAY_SECONDS * 10**digits)


def timestamp(text: str, digits: int, *, in_utc: bool) -> int | None:
    """Units of 10**-digits seconds since 1970-01-01 00:00:00.

    Digits beyond those, and beyond microseconds, are cut off; coarser units round what microseconds keep.
    With `in_utc` an offset from UTC or a zone counts; without, it is read and dropped.
    """
    fine = max(digits, _MICROSECONDS)
    found = _local(text, fine)
    if found is None:
        return None
    units, match = found
    scale = 10**fine
    if units // scale < FIRST_SECOND or abs(units) > LARGEST_UNIT:
        return None
    if in_utc and match is not None:
        offset = _offset(match, units // scale)
        if offset is None:
            return None
        units -= offset * scale
    coarse = int(round_number(Decimal(units).scaleb(digits - fine, EXACT), 0))
    return coarse if abs(coarse) * 10 ** (fine - digits) <= LARGEST_UNIT else None


def _local(text: str, digits: int) -> tuple[int, re.Match[str] | None] | None:
    """What is written but for the zone, in units of 10**-digits seconds, and its parts."""
    if _is_epoch(text):
        return 0, None
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    days = _days(match)
    inside = 0 if match["hour"] is None else _units(match, digits)
    if days is None or inside is None:
        return None
    return days * _DAY_SECONDS * 10**digits + inside, match


def _is_epoch(text: str) -> bool:
    """Whether it is the word for 1970-01-01."""
    return text.strip(BLANKS).lower() == "epoch"


def _days(match: re.Match[str]) -> int | None:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["bc"]:
        if year <= 0:
            return None
        year = 1 - year
    if not 1 <= month <= 12 or not 1 <= day <= 31 or abs(year) > _MOST_YEARS:
        return None
    months = np.int64((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = int(months.astype("datetime64[D]").astype(np.int64)) + day - 1
    # The 30th of February lands in March.
    return days if np.int64(days).astype("datetime64[D]").astype("datetime64[M]") == months else None


def _units(match: re.Match[str], digits: int) -> int | None:
    hour, minute, second = int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0)
    fraction = int(((match["fraction"] or "") + "0" * digits)[:digits] or "0")
    seconds = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or (hour > 23 and (seconds, fraction) != (_DAY_SECONDS, 0)):
        return None
    return seconds * int(10**digits) + fraction


def _offset(match: re.Match[str], local: int) -> int | None:
    """Seconds that the written zone is ahead of UTC, None for one that there is not."""
    if match["name"]:
        return offset_seconds(match["name"], local)
    minutes = int(match["minutes"] or match["joined"] or 0)
    total = int(match["hours"] or 0) * 3600 + minutes * 60 + int(match["rest"] or 0)
    return -total if match["sign"] == "-" else total
