"""Local times of named zones → instants, a column at a time."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

_SHORT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ACT": "Australia/Darwin",
        "AET": "Australia/Sydney",
        "AGT": "America/Argentina/Buenos_Aires",
        "ART": "Africa/Cairo",
        "AST": "America/Anchorage",
        "BET": "America/Sao_Paulo",
        "BST": "Asia/Dhaka",
        "CAT": "Africa/Maputo",
        "CNT": "America/St_Johns",
        "CST": "America/Chicago",
        "CTT": "Asia/Shanghai",
        "EAT": "Africa/Nairobi",
        "ECT": "Europe/Paris",
        "IET": "America/Indiana/Indianapolis",
        "IST": "Asia/Kolkata",
        "JST": "Asia/Tokyo",
        "MIT": "Pacific/Apia",
        "NET": "Asia/Yerevan",
        "NST": "Pacific/Auckland",
        "PLT": "Asia/Karachi",
        "PNT": "America/Phoenix",
        "PRT": "America/Puerto_Rico",
        "PST": "America/Los_Angeles",
        "SST": "Pacific/Guadalcanal",
        "VST": "Asia/Ho_Chi_Minh",
    }
)
"""Those of ICU (source/data/misc/../tools/tzcode/icuzones) that the time zone database has not."""

_FROM_UTC: Final = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?(\d{2}))?")
_LONGEST_GAP: Final = pa.scalar(24 * 3600 * 1_000_000, pa.duration("us"))
"""Local times that no clock shows are taken by the offset that was in force this long before."""


def instants(local: Array, zone: str) -> Array | None:
    """Timestamps of a zone as those of UTC, both without one in their type; None where there is no such zone.

    As in ICU and DuckDB, of two moments with one local time it is the later, and a time that the clocks leave
    out is counted by the offset before.
    """
    shift = _FROM_UTC.fullmatch(zone.upper())
    if shift is not None:
        seconds = int(shift[2]) * 3600 + int(shift[3] or 0) * 60
        offset = pa.scalar((-seconds if shift[1] == "-" else seconds) * 1_000_000, pa.duration("us"))
        return pc.subtract(local, offset)
    name = _names().get(zone.upper())
    if name is None:
        return None
    try:
        found = _in_utc(local, name)
        left_out = pc.not_equal(
            pc.call_function("local_timestamp", [found.cast(pa.timestamp("us", name))]), local
        )
        if pc.any(left_out).as_py():
            before = pc.subtract(local, _LONGEST_GAP)
            by_old_offset = pc.add(local, pc.subtract(_in_utc(before, name), before))
            found = pc.if_else(left_out, by_old_offset, found)
    except pa.ArrowException:  # Arrow's own copy of the database is missing or lacks the zone
        return None
    return found


def _in_utc(local: Any, name: str) -> Array:
    stamps: Any = pc.assume_timezone(local, name, ambiguous="latest", nonexistent="latest")
    in_utc: Array = stamps.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return in_utc


@cache
def _names() -> Mapping[str, str]:
    """Names of zones in capitals → as the database has them."""
    known = {name.upper(): name for name in zoneinfo.available_timezones() if name != "localtime"}
    return MappingProxyType({**_SHORT_NAMES, **known, "Z": "UTC"})
