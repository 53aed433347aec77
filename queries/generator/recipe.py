"""What can be asked of the generator, and what is asked: names only, so that reading them costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

Order = Literal["time", "random", "clustered"]
ORDERS: Final[tuple[Order, ...]] = get_args(Order)
# The columns of Q5.
Q5_COLUMNS: Final = (
    "trip_distance",
    "total_amount",
    "extra",
    "improvement_surcharge",
    "tolls_amount",
    "mta_tax",
)
# Columns of `trips` that can be generated: those of yellow taxis.
COLUMNS: Final = (
    "service",
    "vendor_id",
    "pickup_datetime",
    "dropoff_datetime",
    "passenger_count",
    "trip_distance",
    "rate_code_id",
    "store_and_fwd_flag",
    "pickup_location_id",
    "dropoff_location_id",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment_type",
    "fare_amount",
    "extra",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "improvement_surcharge",
    "congestion_surcharge",
    "airport_fee",
    "total_amount",
)


@dataclass(frozen=True)
class Recipe:
    """What to generate. Equal recipes give equal bytes, on every machine and with any number of threads.

    Attributes:
        rows: how many.
        columns: names of COLUMNS, in the order wanted.
        order: "time" as in TLC's files; "random" the same rows shuffled; "clustered" the same rows by
            ascending distance within each year (nearly: OPTIMIZE ... CLUSTER BY sorts exactly).
        seed: another seed, other rows.
        first_year: 2009 to 2023.
        last_year: first_year or later; the years share the rows like the real ones.
        match_share: share of trips of 30 miles or more, or None for that of the real files.
        nulls: False fills every null: charges with zero, codes and places with likely values.
    """

    rows: int
    columns: Sequence[str] = Q5_COLUMNS
    order: Order = "time"
    seed: int = 1
    first_year: int = 2009
    last_year: int = 2021
    match_share: float | None = None
    nulls: bool = True
