"""The measured tables that ship with the package, read once."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

Table = tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """Tables measured on real yellow-taxi records.

    Attributes:
        distance_miles: distances at which `at_least` is given, ascending.
        at_least: for a year with a sample (or "tail", the rows without a passenger count): the share of
            trips of at least each distance, among trips above zero and below 30 miles.
        at_least_of_long: (distance, share) among trips of 30 miles or more.
        trips_by_month: for each year twelve numbers of trips (2018 on estimates, 2023 even months).
        trips_by_weekday_and_hour: seven times 24 relative frequencies, Monday first.
        pickups_by_zone: relative frequencies of zones 1 to 265.
        dropoffs_by_zone: the same for the other end.
    """

    distance_miles: Table
    at_least: Mapping[str, Table]
    at_least_of_long: tuple[tuple[float, float], ...]
    trips_by_month: Mapping[int, Table]
    trips_by_weekday_and_hour: tuple[Table, ...]
    pickups_by_zone: Table
    dropoffs_by_zone: Table


@functools.cache
def load_measured() -> Measured:
    """The tables of measured.json."""
    text = resources.files(__package__ or "").joinpath("measured.json").read_text("utf-8")
    tables = json.loads(text)
    return Measured(
        distance_miles=tuple(tables["distance_miles"]),
        at_least={name: tuple(shares) for name, shares in tables["at_least"].items()},
        at_least_of_long=tuple((mile, share) for mile, share in tables["at_least_of_long"]),
        trips_by_month={int(year): tuple(trips) for year, trips in tables["trips_by_month"].items()},
        trips_by_weekday_and_hour=tuple(tuple(row) for row in tables["trips_by_weekday_and_hour"]),
        pickups_by_zone=tuple(tables["pickups_by_zone"]),
        dropoffs_by_zone=tuple(tables["dropoffs_by_zone"]),
    )
