"""Arguments of `bamquery taxi`, from what users write; argparse shows the errors."""

from __future__ import annotations

import argparse
import math
import os
from typing import Final

from bamquery.queries.generator.recipe import COLUMNS
from bamquery.queries.generator.years import YEARS
from bamquery.text.identifiers import suggestion

_LARGEST: Final = 10**12


def count(text: str) -> int:
    """`20000000`, `20_000_000`, `20e6` or `20M`."""
    factors = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
    factor = factors.get(text[-1:].lower(), 1.0)
    try:
        number = float(text[:-1] if factor > 1 else text) * factor
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 20000000, 20e6 or 20M") from None
    if not (math.isfinite(number) and number.is_integer() and 0 <= number <= _LARGEST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {_LARGEST:.0e}")
    return int(number)


def positive(text: str) -> int:
    """A whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, such as 0.0003")
    return number


def shares(text: str) -> tuple[float, ...]:
    """Numbers from 0 to 1 with commas between."""
    found = tuple(share(part) for part in names(text))
    if not found:
        raise argparse.ArgumentTypeError("it takes shares from 0 to 1 with commas between, such as 0.001,0.1")
    return found


def years(text: str) -> tuple[int, int]:
    """`2018` or `2009-2021`, within the years that were measured."""
    first, _, last = text.partition("-")
    try:
        found = int(first), int(last or first)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a year or a range such as 2009-2021") from None
    if not min(YEARS) <= found[0] <= found[1] <= max(YEARS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not within {min(YEARS)} to {max(YEARS)}, the years that were measured"
        )
    return found


def names(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def columns(text: str) -> tuple[str, ...]:
    """Columns that can be generated, or all of them."""
    if text.strip().casefold() == "all":
        return tuple(COLUMNS)
    chosen = names(text.casefold())
    for name in chosen:
        if name not in COLUMNS:
            raise argparse.ArgumentTypeError(
                f"{name!r} is not a column that can be generated.{suggestion(name, COLUMNS)}"
            )
    if not chosen or len(set(chosen)) < len(chosen):
        raise argparse.ArgumentTypeError("it takes different column names with commas between, or all")
    return chosen


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0))
