"""Candidates that fit what was typed, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_MOST: Final = 300
"""Candidates that a menu has."""
_LEAST_OF_PART: Final = 2
"""Letters from which on a candidate may have them at the beginning of a part."""
_LEAST_INSIDE: Final = 4
"""Letters from which on it may have them anywhere."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be typed.

    Attributes:
        text: what would be inserted.
        name: what is compared and shown.
        meta: what is said beside it.
        kind: what it is; those of a lower number come first where they fit as well.
    """

    text: str
    name: str
    meta: str = ""
    kind: int = 0


def rank(candidates: Iterable[Candidate], typed: str) -> list[Candidate]:
    """Those whose names begin with what was typed, then those of which a part does, then those that have it.

    A part begins behind an underscore, a dot or a space; `pdt` has the first letters of the parts of
    `pickup_date_time`, in order. Case does not count. Where nothing was typed,
    all are there in their own order.
    """
    if not typed:
        return sorted(candidates, key=lambda one: one.kind)[:_MOST]
    wanted = typed.casefold()
    fitting: list[tuple[int, int, int, str, Candidate]] = []
    for candidate in candidates:
        folded = candidate.name.casefold()
        quality = _quality(folded, wanted)
        if quality is not None:
            fitting.append((quality, candidate.kind, len(folded), folded, candidate))
    fitting.sort(key=lambda one: one[:4])
    return [one[4] for one in fitting[:_MOST]]


def _quality(folded: str, wanted: str) -> int | None:
    """How well a name fits, 0 is best; None where it does not."""
    if folded.startswith(wanted):
        return 0
    if len(wanted) < _LEAST_OF_PART:
        return None
    place = folded.find(wanted)
    if place > 0 and not folded[place - 1].isalnum():
        return 1
    if place > 0 and len(wanted) >= _LEAST_INSIDE:
        return 3
    return 2 if wanted[0] == folded[:1] and _initials(wanted)(folded) else None


@lru_cache(maxsize=64)
def _initials(wanted: str) -> Callable[[str], bool]:
    """Whether letters are the first ones of a name's parts, in order, some parts left out."""

    def matches_initials(folded: str) -> bool:
        if "_" not in folded:
            return False
        parts = iter(folded.split("_"))
        return all(any(part.startswith(letter) for part in parts) for letter in wanted)

    return matches_initials
