from pathlib import Path

import pytest

from bamquery.errors import IngestError
from bamquery.queries.sample import ZONE_LOOKUP
from bamquery.queries.trips.zones import load_zones, read_zones
from bamquery.storage.database.database import Database


def test_the_list_that_ships() -> None:
    zones = read_zones()
    assert zones.num_rows == 265
    assert zones.column("location_id").to_pylist() == list(range(1, 266))
    assert zones.slice(131, 1).to_pylist() == [
        {"location_id": 132, "borough": "Queens", "zone": "JFK Airport", "service_zone": "Airports"}
    ]
    assert zones.column("zone").to_pylist()[-2:] == ["N/A", "Outside of NYC"]
    assert zones.column("borough").null_count == 0


def test_the_table_is_made_once_and_replaced_on_demand(tmp_path: Path) -> None:
    with Database.open(tmp_path / "taxi.bq") as database:
        assert load_zones(database) == 265
        assert load_zones(database) == 0
        other = tmp_path / "zones.csv"
        other.write_text("\ufeffLocationID,Borough,Zone,service_zone\n7,Queens,Astoria,Boro Zone\n\n")
        assert load_zones(database, other) == 1
        with database.table("zones").snapshot() as snapshot:
            assert snapshot.rows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "not TLC's list of zones: its columns are a, b"),
        ("LocationID,Borough,Zone,service_zone\nx,a,b,c\n", "a damaged list of zones"),
        ("LocationID,Borough,Zone,service_zone\n1,a\n", "a damaged list of zones"),
        ("", "cannot read the list of zones"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "zones.csv"
    path.write_text(text)
    with pytest.raises(IngestError, match=rf"zones\.csv: {message}"):
        read_zones(path)
    with pytest.raises(IngestError, match="cannot read"):
        read_zones(tmp_path / "missing.csv")
    assert ZONE_LOOKUP.exists()
