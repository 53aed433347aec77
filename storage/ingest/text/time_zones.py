"""Local times of named zones → instants, a column at a time."""

from __future__ import annotations

import datetime
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
"""Those of ICU (its file icuzones) that the time zone database has not."""

_FROM_UTC: Final = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?(\d{2}))?")
_END_OF_TABLES: Final = pa.scalar(datetime.datetime(2037, 1, 1), pa.timestamp("us"))
"""From here on rules tell when clocks are changed."""
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
    far = pc.greater_equal(local, _END_OF_TABLES)
    try:
        found = _in_utc(local, name)
        left_out = pc.not_equal(
            pc.call_function("local_timestamp", [found.cast(pa.timestamp("us", name))]), local
        )
        if pc.any(left_out).as_py():
            before = pc.subtract(local, _LONGEST_GAP)
            by_old_offset = pc.add(local, pc.subtract(_in_utc(before, name), before))
            found = pc.if_else(left_out, by_old_offset, found)
        if pc.any(far).as_py():
            found = pc.if_else(far, _compute_by_rules(local, far, name), found)
    except pa.ArrowException:  # Arrow's own copy of the database is missing or lacks the zone
        return None
    return found


def _compute_by_rules(local: Any, far: Array, name: str) -> Array:
    """As `instants`, for the rows of `far`: Arrow knows a zone's changes as far as they are in tables."""
    zone = zoneinfo.ZoneInfo(name)
    moments = pc.if_else(far, local, None)
    different = pc.unique(moments.drop_null())
    shifts = []
    for moment in different.to_pylist():
        # Where clocks are changed the two differ, and the smaller one is of the later moment, or of before.
        offsets = [moment.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
        shifts.append(min(offsets))
    places: Any = pc.index_in(moments, different)
    result: Array = pc.subtract(moments, pc.take(pa.array(shifts, pa.duration("us")), places))
    return result


def _in_utc(local: Any, name: str) -> Array:
    stamps: Any = pc.assume_timezone(local, name, ambiguous="latest", nonexistent="latest")
    in_utc: Array = stamps.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    return in_utc


@cache
def _names() -> Mapping[str, str]:
    """Names of zones in capitals → as the database has them."""
    known = {name.upper(): name for name in zoneinfo.available_timezones() if name != "localtime"}
    return MappingProxyType({**_SHORT_NAMES, **known, "Z": "UTC"})
