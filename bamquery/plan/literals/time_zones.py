"""Time zones by name, as strings of a TIMESTAMP WITH TIME ZONE give them: `Asia/Tokyo`, `EST`, `GMT+5:30`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_COLONS: Final = re.compile(r"GMT[+-](\d{1,2})(?::(\d{2}))?(?::(\d{2}))?", re.ASCII)
_DIGITS: Final = re.compile(r"GMT[+-](\d{1,2})(\d{2})(\d{2})?", re.ASCII)
_UTC: Final = re.compile(r"UTC[+-](\d{1,2})", re.ASCII)
_MOST_HOURS: Final = 23

_SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "act": "Australia/Darwin",
        "aet": "Australia/Sydney",
        "agt": "America/Argentina/Buenos_Aires",
        "art": "Africa/Cairo",
        "ast": "America/Anchorage",
        "bet": "America/Sao_Paulo",
        "bst": "Asia/Dhaka",
        "cat": "Africa/Maputo",
        "cet": "Europe/Brussels",
        "cnt": "America/St_Johns",
        "cst": "America/Chicago",
        "ctt": "Asia/Shanghai",
        "eat": "Africa/Nairobi",
        "ect": "Europe/Paris",
        "eet": "Europe/Athens",
        "est": "America/Panama",
        "hst": "Pacific/Honolulu",
        "iet": "America/Indiana/Indianapolis",
        "ist": "Asia/Kolkata",
        "jst": "Asia/Tokyo",
        "met": "Europe/Brussels",
        "mit": "Pacific/Apia",
        "mst": "America/Phoenix",
        "net": "Asia/Yerevan",
        "nst": "Pacific/Auckland",
        "plt": "Asia/Karachi",
        "pnt": "America/Phoenix",
        "prt": "America/Puerto_Rico",
        "pst": "America/Los_Angeles",
        "sst": "Pacific/Guadalcanal",
        "vst": "Asia/Ho_Chi_Minh",
        "wet": "Europe/Lisbon",
    }
)
"""Three letters that ICU, and with it DuckDB, has for zones; of some the tz database said else once."""

_CYCLE_DAYS: Final = 146_097
"""400 years, after which the calendar's weekdays, and with them the rules of zones, come again."""
_CYCLE_SECONDS: Final = _CYCLE_DAYS * 86_400
_FIRST, _LAST = -62_135_510_400, 253_370_764_800
"""Years 2 to 9998, within which Python's datetime has every offset, in seconds since 1970."""
_ZERO: Final = datetime(1970, 1, 1)


def offset_seconds(name: str, local: int) -> int | None:
    """Seconds that a zone is ahead of UTC at a local time, given in seconds since 1970-01-01 00:00:00.

    Where clocks are put forward or back and a local time is there twice or never, standard time counts.

    Returns:
        None for a name that is no zone's.
    """
    fixed = _fixed_offset(name)
    if fixed is not None:
        return fixed
    zone = _zone(name.lower())
    if zone is None:
        return None
    # Before there were zones the first offset holds, after what is planned the last rule goes on.
    if local < _FIRST:
        local += -(-(_FIRST - local) // _CYCLE_SECONDS) * _CYCLE_SECONDS
    elif local > _LAST:
        local -= -(-(local - _LAST) // _CYCLE_SECONDS) * _CYCLE_SECONDS
    there = (_ZERO + timedelta(seconds=local)).replace(tzinfo=zone)
    offsets = (there.utcoffset(), there.replace(fold=1).utcoffset())
    return min(int(offset.total_seconds()) for offset in offsets if offset is not None)


def _fixed_offset(name: str) -> int | None:
    """Of `UTC+5`, `GMT-05:30`, `GMT+0530`."""
    match = _UTC.fullmatch(name) or _COLONS.fullmatch(name) or _DIGITS.fullmatch(name)
    if match is None:
        return None
    parts = (*match.groups(), None, None)[:3]
    hours, minutes, seconds = (int(part or 0) for part in parts)
    if hours > _MOST_HOURS or minutes > 59 or seconds > 59:
        return None
    total = hours * 3600 + minutes * 60 + seconds
    return -total if name[3] == "-" else total


@cache
def _zone(folded: str) -> ZoneInfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 (few queries have zones)

    name = _names().get(folded)
    return None if name is None else ZoneInfo(name)


@cache
def _names() -> Mapping[str, str]:
    """Zones by their names in lower case."""
    from zoneinfo import available_timezones  # noqa: PLC0415 (few queries have zones)

    return {**{name.lower(): name for name in available_timezones() - {"localtime"}}, **_SHORT}
