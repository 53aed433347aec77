"""Sizes, shares and lists as people write them on a command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MOST_STEPS: Final = 64

Value = TypeVar("Value")


def parse_size(text: str) -> int:
    """Bytes of `4096`, `4k`, `64KiB`, `1G`; as in fio every suffix counts in 1024s, but `kB`, `MB`, ....

    Raises:
        ValueError: it is none of these, or not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?)(ib|b)?", text.strip().lower())
    if match is None or (match.group(3) == "ib" and not match.group(2)):
        raise ValueError("it takes bytes, or a size such as 4k, 64KiB, 1G or 10GB")
    base = 1000 if match.group(2) and match.group(3) == "b" else 1024
    size = float(match.group(1)) * base ** _POWERS[match.group(2)]
    if size < 1 or size != int(size):
        raise ValueError("it takes a whole number of bytes, more than 0")
    return int(size)


def format_size(size: int) -> str:
    """The shortest of `512`, `4k`, `64k`, `1G` that is exact."""
    for suffix, power in reversed(_POWERS.items()):
        if size >= 1024**power and size % 1024**power == 0:
            return f"{size // 1024**power}{suffix.upper() if power > 1 else suffix}"
    return str(size)


def parse_seconds(text: str) -> float:
    """Seconds of `5`, `0.5s`, `2m`, `300ms`.

    Raises:
        ValueError: it is none of these, or not positive.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|)", text.strip().lower())
    if match is None:
        raise ValueError("it takes seconds, or a time such as 500ms, 10s or 2m")
    seconds = float(match.group(1)) * {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0}[match.group(2)]
    if seconds <= 0:
        raise ValueError("it takes a time of more than 0")
    return seconds


def parse_count(text: str) -> int:
    """A whole number from 1 on.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise ValueError("it takes a whole number from 1 on")
    return int(text)


def parse_write_share(text: str) -> float:
    """`read`: 0, `write`: 1, `70/30`: 0.3, as fio's rwmixread and rwmixwrite.

    Raises:
        ValueError: it is none of these.
    """
    fixed = {"read": 0.0, "write": 1.0}
    if text in fixed:
        return fixed[text]
    match = re.fullmatch(r"(\d{1,3})/(\d{1,3})", text)
    if match is None or int(match.group(1)) + int(match.group(2)) != 100:
        raise ValueError("it takes read, write, or percents of both such as 70/30")
    return int(match.group(2)) / 100


def parse_values(text: str, parse: Callable[[str], Value]) -> tuple[Value, ...]:
    """Values of a sweep: `1,2,8`, or `1..8` for each doubling from the first to the last.

    Raises:
        ValueError: there are none, too many, or `parse` takes one of them not.
    """
    first, dots, last = text.partition("..")
    if not dots:
        return tuple(parse(part) for part in text.split(","))
    low, high = parse(first), parse(last)
    if not (isinstance(low, int) and isinstance(high, int)):
        raise ValueError("only whole numbers and sizes have ranges: list the values")
    values = [low]
    while values[-1] < high and len(values) < _MOST_STEPS:
        values.append(min(type(low)(values[-1] * 2), high))
    if low > high:
        raise ValueError("a range goes from the smaller to the larger value")
    return tuple(values)
