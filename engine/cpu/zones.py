"""Time zones by name, as ICU knows them: those of the IANA database, old short names, and `GMT+5`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from typing import Final

_FIXED: Final = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)
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
        "cnt": "America/St_Johns",
        "cst": "America/Chicago",
        "ctt": "Asia/Shanghai",
        "eat": "Africa/Addis_Ababa",
        "ect": "Europe/Paris",
        "iet": "America/Indiana/Indianapolis",
        "ist": "Asia/Kolkata",
        "jst": "Asia/Tokyo",
        "mit": "Pacific/Apia",
        "net": "Asia/Yerevan",
        "nst": "Pacific/Auckland",
        "plt": "Asia/Karachi",
        "pnt": "America/Phoenix",
        "prt": "America/Puerto_Rico",
        "pst": "America/Los_Angeles",
        "sst": "Pacific/Guadalcanal",
        "est": "America/Panama",
        "mst": "America/Phoenix",
        "hst": "Pacific/Honolulu",
        "vst": "Asia/Ho_Chi_Minh",
    }
)
"""ICU's names of three letters that the IANA database has not, or had as zones of their own."""
_OF_THE_MACHINE: Final = frozenset({"localtime", "posixrules"})
_FIRST: Final = datetime(1, 1, 3)
_LAST: Final = datetime(9999, 12, 29)
_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Zone:
    """A time zone."""

    rules: tzinfo

    def offset(self, local: int) -> int:
        """Seconds east of UTC when clocks there show `local`, seconds since 1970.

        An hour that comes twice is the second one; one that is left out is counted from before it.
        """
        try:
            shown = min(max(_EPOCH + timedelta(seconds=local), _FIRST), _LAST)
        except OverflowError:
            shown = _FIRST if local < 0 else _LAST
        both = [shown.replace(tzinfo=self.rules, fold=fold).utcoffset() for fold in (0, 1)]
        return min(round(offset.total_seconds()) for offset in both if offset is not None)


@functools.cache
def _names() -> Mapping[str, str]:
    """The database's names, by themselves in small letters."""
    from zoneinfo import available_timezones  # noqa: PLC0415 (few queries name a zone)

    return MappingProxyType({name.lower(): name for name in available_timezones() - _OF_THE_MACHINE})


@functools.lru_cache(maxsize=256)
def zone_named(name: str) -> Zone | None:
    """The zone of that name, in any case; None where there is none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 (few queries name a zone)

    folded = name.lower()
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        hours, minutes = int(fixed[2]), int(fixed[3] or 0)
        if hours > _MOST_HOURS or minutes > 59:
            return None
        away = timedelta(hours=hours, minutes=minutes)
        return Zone(timezone(-away if fixed[1] == "-" else away))
    if folded in ("utc", "gmt"):
        return Zone(UTC)
    known = _SHORT.get(folded) or _names().get(folded)
    return None if known is None else Zone(ZoneInfo(known))
