"""What all rows of one generated table share: their layout, and the tables that values are looked up in."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.generator.distance import LONG_TRIP, Distances
from bamquery.queries.generator.layout import Layout
from bamquery.queries.generator.lookup import frequency_table, quantile_table
from bamquery.queries.generator.tariff import Month, tariff

Flags = NDArray[np.bool_]

# Trips by distance: the last hundredth of a mile of each class but the last, which is that of long trips.
_CLASS_ENDS: Final = (0, 25, 300, 500, 800, 1200, 1500, 1700, 1900, 2200, LONG_TRIP - 1)
LAGUARDIA: Final = 5  # the class of 8 to 12 miles
# Shares of rate codes 1, 2, 3, 4, 5 and 99 in each class (2018).
RATE_CODES: Final = (1, 2, 3, 4, 5, 99)
STANDARD, JFK, NEWARK, WESTCHESTER, NEGOTIATED, UNKNOWN_RATE = RATE_CODES
_RATE_SHARES: Final = (
    (0.600, 0.125, 0.010, 0.0, 0.2640, 0.001),
    (0.919, 0.036, 0.003, 0.0, 0.0410, 0.001),
    (0.9987, 0.0005, 0.0, 0.0, 0.0005, 0.0003),
    (0.997, 0.001, 0.0, 0.0003, 0.0014, 0.0003),
    (0.991, 0.002, 0.001, 0.0015, 0.0042, 0.0003),
    (0.983, 0.006, 0.0003, 0.002, 0.0084, 0.0003),
    (0.893, 0.049, 0.029, 0.008, 0.0207, 0.0003),
    (0.434, 0.489, 0.045, 0.010, 0.0217, 0.0003),
    (0.121, 0.804, 0.057, 0.004, 0.0137, 0.0003),
    (0.182, 0.736, 0.053, 0.012, 0.0167, 0.0003),
    (0.346, 0.466, 0.050, 0.067, 0.0707, 0.0003),
    (0.27, 0.04, 0.13, 0.21, 0.34, 0.01),
)
# Likelihood of a toll in each class (2018).
_TOLL_SHARES: Final = (0.06, 0.01, 0.001, 0.011, 0.065, 0.545, 0.44, 0.575, 0.745, 0.70, 0.715, 0.65)
_OTHER_TOLLS: Final = (1050, 1152, 1250, 1750, 260)
_OTHER_TOLL_SHARES: Final = (0.35, 0.2, 0.25, 0.1, 0.1)
# Fares over the mean of their distance: traffic makes some much dearer.
_TRAFFIC: Final = (
    (0, 0.60), (0.05, 0.74), (0.25, 0.86), (0.5, 0.965), (0.75, 1.09), (0.95, 1.42), (0.99, 1.85), (1, 2.6),
)  # fmt: skip
# What the meter shows for a distance of zero, in cents.
_ZERO_FARE: Final = ((0, 250), (0.5, 250), (0.7, 400), (0.9, 1500), (1, 5500))
# Tips by card over everything else on the bill: the screens propose 20, 25 and 30 %.
_TIPS: Final = (
    (0, 0.03),
    (0.08, 0.10),
    (0.25, 0.165),
    (0.3, 0.2),
    (0.72, 0.2),
    (0.8, 0.25),
    (0.93, 0.26),
    (1, 0.5),
)

DAY, NIGHT, RUSH = range(3)


class Model:
    """Everything that the rows of one generated table have in common.

    Args:
        rows: how many.
        first_year: 2009 to 2023.
        last_year: the same or later.
        seed: any whole number.
        match_share: share of trips of 30 miles or more, None for the measured ones.
    """

    def __init__(
        self, rows: int, first_year: int, last_year: int, seed: int, match_share: float | None
    ) -> None:
        """Build the tables that rows look their values up in."""
        self.seed = seed
        self.layout = Layout(rows, first_year, last_year)
        self.distances = Distances(self.layout, match_share)
        months = self.layout.months
        self.tariff = tariff(months)
        self.rate_table = np.concatenate([frequency_table(RATE_CODES, shares, 12) for shares in _RATE_SHARES])
        self.class_table = np.searchsorted(_CLASS_ENDS, np.arange(LONG_TRIP + 1), side="left").astype(
            np.int32
        )
        self.toll_shares = np.array(_TOLL_SHARES)
        self.other_tolls = frequency_table(_OTHER_TOLLS, _OTHER_TOLL_SHARES, 12)
        self.traffic = quantile_table(_TRAFFIC, 12)
        self.zero_fare = quantile_table(_ZERO_FARE, 12)
        self.tips = quantile_table(_TIPS, 12)
        day = np.array([NIGHT if hour >= 20 or hour < 6 else DAY for hour in range(24)])
        weekday = np.where((np.arange(24) >= 16) & (np.arange(24) < 20), RUSH, day)
        self.hour_kinds = np.concatenate([weekday] * 5 + [day] * 2)
        charges = self.tariff
        self.extra_table = np.stack([np.zeros_like(charges.night), charges.night, charges.rush])
        self._since: dict[Month, Flags] = {}

    def is_since(self, first: Month) -> Flags:
        """For each month's file whether it is of this month or later."""
        if first not in self._since:
            self._since[first] = np.array([month >= first for month in self.layout.months])
        return self._since[first]
