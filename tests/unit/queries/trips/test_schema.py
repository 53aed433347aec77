import re
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import IngestError
from bamquery.queries.trips.schema import COLUMNS, SERVICES, TRIPS, fold_header, map_names

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "taxi.md"


def test_no_source_name_has_two_places() -> None:
    sources = [source for column in COLUMNS for source in column.sources]
    assert len(sources) == len(set(sources))
    assert all(source == fold_header(source) for source in sources)


def test_amounts_are_doubles_and_times_have_no_zone() -> None:
    for name in ("trip_distance", "fare_amount", "extra", "mta_tax", "tolls_amount", "total_amount"):
        assert TRIPS.field(name).type == pa.float64()
    assert TRIPS.field("pickup_datetime").type == pa.timestamp("us")


def test_the_guide_lists_every_column_with_all_its_names() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \| [^|]+ \|$", GUIDE.read_text(), re.MULTILINE))
    assert list(rows) == TRIPS.names
    for column in COLUMNS:
        listed = {name.casefold() for name in re.findall(r"`([^`]+)`", rows[column.name])}
        assert listed == set(column.sources), column.name


@pytest.mark.parametrize(
    ("header", "file", "service"),
    [
        ("vendor_name,Trip_Pickup_DateTime,Trip_Distance", "x.csv", "yellow"),
        ("VendorID,tpep_pickup_datetime,trip_distance", "green_named_wrongly.csv", "yellow"),
        ("VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime", "x.csv", "green"),
        ("Dispatching_base_num,Pickup_date,locationID", "x.csv", "fhv"),
        ("hvfhs_license_num,dispatching_base_num,pickup_datetime", "x.csv", "fhvhv"),
        ("pickup_datetime,dropoff_datetime", "fhvhv_tripdata_2020-01.csv", "fhvhv"),
        ("vendor_id,pickup_datetime", "green_copy.parquet", "green"),
    ],
)
def test_service_comes_from_the_names_then_from_the_file(header: str, file: str, service: str) -> None:
    assert service in SERVICES
    assert map_names(header.split(","), file).service == service


def test_headers_are_compared_without_blanks_case_quotes_and_byte_order_mark() -> None:
    names = map_names(["\ufeffVendorID", " pickup_datetime", '"Trip_type "\r'], "x.csv")
    assert names.positions == {"vendor_id": (0,), "pickup_datetime": (1,), "trip_type": (2,)}


def test_several_source_columns_of_one_column_are_ordered_by_preference() -> None:
    names = map_names(["Dispatching_base_num", "SR_Flag", "Dispatching_base_number"], "x.csv")
    assert names.positions["dispatching_base"] == (2, 0)


def test_columns_without_a_place_are_named() -> None:
    names = map_names(["VendorID", "", "medallion", "hack_license"], "x.csv")
    assert names.unknown == ("medallion", "hack_license")


def test_a_file_of_something_else_is_refused_by_name() -> None:
    with pytest.raises(IngestError, match=r"births\.csv: not a TLC trip file.*\(id, name\)"):
        map_names(["id", "name"], "births.csv")
