"""How far a proof goes that could go on for as long as one likes.

Within `make test` it goes as far as finds most faults; `make test-slow` takes what is marked `long` once
more, by `--long`, and further. Both run the same test.
"""

from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")

_goes_far = False


def go_far() -> None:
    """From here on: for `tests/conftest.py`, before tests are collected."""
    global _goes_far  # noqa: PLW0603 -- asked where examples are declared, when modules are imported
    _goes_far = True


def effort(short: int, long: int) -> int:
    """How many examples, outcomes or moments, here and now. The test is marked `long`."""
    return long if _goes_far else short


def spread(cases: Iterable[Case], every: int) -> list[Case]:
    """Of cases that are alike, every n-th, or all of them where tests go far. The test is marked `long`.

    For pairs, `every` and the number of second ones have no common divisor: then each of both is met.
    """
    return list(cases)[:: 1 if _goes_far else every]
