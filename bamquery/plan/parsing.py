"""What one text means as a number, a truth value, a date, a time or bytes: DuckDB's spellings.

Each function gives None for a text that means nothing of the kind. Ranges of types are the callers' care.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

import numpy as np

EXACT: Final = Context(prec=80, rounding=ROUND_HALF_UP)
"""Enough digits for the product of two 38-digit numbers."""

_BLANKS: Final = " \t\n\v\f\r"
_TRUE: Final = frozenset(("true", "t", "yes", "y", "1"))
_FALSE: Final = frozenset(("false", "f", "no", "n", "0"))

_DIGITS = r"\d+(?:_\d+)*"
_NUMBER: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?\d+)?", re.ASCII
)
_MINUS_ZERO: Final = re.compile("-0+")
_RADIX: Final = re.compile(r"0(?:[xX][0-9a-fA-F]+|[bB][01]+)", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)

_DATE = r"(?P<year>-?\d{1,7})(?P<by>[-/ \\])(?P<month>\d{1,2})(?P=by)(?P<day>\d{1,2})(?P<bc> \(BC\))?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
_ZONE = r"(?P<zone>Z| ?UTC| ?utc|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)?"
_TIMESTAMP: Final = re.compile(rf"{_DATE}(?:[T ] *{_TIME}{_ZONE})?", re.ASCII)
_TIME_ONLY: Final = re.compile(rf"{_TIME}{_ZONE}", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)

_LARGEST_EXPONENT = 60
"""Powers of ten beyond which no integer or decimal type reaches; spares writing out 1e999999999."""


def boolean(text: str) -> bool | None:
    """true, t, yes, y, 1 and their opposites, in any case; no spaces around."""
    folded = text.lower()
    if folded in _TRUE:
        return True
    return False if folded in _FALSE else None


def exact_number(text: str) -> Decimal | None:
    """A decimal number, `0x1F` or `0b11`; digits may be grouped by single underscores."""
    stripped = text.strip(_BLANKS)
    if _RADIX.fullmatch(stripped):
        return Decimal(int(stripped, 0))
    if not _NUMBER.fullmatch(stripped):
        return None
    try:
        number = Decimal(stripped.replace("_", ""))
    except InvalidOperation:  # an exponent beyond even Python's
        return None
    if number and number.adjusted() > _LARGEST_EXPONENT:
        return None
    return number if number.adjusted() >= -_LARGEST_EXPONENT else Decimal(0)


def unsigned_number(text: str) -> Decimal | None:
    """As `exact_number`, but of what begins with a minus -0 alone, without a point or an exponent."""
    stripped = text.lstrip(_BLANKS)  # DuckDB takes no blank behind it
    return None if stripped.startswith("-") and not _MINUS_ZERO.fullmatch(stripped) else exact_number(text)


def rounded(number: Decimal, scale: int) -> Decimal:
    """The number with so many digits after the point, half away from zero."""
    if len(number.as_tuple().digits) > EXACT.prec:
        sign, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        kept = EXACT.prec - 1
        # One digit stands for the tail, so that a tail just below one half does not become one.
        tail = (1,) if any(digits[kept:]) else (0,)
        number = Decimal((sign, digits[:kept] + tail, exponent + len(digits) - EXACT.prec))
    return number.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def floating(text: str) -> float | None:
    """A decimal number, infinity or NaN; too large a number is infinite."""
    stripped = text.strip(_BLANKS)
    if _NUMBER.fullmatch(stripped) or _NOT_FINITE.fullmatch(stripped):
        return float(stripped.replace("_", ""))
    return None


def timestamp(text: str, digits: int, *, in_utc: bool) -> int | None:
    """Units of 10**-digits seconds since 1970-01-01, further digits cut off.

    With `in_utc` an offset from UTC counts; without, it is read and dropped.
    """
    if _is_epoch(text):
        return 0
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if match is None:
        return None
    days = _days(match)
    if days is None:
        return None
    scale: int = 10**digits
    if match["hour"] is None:
        return days * 86_400 * scale
    inside = _units(match, digits)
    if inside is None:
        return None
    offset = _offset_seconds(match["zone"]) if in_utc else 0
    return (days * 86_400 - offset) * scale + inside


def date(text: str) -> int | None:
    """Days since 1970-01-01; a time of day may follow, and is dropped."""
    if _is_epoch(text):
        return 0
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if match is None or (match["hour"] is not None and _units(match, 6) is None):
        return None
    return _days(match)


def time(text: str, digits: int) -> int | None:
    """Units of 10**-digits seconds since midnight; a date may stand before."""
    stripped = text.strip(_BLANKS)
    match = _TIME_ONLY.fullmatch(stripped)
    if match is not None:
        return _units(match, digits)
    if ":" not in stripped:
        return None
    instant = timestamp(stripped, digits, in_utc=False)
    return None if instant is None else instant % (86_400 * 10**digits)


def _is_epoch(text: str) -> bool:
    """Whether it is the word for 1970-01-01."""
    return text.strip(_BLANKS).lower() == "epoch"


def _days(match: re.Match[str]) -> int | None:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["bc"]:
        year = 1 - year
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    months = np.int64((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = int(months.astype("datetime64[D]").astype(np.int64)) + day - 1
    # The 30th of February lands in March.
    return days if np.int64(days).astype("datetime64[D]").astype("datetime64[M]") == months else None


def _units(match: re.Match[str], digits: int) -> int | None:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    fraction = int(((match["fraction"] or "") + "0" * digits)[:digits] or "0")
    seconds = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or (hour > 23 and (seconds, fraction) != (86_400, 0)):
        return None
    units: int = seconds * 10**digits + fraction
    return units


def _offset_seconds(zone: str | None) -> int:
    match = _OFFSET.fullmatch(zone or "")
    if match is None:
        return 0
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    total = hours * 3600 + minutes * 60 + seconds
    return -total if match[1] == "-" else total


def blob(text: str) -> bytes | None:
    r"""ASCII characters as they are, `\xAA` for any other byte."""
    if not text.isascii() or re.search(r"\\(?!x[0-9a-fA-F]{2})", text):
        return None
    return re.sub(
        rb"\\x([0-9a-fA-F]{2})",
        lambda match: bytes([int(match[1], 16)]),
        text.encode("ascii"),
        flags=re.DOTALL,
    )
