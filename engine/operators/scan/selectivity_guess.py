"""How many rows should pass a scan's steps, as far as zone maps tell before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.predicate import RangePredicate

TYPICAL_SELECTIVITY: Final = 0.3
"""For a condition about which zone maps say nothing."""

_SAMPLED_FRAGMENTS: Final = 8
"""Fragments whose zone maps are looked at."""
_MANY_VALUES: Final = 64
"""Of a list, about whose single values zone maps tell next to nothing, and cost more the longer it is."""


def guess_selectivities(steps: Sequence[FilterStep], fragments: Sequence[Fragment]) -> list[float]:
    """For each step, the share of rows that pass, of those in vectors that zone maps leave to it."""
    sampled = fragments[:_SAMPLED_FRAGMENTS]
    guesses = []
    for step in steps:
        ranges = [found for conjunct in step.conjuncts for found in conjunct.ranges]
        lists = [one for one in ranges if _is_long_list(one)]
        others = [one for one in ranges if not _is_long_list(one)]
        guess = _guess_share(others, sampled) if others else 1.0
        for one in lists:
            guess *= _share_of_list(one, sampled)
        guesses.append(guess if ranges else TYPICAL_SELECTIVITY)
    return guesses


def _is_long_list(found: RangePredicate) -> bool:
    return found.members is not None and len(found.members) > _MANY_VALUES


def _share_of_list(listed: RangePredicate, fragments: Sequence[Fragment]) -> float:
    """Share of the column's different values that a list has, if these are all between its bounds."""
    zones = [fragment.zone_map.column(listed.column) for fragment in fragments]
    bounds = [found for one in zones if (found := one.counted_bounds) is not None]
    if not bounds:
        return TYPICAL_SELECTIVITY
    span = max(high for _, high in bounds) - min(low for low, _ in bounds) + 1
    different = min(span, sum(fragment.rows for fragment in fragments))
    return min(len(listed.members) / different, 1.0)


def _guess_share(ranges: Sequence[RangePredicate], fragments: Sequence[Fragment]) -> float:
    total = sum(fragment.vector_count for fragment in fragments)
    left, full = 0, 0
    for fragment in fragments:
        alive = fragment.zone_map.possible(ranges)
        left += int(np.count_nonzero(alive))
        full += int(np.count_nonzero(alive & fragment.zone_map.certain(ranges)))
    if not left:
        return 0.0
    partial = left - full
    return (full + partial * _share_within(partial, total - full)) / left


def _share_within(hit: int, vectors: int) -> float:
    """Share of matching rows in vectors with a match, if matches fell evenly over all `vectors`.

    With a share s of all rows matching, 1 - (1 - s)^1024 of the vectors have a match.
    """
    if hit >= vectors:
        return TYPICAL_SELECTIVITY
    hit_share = hit / vectors
    return float((1 - (1 - hit_share) ** (1 / VECTOR_ROWS)) / hit_share) if hit else 0.0
