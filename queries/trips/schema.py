"""The tidy `trips` table, and the names and codes that TLC's files have used for its columns.

Every file of yellow and green trips since 2009 (and the short for-hire-vehicle files up to 2020) loads into
this one schema. Names follow TLC's newest files in snake case. docs/taxi.md is the reader's copy of the
mapping; a test holds the two together.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError

SERVICES: Final = ("yellow", "green", "fhv", "fhvhv")
FLAGS: Final = ("N", "Y")

TIMESTAMP: Final = pa.timestamp("us")
# Few distinct values: one byte a row, and the same dictionary in every batch.
WORD: Final = pa.dictionary(pa.int8(), pa.large_string())


_NO_WORDS: Final[Mapping[str, int]] = MappingProxyType({})


class Kind(enum.Enum):
    """How the values of a column are read from whatever a file holds."""

    SERVICE = "service"  # which of SERVICES the file belongs to: from its column names or its own name
    TIME = "time"  # local New York time as the meter wrote it, without a zone
    AMOUNT = "amount"  # float64 with the source's bits
    CODE = "code"  # whole number; words of old files are translated by the column's `words`
    FLAG = "flag"  # N or Y; old files write 0 and 1
    TEXT = "text"  # as written, without surrounding blanks


@dataclass(frozen=True)
class TripColumn:
    """One column of `trips`.

    Attributes:
        name: the column's name in `trips`.
        kind: how its values are read.
        type: its Arrow type.
        sources: names that TLC's files give it, folded (see :func:`fold_header`); where a file has several
            of them the first with a value wins.
        meaning: one line for readers.
        words: for codes, the number of each word that old files write, folded.
    """

    name: str
    kind: Kind
    type: pa.DataType
    sources: tuple[str, ...]
    meaning: str
    words: Mapping[str, int] = field(default_factory=lambda: _NO_WORDS)


VENDOR_WORDS: Final = MappingProxyType({"cmt": 1, "vts": 2, "dds": 3})
PAYMENT_WORDS: Final = MappingProxyType(
    {
        **dict.fromkeys(("credit", "cre", "crd"), 1),
        **dict.fromkeys(("cash", "cas", "csh"), 2),
        **dict.fromkeys(("no charge", "no", "noc"), 3),
        **dict.fromkeys(("dispute", "dis"), 4),
        **dict.fromkeys(("unknown", "unk", "na"), 5),
    }
)


def _time(name: str, sources: tuple[str, ...], meaning: str) -> TripColumn:
    return TripColumn(name, Kind.TIME, TIMESTAMP, sources, meaning)


def _amount(name: str, sources: tuple[str, ...], meaning: str) -> TripColumn:
    return TripColumn(name, Kind.AMOUNT, pa.float64(), sources, meaning)


def _code(
    name: str,
    sources: tuple[str, ...],
    meaning: str,
    words: Mapping[str, int] = _NO_WORDS,
    width: pa.DataType | None = None,
) -> TripColumn:
    return TripColumn(name, Kind.CODE, width or pa.int16(), sources, meaning, words)


COLUMNS: Final = (
    TripColumn("service", Kind.SERVICE, WORD, (), "yellow, green, fhv or fhvhv"),
    _code(
        "vendor_id",
        ("vendor_name", "vendor_id", "vendorid"),
        "1 Creative Mobile (CMT), 2 Curb, once VeriFone (VTS), 3 Digital Dispatch (DDS, until 2010), "
        "6 Myle, 7 Helix",
        VENDOR_WORDS,
    ),
    _time(
        "pickup_datetime",
        (
            "trip_pickup_datetime",
            "pickup_datetime",
            "tpep_pickup_datetime",
            "lpep_pickup_datetime",
            "pickup_date",
        ),
        "meter on",
    ),
    _time(
        "dropoff_datetime",
        ("trip_dropoff_datetime", "dropoff_datetime", "tpep_dropoff_datetime", "lpep_dropoff_datetime"),
        "meter off",
    ),
    _code("passenger_count", ("passenger_count",), "as the driver entered it"),
    _amount("trip_distance", ("trip_distance",), "miles, by the meter"),
    _code(
        "trip_seconds",
        ("trip_time_in_secs",),
        "duration where a file states it instead of times (one 2013 release)",
        width=pa.int32(),
    ),
    _code(
        "rate_code_id",
        ("rate_code", "ratecodeid", "rate_code_id"),
        "1 standard, 2 JFK, 3 Newark, 4 Nassau or Westchester, 5 negotiated, 6 group, 99 unknown",
    ),
    TripColumn(
        "store_and_fwd_flag",
        Kind.FLAG,
        WORD,
        ("store_and_forward", "store_and_fwd_flag"),
        "Y where the record waited in the vehicle for a connection",
    ),
    _code(
        "pickup_location_id",
        ("pulocationid", "pickup_location_id", "locationid"),
        "taxi zone (table zones), from July 2016",
    ),
    _code(
        "dropoff_location_id",
        ("dolocationid", "dropoff_location_id"),
        "taxi zone (table zones), from July 2016",
    ),
    _amount("pickup_longitude", ("start_lon", "pickup_longitude"), "degrees, until June 2016"),
    _amount("pickup_latitude", ("start_lat", "pickup_latitude"), "degrees, until June 2016"),
    _amount("dropoff_longitude", ("end_lon", "dropoff_longitude"), "degrees, until June 2016"),
    _amount("dropoff_latitude", ("end_lat", "dropoff_latitude"), "degrees, until June 2016"),
    _code(
        "payment_type",
        ("payment_type",),
        "0 flex fare, 1 card, 2 cash, 3 no charge, 4 dispute, 5 unknown, 6 voided",
        PAYMENT_WORDS,
    ),
    _code("trip_type", ("trip_type",), "green: 1 hailed, 2 dispatched"),
    _amount("fare_amount", ("fare_amt", "fare_amount"), "dollars: time and distance by the meter"),
    _amount("extra", ("surcharge", "extra"), "dollars: night and rush-hour surcharges"),
    _amount("mta_tax", ("mta_tax",), "dollars"),
    _amount("tip_amount", ("tip_amt", "tip_amount"), "dollars: tips by card; cash tips are not recorded"),
    _amount("tolls_amount", ("tolls_amt", "tolls_amount"), "dollars"),
    _amount("ehail_fee", ("ehail_fee",), "dollars; green, in practice always null"),
    _amount("improvement_surcharge", ("improvement_surcharge",), "dollars, from 2015"),
    _amount("congestion_surcharge", ("congestion_surcharge",), "dollars, from 2019"),
    _amount("airport_fee", ("airport_fee",), "dollars, from 2021"),
    _amount("cbd_congestion_fee", ("cbd_congestion_fee",), "dollars, from 2025"),
    _amount("total_amount", ("total_amt", "total_amount"), "dollars: all of the above but cash tips"),
    TripColumn(
        "dispatching_base",
        Kind.TEXT,
        pa.large_string(),
        ("dispatching_base_number", "dispatching_base_num"),
        "for-hire vehicles: licence of the base",
    ),
    TripColumn(
        "hvfhs_license",
        Kind.TEXT,
        pa.large_string(),
        ("hvfhs_license_num",),
        "high-volume for-hire vehicles: licence of the company",
    ),
    _code("shared_ride", ("sr_flag",), "for-hire vehicles: 1 where the ride was shared"),
)

BY_NAME: Final[Mapping[str, TripColumn]] = MappingProxyType({column.name: column for column in COLUMNS})
TRIPS: Final = pa.schema([(column.name, column.type) for column in COLUMNS])

_TARGETS: Final = {source: column.name for column in COLUMNS for source in column.sources}


@dataclass(frozen=True)
class NameMap:
    """Which columns of one file feed which columns of `trips`.

    Attributes:
        positions: for each column of `trips` that the file has, the file's column positions, best first.
        unknown: names of the file's columns that `trips` has no place for.
        service: one of SERVICES.
    """

    positions: Mapping[str, tuple[int, ...]]
    unknown: tuple[str, ...]
    service: str


def fold_header(name: str) -> str:
    """A header as it is compared: without case, surrounding blanks, quotes or byte order mark."""
    return name.strip("\ufeff \t\r\n\"'").casefold()


def map_names(names: Sequence[str], path: str | Path) -> NameMap:
    """Find the place of a file's columns in `trips`.

    Raises:
        IngestError: no column is one of TLC's.
    """
    folded = [fold_header(name) for name in names]
    positions: dict[str, tuple[int, ...]] = {}
    for column in COLUMNS:
        found = tuple(
            place for source in column.sources for place, name in enumerate(folded) if name == source
        )
        if found:
            positions[column.name] = found
    if not positions:
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        raise IngestError(f"not a TLC trip file: none of its columns ({shown}) is one that TLC uses", path)
    unknown = tuple(names[place] for place, name in enumerate(folded) if name and name not in _TARGETS)
    return NameMap(positions, unknown, _service(folded, Path(path).name))


def _service(folded: Sequence[str], file_name: str) -> str:
    """The service whose column names these are; where several use them, what the file's name states."""
    evidence = {
        "tpep_pickup_datetime": "yellow",
        "lpep_pickup_datetime": "green",
        "hvfhs_license_num": "fhvhv",
    }
    for name, service in evidence.items():
        if name in folded:
            return service
    for service in ("fhvhv", "fhv", "green", "yellow"):
        if file_name.casefold().startswith(service):
            return service
    if any(name in folded for name in BY_NAME["dispatching_base"].sources):
        return "fhv"
    return "yellow"  # the names of 2009 to 2014, when there was nothing else
