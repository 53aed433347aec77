"""Columns of `trips` from the attributes of a chunk, nulls where TLC's files have none of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.queries.generator.chunk import Chunk
from bamquery.queries.generator.hashing import bits
from bamquery.queries.generator.lookup import frequency_table, quantile_table
from bamquery.queries.generator.measured import load_measured
from bamquery.queries.generator.model import Flags
from bamquery.queries.generator.recipe import COLUMNS
from bamquery.queries.generator.tariff import AIRPORT, IMPROVEMENT, MTA_TAX, ZONES, Cents, Month
from bamquery.queries.generator.years import YEARS
from bamquery.queries.trips.arrow import Array, arrow
from bamquery.queries.trips.schema import FLAGS, SERVICES, TRIPS

Numbers = NDArray[Any]
# Values of a column and which of them are null (None where none is).
Column = tuple[Numbers, Flags | None]

_TRAFFIC: Final = ((0, 0.4), (0.05, 0.5), (0.25, 0.77), (0.5, 1.0), (0.75, 1.33), (0.95, 2.1), (1, 4.0))
_DURATIONS: Final = quantile_table(_TRAFFIC, 12)
_DAY_SECONDS: Final = 86_400
_STORED: Final = 24  # of 4,096 records waited for a connection
# The middle of Manhattan, and how far from it trips begin and end, in degrees.
_LONGITUDE, _LATITUDE, _SPREAD = -73.978, 40.751, 0.055
_NOWHERE: Final = 68  # of 4,096 positions are (0, 0)


def _months(chunk: Chunk, before: Month) -> Flags:
    """Rows of files older than a month."""
    older: Flags = ~chunk.model.is_since(before)[chunk.month]
    return older


def _dollars(cents: Cents) -> NDArray[np.float64]:
    """The double nearest to each decimal amount."""
    return cents / 100.0


def _service(chunk: Chunk) -> Column:
    return np.full(len(chunk), SERVICES.index("yellow"), np.int8), None


def _vendor(chunk: Chunk) -> Column:
    # The CSV files up to 2020 have no vendor either where the meter sent nothing.
    return chunk.vendor, chunk.in_tail & _months(chunk, (2021, 1))


def _pickup(chunk: Chunk) -> Column:
    return chunk.pickup_seconds * 1_000_000, None


def _dropoff(chunk: Chunk) -> Column:
    words = chunk.random("duration")
    miles = chunk.driven_miles
    seconds = 90.0 + 330.0 * np.minimum(miles, 2.5)
    seconds += 130.0 * np.clip(miles - 2.5, 0.0, 7.5) + 85.0 * np.maximum(miles - 10.0, 0.0)
    # Traffic evens out over a long trip.
    traffic = 1.0 + (_DURATIONS[bits(words, 0, 12)] - 1.0) / (1.0 + 0.05 * miles)
    duration = (seconds * traffic).astype(np.int64)
    luck = bits(words, 12, 12)
    duration[luck < 4] = 0
    duration[luck >= 4096 - 8] += _DAY_SECONDS - 3600  # a meter left running over midnight
    return (chunk.pickup_seconds + duration) * 1_000_000, None


def _passengers(chunk: Chunk) -> Column:
    luck = bits(chunk.random("rider"), 0, 12)
    tables = np.concatenate([frequency_table(range(7), year.passengers, 12) for year in YEARS.values()])
    first = np.array([list(YEARS).index(year) << 12 for year, _ in chunk.model.layout.months])
    return tables[first[chunk.month] + luck], chunk.in_tail


def _rate_code(chunk: Chunk) -> Column:
    return chunk.rate_code, chunk.in_tail | _months(chunk, (2010, 1))


def _flag(chunk: Chunk) -> Column:
    stored = bits(chunk.random("rider"), 12, 12) < _STORED
    return stored.astype(np.int8), chunk.in_tail | _months(chunk, (2010, 1))


def _zone(end: str) -> Callable[[Chunk], Column]:
    low = 0 if end == "pickup" else 16

    def zone(chunk: Chunk) -> Column:
        counts = load_measured().pickups_by_zone if end == "pickup" else load_measured().dropoffs_by_zone
        table = frequency_table(range(1, len(counts) + 1), counts, 16)
        return table[bits(chunk.random("zones"), low, 16)], _months(chunk, ZONES)

    return zone


def _coordinate(end: str, middle: float) -> Callable[[Chunk], Column]:
    axis = 0 if middle < 0 else 20

    def coordinate(chunk: Chunk) -> Column:
        words = chunk.random(f"{end} position")
        # The sum of two uniform numbers: most near the middle, none beyond the edge.
        offset = (bits(words, axis, 10) + bits(words, axis + 10, 10)) / 1023.0 - 1.0
        degrees = np.rint((middle + _SPREAD * offset) * 1e6) / 1e6
        degrees[bits(words, 40, 12) < _NOWHERE] = 0.0
        return degrees, chunk.model.is_since(ZONES)[chunk.month]

    return coordinate


def _payment(chunk: Chunk) -> Column:
    by_csv = _months(chunk, (2021, 1))
    return np.where(chunk.in_tail & ~by_csv, 0, chunk.payment), chunk.in_tail & by_csv


def _amount(of: Callable[[Chunk], Cents], since: Month | None = None) -> Callable[[Chunk], Column]:
    def amount(chunk: Chunk) -> Column:
        return _dollars(chunk.negate_refunds(of(chunk))), None if since is None else _months(chunk, since)

    return amount


def _tip(chunk: Chunk) -> Column:
    return _dollars(chunk.tip), None


def _congestion(chunk: Chunk) -> Column:
    # The column appears in January 2019, a month before the surcharge, mostly empty.
    empty = _months(chunk, (2019, 1))
    first = chunk.model.is_since((2019, 1)) & ~chunk.model.is_since((2019, 2))
    empty |= first[chunk.month] & (bits(chunk.random("rider"), 24, 12) < int(0.63 * 4096))
    return _dollars(chunk.negate_refunds(chunk.congestion)), empty


_MAKERS: Final[Mapping[str, Callable[[Chunk], Column]]] = {
    "service": _service,
    "vendor_id": _vendor,
    "pickup_datetime": _pickup,
    "dropoff_datetime": _dropoff,
    "passenger_count": _passengers,
    "trip_distance": lambda chunk: (chunk.hundredths / 100.0, None),
    "rate_code_id": _rate_code,
    "store_and_fwd_flag": _flag,
    "pickup_location_id": _zone("pickup"),
    "dropoff_location_id": _zone("dropoff"),
    "pickup_longitude": _coordinate("pickup", _LONGITUDE),
    "pickup_latitude": _coordinate("pickup", _LATITUDE),
    "dropoff_longitude": _coordinate("dropoff", _LONGITUDE),
    "dropoff_latitude": _coordinate("dropoff", _LATITUDE),
    "payment_type": _payment,
    "fare_amount": _amount(lambda chunk: chunk.fare),
    "extra": _amount(lambda chunk: chunk.extra),
    "mta_tax": _amount(lambda chunk: chunk.mta_tax, MTA_TAX),
    "tip_amount": _tip,
    "tolls_amount": _amount(lambda chunk: chunk.tolls),
    "improvement_surcharge": _amount(lambda chunk: chunk.improvement, IMPROVEMENT),
    "congestion_surcharge": _congestion,
    "airport_fee": _amount(lambda chunk: chunk.airport, AIRPORT),
    "total_amount": _amount(lambda chunk: chunk.total),
}


assert tuple(_MAKERS) == COLUMNS, "every column has its maker"


def column(chunk: Chunk, name: str, *, nulls: bool) -> Array:
    """A column of `trips` for the rows of a chunk; without nulls, charges not yet levied are zero."""
    values, missing = _MAKERS[name](chunk)
    if not nulls or missing is None or not missing.any():
        missing = None
    kind = TRIPS.field(name).type
    if pa.types.is_dictionary(kind):
        words = SERVICES if name == "service" else FLAGS
        places = arrow.array(values, pa.int8(), mask=missing)
        dictionary: Array = arrow.DictionaryArray.from_arrays(places, arrow.array(words, pa.large_string()))
        return dictionary
    plain: Array = arrow.array(
        np.ascontiguousarray(values).astype(kind.to_pandas_dtype()), kind, mask=missing
    )
    return plain
