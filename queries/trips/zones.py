"""The table `zones`: names of the taxi zones that trips refer to by number."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.queries.sample import ZONE_LOOKUP
from bamquery.queries.trips.arrow import arrow
from bamquery.queries.trips.schema import fold_header
from bamquery.storage.database.database import Database

ZONES: Final[pa.Schema] = arrow.schema(
    {
        "location_id": pa.int16(),
        **dict.fromkeys(("borough", "zone", "service_zone"), pa.large_string()),
    }
)
_HEADER: Final = ("locationid", "borough", "zone", "service_zone")


def read_zones(path: Path = ZONE_LOOKUP) -> pa.RecordBatch:
    """TLC's taxi_zone_lookup.csv; the texts as they are ("N/A" stands for itself).

    Raises:
        IngestError: the file is not that list.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise IngestError(f"cannot read the list of zones: {error}", path) from error
    if tuple(fold_header(name) for name in header) != _HEADER:
        raise IngestError(f"not TLC's list of zones: its columns are {', '.join(header)}", path)
    try:
        numbers = [int(row[0]) for row in rows if row]
        texts = [[row[place] for row in rows if row] for place in (1, 2, 3)]
    except (ValueError, IndexError) as error:
        raise IngestError(f"a damaged list of zones: {error}", path) from error
    return pa.RecordBatch.from_pydict(dict(zip(ZONES.names, [numbers, *texts], strict=True)), schema=ZONES)


def load_zones(database: Database, path: Path | None = None) -> int:
    """Make the table `zones`, unless there is one and no other list is given; the number of its rows.

    Raises:
        IngestError: the file is not TLC's list of zones.
    """
    if path is None and database.has_table("zones"):
        return 0
    batch = read_zones(path or ZONE_LOOKUP)
    with database.create_table("zones", ZONES, or_replace=True) as writer:
        writer.write(batch)
        writer.commit()
    return batch.num_rows
