"""Trip distances: for every kind of row a table from "share of trips at least this long" to miles.

A row's place in the order of distances is given; its distance is read from the table of its kind. Tables are
looked up by the bits of the share itself (an octave is cut in 64 cells, each linear), which resolves the rare
long trips as finely as the common short ones and needs no logarithm: the same bits on every machine.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.generator.hashing import Words
from bamquery.queries.generator.layout import Floats, Layout, Places
from bamquery.queries.generator.lookup import interpolate
from bamquery.queries.generator.measured import load_measured
from bamquery.queries.generator.years import YEARS, Year

LONG_TRIP: Final = 3000  # hundredths of a mile: what Q1 to Q5 ask for
_CELL_BITS: Final = 6
_OCTAVES: Final = 42  # shares down to 2^-42: beyond a trillion rows
_MANTISSA: Final = 52
_CELL_SHIFT: Final = _MANTISSA - _CELL_BITS
_FIRST_CELL: Final = (1023 - _OCTAVES) << _CELL_BITS
_CELLS: Final = _OCTAVES << _CELL_BITS
_RUN_BITS: Final = 10  # rows of one run of the local spread: 1,024
# Kinds of rows within a year.
_CALM, _BUSY, _TAIL = range(3)
_KINDS: Final = 3
# What broken positions make of a distance: every power of two is as likely.
_GARBAGE: Final = (200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 12.8e3, 25.6e3, 51.2e3, 102.4e3, 260e3)


class Distances:
    """Distances for a layout, with a given share of trips of 30 miles or more.

    Attributes:
        long_share: of each kind of row (three a year), the share of trips of 30 miles or more.
    """

    def __init__(self, layout: Layout, match_share: float | None) -> None:
        """Build the tables; `match_share` None keeps the measured shares."""
        self._rows = layout.rows
        years = sorted({year for year, _ in layout.months})
        self._first_kind = np.array([years.index(year) * _KINDS for year, _ in layout.months], np.int32)
        kinds = [(YEARS[year], kind) for year in years for kind in range(_KINDS)]
        weights = self._weights(layout, years)
        self.long_share: Floats = np.array([0.0] * len(kinds))
        for place, year in enumerate(years):
            self.long_share[place * _KINDS : (place + 1) * _KINDS] = _long_shares(
                YEARS[year], weights[place * _KINDS : (place + 1) * _KINDS]
            )
        if match_share is not None:
            self.long_share = _scaled_to(self.long_share, weights, match_share)
        self._zero = np.array([year.zero_share for year, _ in kinds]) * (1.0 - self.long_share)
        self._negative = np.array([year.negative_distance for year, _ in kinds]) * (1.0 - self.long_share)
        tables = [
            _table(year, kind, share) for (year, kind), share in zip(kinds, self.long_share, strict=True)
        ]
        self._start = np.concatenate([table[:-1] for table in tables])
        self._step = np.concatenate([np.diff(table) for table in tables])

    @staticmethod
    def _weights(layout: Layout, years: list[int]) -> Floats:
        """Rows of each kind, as a share of all."""
        weights = np.zeros(len(years) * _KINDS)
        file_rows = np.diff(layout.first_row)
        for place, (year, _) in enumerate(layout.months):
            first = years.index(year) * _KINDS
            body = file_rows[place] - layout.tail_rows[place]
            weights[first + _CALM] += body / 2
            weights[first + _BUSY] += body / 2
            weights[first + _TAIL] += layout.tail_rows[place]
        return weights / layout.rows

    def hundredths(self, rows: Words, ranks: Words, places: Places) -> NDArray[np.int64]:
        """Distances in hundredths of a mile.

        Args:
            rows: row numbers in the order of time.
            ranks: of each row, its place in the order of distances among all rows.
            places: where the rows lie.
        """
        # Every second run is a busy one.
        busy = (rows >> np.uint64(_RUN_BITS)).astype(np.int32) & 1
        kinds = self._first_kind[places.month] + np.where(places.in_tail, _TAIL, busy)
        share = (self._rows - ranks.astype(np.float64) - 0.5) / self._rows  # of trips at least this long
        word = share.view(np.int64)
        cell = (word >> _CELL_SHIFT) - _FIRST_CELL
        within = (word & ((1 << _CELL_SHIFT) - 1)) * 2.0**-_CELL_SHIFT
        cell += kinds.astype(np.int64) * _CELLS
        miles = self._start[cell] + self._step[cell] * within
        hundredths: NDArray[np.int64] = np.rint(miles * 100.0).astype(np.int64)
        is_long = share <= self.long_share[kinds]
        hundredths = np.where(
            is_long, np.maximum(hundredths, LONG_TRIP), np.clip(hundredths, 1, LONG_TRIP - 1)
        )
        rest = 1.0 - share
        hundredths[rest < self._zero[kinds]] = 0
        negative = np.flatnonzero(rest < self._negative[kinds])
        hundredths[negative] = -1 - np.rint(3000.0 * rest[negative] / self._negative[kinds[negative]]).astype(
            np.int64
        )
        return hundredths


def _long_shares(year: Year, weights: Floats) -> Floats:
    """Shares of long trips of a year's kinds of rows, so that together they are the year's."""
    factors = np.array([1.0 - year.spread, 1.0 + year.spread, year.tail_long])
    shares: Floats = factors * (year.long_share * math.fsum(weights) / max(_dot(factors, weights), 1e-300))
    return shares


def _scaled_to(shares: Floats, weights: Floats, wanted: float) -> Floats:
    """The shares with their odds multiplied alike, so that all rows together have the wanted share."""
    low, high = 0.0, 1e12
    for _ in range(200):
        odds = (low + high) / 2 if high - low < 1e3 else (max(low, 1e-12) * high) ** 0.5
        scaled = shares * odds / (1.0 + shares * (odds - 1.0))
        low, high = (odds, high) if _dot(scaled, weights) < wanted else (low, odds)
    return scaled


def _dot(left: Floats, right: Floats) -> float:
    """The exact sum of products, rounded once: the same on every machine."""
    return math.fsum(left * right)


def _table(year: Year, kind: int, long_share: float) -> Floats:
    """Miles at the edges of all cells, by ascending share."""
    tables = load_measured()
    at_least = np.array(tables.at_least["tail"]) if kind == _TAIL else _between_samples(year.number)
    share = [1.0, *(long_share + at_least * (1.0 - year.zero_share) * (1.0 - long_share))]
    miles = [0.0, *tables.distance_miles]
    long_table = tables.at_least_of_long
    share += [long_share * part * (1.0 - year.garbage) + long_share * year.garbage for _, part in long_table]
    miles += [mile for mile, _ in long_table]
    share += [long_share * year.garbage * (1.0 - step / 10) for step in range(11)]
    miles += _GARBAGE
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(share)), "shares descend with miles"
    octaves = np.arange(-_OCTAVES, 0)
    edges = (2.0 ** octaves[:, None] * (1.0 + np.arange(1 << _CELL_BITS) / (1 << _CELL_BITS))).ravel()
    return interpolate(np.append(edges, 1.0), share[::-1], miles[::-1])


def _between_samples(year: int) -> Floats:
    """Shares of a year, between those of the nearest years that have a sample."""
    at_least = load_measured().at_least
    sampled = sorted(int(name) for name in at_least if name.isdigit())
    before = max(sample for sample in sampled if sample <= year)
    after = min((sample for sample in sampled if sample >= year), default=before)
    weight = 0.0 if after == before else (year - before) / (after - before)
    return (1.0 - weight) * np.array(at_least[str(before)]) + weight * np.array(at_least[str(after)])
