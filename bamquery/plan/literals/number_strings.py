"""What one text means as a number, a truth value or bytes: DuckDB's spellings. Dates: `time_strings`.

Each function gives None for a text that means nothing of the kind. Ranges of types are the callers' care.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_integral

EXACT: Final = Context(prec=80, rounding=ROUND_HALF_UP)
"""Enough digits for the product of two 38-digit numbers."""

BLANKS: Final = " \t\n\v\f\r"
"""What may stand before and behind most values."""

_TRUE: Final = frozenset(("true", "t", "yes", "y", "1"))
_FALSE: Final = frozenset(("false", "f", "no", "n", "0"))

_DIGITS = r"\d+(?:_\d+)*"
_NUMBER: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE](?P<exponent>[+-]?{_DIGITS}))?", re.ASCII
)
_MINUS_ZERO: Final = re.compile("-0+")
_RADIX: Final = re.compile(
    r"0(?:[xX]0*(?P<hex>[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|[bB]0*(?P<bits>[01]+(?:_[01]+)*))", re.ASCII
)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)

_LARGEST_EXPONENT = 40
"""Powers of ten beyond which no integer or decimal type reaches; spares writing out 1e999999999."""
_SMALLEST_WRITTEN, _LARGEST_WRITTEN = -(2**15), 2**15 - 1
"""Exponents that DuckDB reads for these types."""
_MOST_BITS: Final = 200


def boolean(text: str) -> bool | None:
    """true, t, yes, y, 1 and their opposites, in any case; no spaces around."""
    folded = text.lower()
    if folded in _TRUE:
        return True
    return False if folded in _FALSE else None


def integral_number(text: str) -> Decimal | None:
    """As `exact_number`, and `0x1F` or `0b11`, which nothing but blanks stands before."""
    stripped = text.lstrip(BLANKS)
    match = _RADIX.fullmatch(stripped)
    if match is None:
        return exact_number(text)
    base, digits = (16, match["hex"]) if match["hex"] else (2, match["bits"])
    digits = digits.replace("_", "")
    return Decimal(int(digits, base)) if len(digits) <= _MOST_BITS // (4 if base == 16 else 1) else None


def exact_number(text: str) -> Decimal | None:
    """A decimal number; its digits may be grouped by single underscores."""
    stripped = text.strip(BLANKS)
    match = _NUMBER.fullmatch(stripped)
    if match is None:
        return None
    exponent = (match["exponent"] or "0").replace("_", "")
    # Long ones are not converted: Python refuses those of more than 4,300 digits.
    if len(exponent.lstrip("+-0")) > 5 or not _SMALLEST_WRITTEN <= int(exponent) <= _LARGEST_WRITTEN:
        return None
    number = Decimal(stripped.replace("_", ""))
    if number and number.adjusted() > _LARGEST_EXPONENT:
        return None
    return number if number.adjusted() >= -_LARGEST_EXPONENT else Decimal(0)


def unsigned_number(text: str) -> Decimal | None:
    """As `integral_number`, but of what begins with a minus -0 alone, without a point or an exponent."""
    stripped = text.lstrip(BLANKS)  # DuckDB takes no blank behind it
    return None if stripped.startswith("-") and not _MINUS_ZERO.fullmatch(stripped) else integral_number(text)


def number_reader(kind: pa.DataType) -> Callable[[str], Decimal | None]:
    """What reads strings for an integer or decimal type."""
    if pa.types.is_unsigned_integer(kind):
        return unsigned_number
    return integral_number if is_integral(kind) else exact_number


def round_number(number: Decimal, scale: int) -> Decimal:
    """The number with so many digits after the point, half away from zero."""
    if len(number.as_tuple().digits) > EXACT.prec:
        sign, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        kept = EXACT.prec - 1
        # One digit stands for the tail, so that a tail just below one half does not become one.
        tail = (1,) if any(digits[kept:]) else (0,)
        number = Decimal((sign, digits[:kept] + tail, exponent + len(digits) - EXACT.prec))
    return number.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def parse_float(text: str) -> float | None:
    """A decimal number, infinity or NaN, of which +-1 is one; too large a number is infinite."""
    stripped = text.strip(BLANKS)
    if stripped.startswith("+-"):
        stripped = stripped[1:]
    if _NUMBER.fullmatch(stripped) or _NOT_FINITE.fullmatch(stripped):
        return float(stripped.replace("_", ""))
    return None


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
