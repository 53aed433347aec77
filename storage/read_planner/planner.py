"""How to read a column for some rows: stream, fetch vectors or fetch blocks, by what each costs."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.encoding import Footprint, StoredColumn
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.device_profile import DeviceProfile

CLEARLY: Final = 0.9
"""Costs are estimates; closer ones are not different."""


class Strategy(enum.Enum):
    """The ways of reading a column, the simplest first; `FragmentReader` has a method for each."""

    STREAM = "stream"
    """Every vector that zone maps did not prune, in large requests."""
    FETCH_VECTORS = "vectors"
    """The whole vectors that hold surviving rows, so that they can be verified."""
    FETCH_BLOCKS = "blocks"
    """Only the blocks that hold surviving rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy and what it should cost: seconds by the device's profile, bytes and commands."""

    strategy: Strategy
    cost_seconds: float
    bytes: int
    commands: int


def choose(  # noqa: PLR0917 - the first four are one question, the next three one volume
    fragment: Fragment,
    column: str,
    rows: NDArray[np.int64] | int,
    candidate_vectors: NDArray[np.int64],
    profile: DeviceProfile,
    block_size: int,
    reader_kind: str,
    forced: Strategy | None = None,
) -> Choice:
    """The cheapest way to read `column` for `rows`, all of which are in `candidate_vectors`.

    Row ids are counted exactly: distinct blocks, vectors and runs. A number of rows stands for so many
    anywhere in the candidates. What is read in whole vectors can be verified: blocks must be clearly cheaper
    to be chosen, and so must picked vectors over a stream. `forced` leaves no choice, but says what it costs.
    """
    stored = fragment.column(column)
    strategies = list(Strategy) if forced is None else [forced]
    footprints = [_footprint(stored, s, rows, candidate_vectors, block_size) for s in strategies]
    choices = [
        _choice(strategy, footprint, profile, block_size, reader_kind)
        for strategy, footprint in zip(strategies, footprints, strict=True)
    ]
    best = choices[0]
    for choice in choices[1:]:
        if choice.cost_seconds < CLEARLY * best.cost_seconds:
            best = choice
    return best


def expected_vectors(rows: int, vectors: int) -> int:
    """How many of `vectors` vectors hold one of `rows` rows, each as likely to be in any."""
    if rows <= 0 or not vectors:
        return 0
    return max(1, round(vectors * -math.expm1(-rows / vectors)))


def _footprint(
    stored: StoredColumn,
    strategy: Strategy,
    rows: NDArray[np.int64] | int,
    candidates: NDArray[np.int64],
    block_size: int,
) -> Footprint:
    match strategy:
        case Strategy.STREAM:
            return stored.vectors_footprint(candidates, block_size)
        case Strategy.FETCH_VECTORS:
            if isinstance(rows, int):
                count = expected_vectors(rows, len(candidates))
                # Drawn at random, so that as many follow on each other as chance has it.
                vectors = candidates[_spread_evenly(count, len(candidates))]
            else:
                vectors = vectors_of(rows)
            return stored.vectors_footprint(vectors, block_size)
        case Strategy.FETCH_BLOCKS:
            return stored.rows_footprint(rows, candidates, block_size)


@lru_cache(maxsize=256)
def _spread_evenly(count: int, total: int) -> NDArray[np.int64]:
    """`count` of `total` positions, ascending, drawn so that every plan of the same query is the same."""
    if count >= total:
        return np.arange(total)
    return np.sort(np.random.default_rng(total).choice(total, count, replace=False))


def _choice(
    strategy: Strategy, footprint: Footprint, profile: DeviceProfile, block_size: int, reader_kind: str
) -> Choice:
    size = footprint.blocks * block_size
    commands = footprint.runs
    if reader_kind == "direct":  # memory maps know no requests: a run is a run
        commands += size // profile.request_bytes
    return Choice(strategy, profile.seconds(size, commands) if commands else 0.0, size, commands)
