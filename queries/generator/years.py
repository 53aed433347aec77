"""What differs between the years 2009 to 2023, measured on samples of TLC's yellow-taxi files.

Years without a sample (2010 to 2012 partly, 2014, 2015, 2021, 2022) lie between their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Passengers = tuple[float, float, float, float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Year:
    """One year's numbers; shares are of all its trips unless said otherwise."""

    number: int
    long_share: float  # trips of 30 miles or more
    # How much the rate of long trips varies along a file: of any two runs of 1,024 rows one has
    # (1 + spread) times the average rate, the other (1 - spread) times.
    spread: float = 0.15
    tail_long: float = 1.0  # how many times likelier a long trip is in the rows without a passenger count
    zero_share: float = 0.006  # trips of distance zero
    negative_distance: float = 0.0  # trips of negative distance
    garbage: float = 0.0  # share of the long trips that are 200 to 260,000 miles
    fare: float  # fares against those of 2018 for the same distance
    toll: float  # likelihood of a toll against 2018 for the same distance
    main_toll: int  # cents of the commonest toll, that of the MTA's tunnels and bridges
    refund: float = 0.0  # trips with all amounts negative
    card: float  # paid by card; what is neither card, no charge nor dispute is cash
    no_charge: float = 0.005
    dispute: float = 0.0015
    vendors: tuple[float, float, float]  # shares of vendors 1, 2 and 3
    passengers: Passengers  # shares of 0 to 6 passengers


_EARLY: Final = (0.0, 0.607, 0.162, 0.047, 0.02, 0.157, 0.007)
_MIDDLE: Final = (0.001, 0.70, 0.14, 0.042, 0.02, 0.062, 0.035)
_LATE: Final = (0.009, 0.711, 0.145, 0.043, 0.02, 0.045, 0.027)

# fmt: off
YEARS: Final = {year.number: year for year in (
    Year(number=2009, long_share=0.006e-2, fare=0.795, toll=0.76, main_toll=415, card=0.215,
         no_charge=0.001, dispute=0.0005, vendors=(0.45, 0.49, 0.06), passengers=_EARLY),
    Year(number=2010, long_share=0.013e-2, fare=0.775, toll=0.85, main_toll=457, card=0.306,
         no_charge=0.001, dispute=0.0005, vendors=(0.42, 0.53, 0.05),
         passengers=(0.0, 0.649, 0.168, 0.048, 0.02, 0.108, 0.007)),
    Year(number=2011, long_share=0.020e-2, fare=0.775, toll=0.87, main_toll=480, card=0.42,
         vendors=(0.47, 0.53, 0.0), passengers=(0.0, 0.66, 0.15, 0.044, 0.02, 0.09, 0.036)),
    Year(number=2012, long_share=0.027e-2, fare=0.82, toll=0.9, main_toll=480, card=0.48,
         vendors=(0.45, 0.55, 0.0), passengers=(0.0, 0.67, 0.14, 0.041, 0.019, 0.08, 0.05)),
    Year(number=2013, long_share=0.033e-2, fare=0.92, toll=0.9, main_toll=533, card=0.525,
         vendors=(0.45, 0.55, 0.0), passengers=(0.0, 0.672, 0.136, 0.038, 0.017, 0.078, 0.059)),
    Year(number=2014, long_share=0.030e-2, fare=0.94, toll=0.93, main_toll=533, card=0.58,
         vendors=(0.48, 0.52, 0.0), passengers=_MIDDLE),
    Year(number=2015, long_share=0.028e-2, fare=0.96, toll=0.95, main_toll=554, refund=0.0003,
         card=0.63, vendors=(0.48, 0.52, 0.0), passengers=_MIDDLE),
    Year(number=2016, long_share=0.025e-2, fare=0.973, toll=0.97, main_toll=554, refund=0.0003,
         card=0.667, vendors=(0.473, 0.527, 0.0),
         passengers=(0.0, 0.716, 0.138, 0.042, 0.02, 0.052, 0.032)),
    Year(number=2017, long_share=0.031e-2, fare=1.0, toll=0.97, main_toll=576, refund=0.0006,
         card=0.672, vendors=(0.444, 0.556, 0.0),
         passengers=(0.001, 0.71, 0.146, 0.042, 0.02, 0.05, 0.031)),
    Year(number=2018, long_share=0.044e-2, fare=1.0, toll=1.0, main_toll=576, refund=0.0007, card=0.695,
         vendors=(0.42, 0.58, 0.0), passengers=_LATE),
    Year(number=2019, long_share=0.053e-2, tail_long=10, zero_share=0.009, negative_distance=1e-4,
         fare=1.005, toll=1.0, main_toll=612, refund=0.0019, card=0.719, dispute=0.002,
         vendors=(0.36, 0.64, 0.0), passengers=(0.029, 0.693, 0.151, 0.043, 0.02, 0.04, 0.024)),
    Year(number=2020, long_share=0.073e-2, spread=0.5, tail_long=7, zero_share=0.019,
         negative_distance=2e-5, garbage=0.01, fare=0.945, toll=0.9, main_toll=612, refund=0.0044,
         card=0.697, no_charge=0.008, dispute=0.004, vendors=(0.354, 0.646, 0.0),
         passengers=(0.023, 0.756, 0.128, 0.033, 0.013, 0.027, 0.02)),
    Year(number=2021, long_share=0.10e-2, tail_long=11, zero_share=0.015, garbage=0.01, fare=0.93,
         toll=1.0, main_toll=612, refund=0.007, card=0.72, no_charge=0.008, dispute=0.006,
         vendors=(0.31, 0.69, 0.0), passengers=(0.021, 0.70, 0.157, 0.049, 0.021, 0.027, 0.025)),
    Year(number=2022, long_share=0.11e-2, tail_long=25, zero_share=0.014, garbage=0.02, fare=1.02,
         toll=1.05, main_toll=655, refund=0.0065, card=0.77, dispute=0.008, vendors=(0.29, 0.71, 0.0),
         passengers=(0.02, 0.73, 0.155, 0.04, 0.02, 0.02, 0.015)),
    Year(number=2023, long_share=0.127e-2, tail_long=30, zero_share=0.013, garbage=0.03, fare=1.295,
         toll=1.05, main_toll=655, refund=0.0084, card=0.806, dispute=0.012,
         vendors=(0.264, 0.736, 0.0), passengers=(0.018, 0.751, 0.154, 0.036, 0.019, 0.014, 0.009)),
)}
# fmt: on

# Share of rows at the end of a month's file that have no passenger count, rate code, flag and payment.
TAILS: Final = {
    2019: (0.0,) * 6 + (0.006,) * 6,
    2020: (0.009, 0.009, 0.013, 0.080, 0.168, 0.091, 0.075, 0.074, 0.066, 0.067, 0.068, 0.067),
    2021: (0.07,) * 12,
    2022: (0.035,) * 12,
    2023: (0.025,) * 12,
}
