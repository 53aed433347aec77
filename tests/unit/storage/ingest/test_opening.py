import collections
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest import opening
from bamquery.storage.ingest.opening import open_source


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"id": [1, 2], "fee": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "1.parquet")
    pa.csv.write_csv(table, tmp_path / "2.csv")
    with pa.ipc.new_file(tmp_path / "3.arrow", table.schema) as writer:
        writer.write(table)
    return tmp_path


def test_files_of_all_formats_together(folder, rows_of):
    source = open_source(f"{folder}/*")
    assert source.name == f"{folder}/*"
    assert rows_of(source).to_pydict() == {"id": [1, 2] * 3, "fee": [0.5, 1.5] * 3}
    assert source.total_bytes == sum(file.stat().st_size for file in folder.iterdir())
    assert source.total_rows is None  # an Arrow file does not say
    assert open_source([folder / "1.parquet", folder / "2.csv"]).total_rows == 4


def test_names(folder):
    assert open_source(folder / "1.parquet").name == f"{folder}/1.parquet"
    assert open_source([folder / "1.parquet", folder / "2.csv"]).name == f"{folder}/1.parquet and 1 more"


def test_format_by_hand(folder, rows_of):
    (folder / "2.csv").rename(folder / "data.txt")
    assert rows_of(open_source(folder / "data.txt", format="csv")).num_rows == 2
    with pytest.raises(IngestError, match="is not a Parquet file"):
        open_source(folder / "data.txt", format="parquet")
    with pytest.raises(IngestError, match="format is for files only"):
        open_source(pa.table({"a": [1]}), format="csv")


def test_lists_of_names_are_not_single_names(folder):
    with pytest.raises(IngestError, match="lists of names"):
        open_source(folder / "1.parquet", exclude="fee")


def test_columns(folder, rows_of):
    assert rows_of(open_source(f"{folder}/*", columns=["Fee"])).column_names == ["fee"]


def test_impossible_union_names_both_files(folder):
    pq.write_table(pa.table({"id": ["x"]}), folder / "4.parquet")
    with pytest.raises(IngestError) as caught:
        open_source(f"{folder}/*.parquet")
    assert f'column "id" is BIGINT in {folder}/1.parquet but VARCHAR in {folder}/4.parquet' in str(
        caught.value
    )


def test_the_look_through_a_large_csv_file_is_shown(folder, monkeypatch):
    shown = []

    class Recorder:
        @contextmanager
        def show(self, description, total_rows=None, total_bytes=None):
            shown.append((description, total_bytes))
            yield lambda rows, size: shown.append((rows, size))

    size = (folder / "2.csv").stat().st_size
    open_source(folder / "2.csv", progress=Recorder())
    assert shown == []
    (folder / "2.csv").rename(folder / "large.csv")
    monkeypatch.setattr(opening, "_LARGE_CSV", 1)
    open_source(f"{folder}/*", progress=Recorder())
    assert shown == [(f"Looking through {folder}/large.csv", size), (0, size)]


def taxi_files(shared_taxi):
    files = sorted(file for file in shared_taxi.iterdir() if file.suffix in {".parquet", ".csv"})
    assert len(files) >= 30
    return files


def test_every_real_file(shared_taxi, rows_of):
    for file in taxi_files(shared_taxi):
        rows = rows_of(open_source(file))
        if file.suffix == ".csv":
            expected = pa.csv.read_csv(
                file, convert_options=pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
            )
        else:
            expected = pq.read_table(file)
        assert rows.num_rows == expected.num_rows > 0
        assert rows.column_names == expected.column_names
        for name in rows.column_names:
            if pa.types.is_null(expected.schema.field(name).type):
                assert rows.column(name).null_count == rows.num_rows
                continue
            assert rows.column(name).cast(expected.schema.field(name).type) == expected.column(name), name


def test_all_green_files_together(shared_taxi, rows_of):
    """Names in three spellings, ids of two widths, ehail_fee without a type, int and double codes."""
    files = [file for file in taxi_files(shared_taxi) if file.name.startswith("green")]
    source = open_source(f"{shared_taxi}/green*.parquet")
    rows = rows_of(source)
    assert rows.num_rows == source.total_rows == sum(pq.read_metadata(file).num_rows for file in files)
    assert rows.schema.field("Payment_type").type == pa.float64()
    assert rows.schema.field("Ehail_fee").type == pa.float64()
    assert rows.schema.field("VendorID").type == pa.int64()
    assert rows.column("congestion_surcharge").null_count > 0
    check_against_files(rows, files)


def test_all_yellow_files_together(shared_taxi, rows_of):
    files = [file for file in taxi_files(shared_taxi) if file.name.startswith("yellow")]
    # Payment was words until 2014 and a code from 2015 on.
    with pytest.raises(IngestError) as caught:
        open_source(f"{shared_taxi}/yellow*.parquet")
    message = str(caught.value)
    assert 'column "Payment_Type" is VARCHAR in' in message
    assert "yellow_2009" in message
    assert "but BIGINT in" in message
    assert "yellow_2015" in message
    assert message.endswith('exclude=["Payment_Type", "vendor_id"]')
    source = open_source(f"{shared_taxi}/yellow*.parquet", exclude=["Payment_Type", "vendor_id"])
    rows = rows_of(source)
    assert rows.num_rows == source.total_rows
    assert rows.schema.field("Passenger_Count").type == pa.float64()
    spellings = [line for line in source.drift if 'column "airport_fee" is spelled "Airport_fee"' in line]
    assert len(spellings) == 2
    check_against_files(rows, files)


def check_against_files(rows, files):
    """Each column of the union holds, file after file, what the file holds under any spelling of its name."""
    tables = [pq.read_table(file) for file in files]
    spellings = [
        collections.ChainMap({name.lower(): name for name in table.column_names}) for table in tables
    ]
    for field in rows.schema:
        start = 0
        for table, names in zip(tables, spellings, strict=True):
            reader = rows.column(field.name).slice(start, table.num_rows)
            start += table.num_rows
            if field.name.lower() not in names:
                assert reader.null_count == table.num_rows
                continue
            own = table.column(names[field.name.lower()])
            assert pc.all(pc.equal(reader, own.cast(field.type)), min_count=0).as_py()
            assert reader.null_count == own.null_count


def test_features_are_no_rows(tmp_path):
    """DuckDB makes rows of them: one row of all would be a wrong count."""
    path = tmp_path / "x.geojson"
    path.write_text('{"type":"FeatureCollection","features":[]}')
    with pytest.raises(IngestError, match=r"x\.geojson: is GeoJSON"):
        open_source(path, format="json")
