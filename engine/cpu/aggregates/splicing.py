"""Which groups of several states may be the same: few, where rows come nearly in the order of a key."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.keys.key_words import key_words
from bamquery.storage.format.storable_types import is_counted

Rows: TypeAlias = NDArray[np.int64]
Spread: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Generator[Any, None, None]]
"""Calls a function with each of some items, on threads maybe, and gives the answers in order."""

_MOST_SHARED: Final = 8
"""Part of all groups that may be in several states: if more are, to merge all costs little more."""


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
    """A `Spread` without threads."""
    for item in items:
        yield function(item)


def shared_groups(keys: Sequence[Sequence[Column]], spread: Spread = one_by_one) -> list[Rows] | None:
    """For each state the places of groups whose key another one may have; None if they are many.

    Args:
        keys: for each state its key columns, one at least.
        spread: how states are looked at.
    """
    for columns in zip(*keys, strict=True):
        if all(is_counted(column.type) and not column.null_count for column in columns):
            shared = _within_overlaps([_values(column) for column in columns], spread)
            if shared is not None:
                return shared
    return None


def _values(column: Column) -> NDArray[Any]:
    words = key_words(column)
    assert words is not None
    return words[0]


def _within_overlaps(values: Sequence[NDArray[Any]], spread: Spread) -> list[Rows] | None:
    with closing(spread(_span, values)) as answers:
        spans = list(answers)
    overlaps = _overlaps([span for span in spans if span])

    def places(state: tuple[NDArray[Any], list[int]]) -> Rows:
        one, span = state
        flags = np.zeros(len(one), np.bool_)
        for low, high in overlaps:
            if span and low <= span[1] and high >= span[0]:
                flags |= (one >= max(low, span[0])) & (one <= min(high, span[1]))
        return np.flatnonzero(flags)

    left = sum(map(len, values)) // _MOST_SHARED
    found: list[Rows] = []
    with closing(spread(places, zip(values, spans, strict=True))) as answers:
        for rows in answers:
            found.append(rows)
            left -= len(rows)
            if left < 0:
                return None
    return found


def _span(values: NDArray[Any]) -> list[int]:
    """The least and the greatest; nothing of no values."""
    bounds: list[int] = native.summarize_numbers([(values, None, 0)], False)[1].tolist()
    return bounds


def _overlaps(spans: list[list[int]]) -> list[tuple[int, int]]:
    """What of the number line lies within several spans, bounds included; in order, and apart."""
    found: list[tuple[int, int]] = []
    reached: int | None = None
    for low, high in sorted(spans):
        if reached is not None and low <= reached:
            start, end = low, min(high, reached)
            if found and start <= found[-1][1]:
                start, end = found[-1][0], max(end, found[-1][1])
                found.pop()
            found.append((start, end))
        reached = high if reached is None else max(reached, high)
    return found
