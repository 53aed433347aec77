"""What a trip costs, month by month: meter, flat fares, surcharges, taxes, the commonest toll, in cents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.generator.years import YEARS

Cents = NDArray[np.int64]

# First months (year, month) in which something is charged or changes.
FARE_RISE_2012: Final = (2012, 9)
FARE_RISE_2022: Final = (2022, 12)
MTA_TAX: Final = (2010, 1)  # charged from November 2009, but the files of 2009 do not have it
IMPROVEMENT: Final = (2015, 1)
CONGESTION: Final = (2019, 2)  # the column begins a month earlier
AIRPORT: Final = (2021, 1)
ZONES: Final = (2016, 7)  # taxi zones instead of coordinates

Month = tuple[int, int]


@dataclass(frozen=True)
class Tariff:
    """Arrays with one value a month's file; amounts in cents."""

    meter: NDArray[np.float64]  # fares against those of 2018 for the same distance
    base: Cents  # the meter starts here
    step: Cents  # and counts in these
    jfk: Cents  # flat fare
    newark: Cents  # on top of the meter
    night: Cents
    rush: Cents
    jfk_rush: Cents
    improvement: Cents
    main_toll: Cents
    toll: NDArray[np.float64]  # likelihood of a toll against 2018
    refund: NDArray[np.float64]
    card: NDArray[np.float64]
    no_charge: NDArray[np.float64]
    dispute: NDArray[np.float64]
    vendor_1: NDArray[np.float64]
    vendor_3: NDArray[np.float64]


def tariff(months: list[Month]) -> Tariff:
    """The tariff of a list of months."""

    def cents(of: Callable[[Month], int]) -> Cents:
        return np.array([of(month) for month in months], np.int64)

    def share(of: Callable[[Month], float]) -> NDArray[np.float64]:
        return np.array([of(month) for month in months], np.float64)

    def stages(first: int, from_2012: int, from_2022: int) -> Cents:
        return cents(
            lambda month: (
                first if month < FARE_RISE_2012 else from_2012 if month < FARE_RISE_2022 else from_2022
            )
        )

    def meter(month: Month) -> float:
        if month[0] == 2012:
            return YEARS[2011].fare if month < FARE_RISE_2012 else YEARS[2013].fare
        return YEARS[2023].fare if month >= FARE_RISE_2022 else YEARS[month[0]].fare

    return Tariff(
        meter=share(meter),
        base=stages(250, 250, 300),
        step=stages(40, 50, 70),
        jfk=stages(4500, 5200, 7000),
        newark=stages(1500, 1750, 2000),
        night=stages(50, 50, 100),
        rush=stages(100, 100, 250),
        jfk_rush=stages(0, 450, 500),
        improvement=cents(lambda month: 0 if month < IMPROVEMENT else 30 if month < FARE_RISE_2022 else 100),
        main_toll=cents(lambda month: YEARS[month[0]].main_toll),
        toll=share(lambda month: YEARS[month[0]].toll),
        refund=share(lambda month: YEARS[month[0]].refund),
        card=share(lambda month: YEARS[month[0]].card),
        no_charge=share(lambda month: YEARS[month[0]].no_charge),
        dispute=share(lambda month: YEARS[month[0]].dispute),
        vendor_1=share(lambda month: YEARS[month[0]].vendors[0]),
        vendor_3=share(lambda month: YEARS[month[0]].vendors[2]),
    )
