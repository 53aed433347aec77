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


def guess_selectivities(steps: Sequence[FilterStep], fragments: Sequence[Fragment]) -> list[float]:
    """For each step, the share of rows that pass, of those in vectors that zone maps leave to it."""
    sampled = fragments[:_SAMPLED_FRAGMENTS]
    guesses = []
    for step in steps:
        ranges = [found for conjunct in step.conjuncts for found in conjunct.ranges]
        guesses.append(_guess_share(ranges, sampled) if ranges else TYPICAL_SELECTIVITY)
    return guesses


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
