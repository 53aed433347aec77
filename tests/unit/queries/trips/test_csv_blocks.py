import csv
import gzip
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.queries.trips.convert import tidy
from bamquery.queries.trips.csv_blocks import CsvFile
from bamquery.queries.trips.schema import TRIPS
from bamquery.storage.ingest.csv import blocks as ingest_blocks

HEADER = "VendorID,tpep_pickup_datetime,trip_distance,total_amount"


def write(folder: Path, *lines: str, name: str = "yellow.csv", end: str = "\n") -> Path:
    path = folder / name
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def read(path: Path, block_bytes: int = 1 << 20) -> tuple[pa.Table, dict[int, str]]:
    """All rows that can be read, and the reason of every line that cannot."""
    file = CsvFile(path)
    batches, reasons = [], {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_blocks, "BLOCK_BYTES", block_bytes)
        blocks = list(file.blocks())
    for block in blocks:
        tidied = tidy(block.arrays, file.names)
        batches.append(tidied.batch)
        reasons.update({found.line: found.reason for found in block.rejects})
        reasons.update({int(block.lines[row]): reason for row, reason in tidied.problems.items()})
        for found in block.rejects:
            assert block.texts([found.line]) == {found.line: found.text}
    return pa.Table.from_batches(batches, TRIPS), dict(sorted(reasons.items()))


def test_a_plain_file(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "2,2015-01-15 19:05:39,1.59,17.05", "1,2015-01-10 20:33:38,.5,")
    table, reasons = read(path)
    assert reasons == {}
    assert table["vendor_id"].to_pylist() == [2, 1]
    assert table["pickup_datetime"].to_pylist() == [
        datetime(2015, 1, 15, 19, 5, 39),
        datetime(2015, 1, 10, 20, 33, 38),
    ]
    assert table["trip_distance"].to_pylist() == [1.59, 0.5]
    assert table["total_amount"].to_pylist() == [17.05, None]


@pytest.mark.parametrize("block_bytes", [16, 64, 1 << 20])
def test_the_habits_of_the_files(tmp_path: Path, block_bytes: int) -> None:
    path = write(
        tmp_path,
        "\ufeffVendorID, lpep_pickup_datetime,Trip_distance ",
        "",
        '"2","2013-08-01 08:14:37",".00",,',
        "",
        " 2, 2013-08-01 09:13:00, 1.5,,",
        "2,08/01/2013 09:13:00 PM,2.5,,",
        end="\r\n",
    )
    table, reasons = read(path, block_bytes)
    assert reasons == {}
    assert table["service"].to_pylist() == ["green"] * 3
    assert table["trip_distance"].to_pylist() == [0.0, 1.5, 2.5]
    assert table["pickup_datetime"].to_pylist()[2] == datetime(2013, 8, 1, 21, 13)


@pytest.mark.parametrize("block_bytes", [16, 80, 1 << 20])
def test_broken_lines_are_told_with_their_number(tmp_path: Path, block_bytes: int) -> None:
    good = "2,2015-01-15 19:05:39,1.5,17.05"
    path = write(
        tmp_path,
        HEADER,
        good,
        "2,2015-01-15 19:05:39",
        "",
        "2,2015-01-15 19:05:39,far,17.05",
        good,
        good + ",,surplus",
        "2,2015-13-15 19:05:39,1.5,17.05",
        '"2,2015-01-15 19:05:39,1.5,17.05',
        good,
        '2",2015-01-15 19:05:39,1.5,17.05',
    )
    table, reasons = read(path, block_bytes)
    assert reasons == {
        3: "only 2 of the 4 fields that the header names",
        5: "trip_distance: 'far' is not a number",
        7: "field 6 holds 'surplus', the header names only 4",
        8: "pickup_datetime: '2015-13-15 19:05:39' is not a time",
        9: "a quote that does not close",
        11: "vendor_id: '2\"' is not a whole number or a known word",
    }
    assert table["trip_distance"].to_pylist() == [1.5] * 3


def test_a_quote_that_swallows_a_line_is_found(tmp_path: Path) -> None:
    # The parser alone would make one record of lines 2 and 3: two fields, the second with a line end inside.
    path = write(tmp_path, "dispatching_base_num,SR_Flag,x", 'B1,,"a', 'B2,,b"', "B3,1,c")
    table, reasons = read(path)
    assert table["dispatching_base"].to_pylist() == ["B2", "B3"]
    assert reasons == {2: "a quote that does not close"}


def test_a_lone_return_does_not_make_up_for_a_swallowed_line(tmp_path: Path) -> None:
    path = tmp_path / "fhv.csv"
    path.write_bytes(b'dispatching_base_num,SR_Flag,x\nB1,,"a\nB2,,b"\nB3,1,c\rB4,1,d\n')
    table, reasons = read(path)
    assert table["dispatching_base"].to_pylist() == ["B2"]
    assert reasons == {2: "a quote that does not close", 4: "a carriage return inside the line"}


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "fhv.csv"
    path.write_bytes(b"dispatching_base_num,SR_Flag\nB1,\nB\xe9,\nB3,1\n")
    table, reasons = read(path)
    assert table["dispatching_base"].to_pylist() == ["B1", "B3"]
    assert reasons == {3: "byte 2 is not UTF-8"}


def test_tabs_gzip_and_a_last_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "yellow.csv.gz"
    text = (
        HEADER.replace(",", "\t")
        + "\t\t\n2\t2015-01-15 19:05:39\t1.5\t17.05\t\t\n1\t2015-01-15 19:05:39\t2\t3\t\t"
    )
    path.write_bytes(gzip.compress(text.encode()))
    table, reasons = read(path)
    assert table["trip_distance"].to_pylist() == [1.5, 2.0]
    assert reasons == {}


@pytest.mark.parametrize("text", [HEADER, HEADER + "\n", HEADER + "\r\n\r\n", "\n\n" + HEADER + "\n"])
def test_a_header_alone_is_no_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "yellow.csv"
    path.write_bytes(text.encode())
    table, reasons = read(path)
    assert table.num_rows == 0
    assert reasons == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is an empty file"),
        (b"\n\n", "has no header and no rows"),
        (b"PK\x03\x04" + bytes(3 << 20), "not a CSV file"),
        (b"id,name\n1,x\n", "not a TLC trip file"),
    ],
)
def test_what_is_no_trip_file_is_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "what.csv"
    path.write_bytes(content)
    with pytest.raises(IngestError, match=rf"what\.csv: {message}"):
        read(path)


def test_missing_and_truncated_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"gone\.csv: cannot be read"):
        CsvFile(tmp_path / "gone.csv")
    whole = gzip.compress("\n".join([HEADER, *["2,2015-01-15 19:05:39,1.5,17.05"] * 9999]).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(IngestError, match=r"cut\.csv\.gz: is a truncated gzip file"):
        read(path)


def heads(shared_taxi: Path) -> Iterator[tuple[str, list[str], bool]]:
    """File name, raw lines, and whether the last line is cut off, of the heads of 303 monthly files."""
    table = pq.read_table(shared_taxi / "heads_2009-2020.parquet").to_pandas()
    for name, rows in table.sort_values(["file", "line_no"]).groupby("file"):
        yield str(name), rows["line"].tolist(), bool(rows["cut_off"].iloc[-1])


def test_heads_of_all_monthly_files(tmp_path: Path, shared_taxi: Path) -> None:
    """Every header drift of eleven years; values compared with Python's own csv and float."""
    seen = 0
    for name, lines, cut_off in heads(shared_taxi):
        path = tmp_path / name
        path.write_bytes("\n".join(lines).encode() + (b"" if cut_off else b"\n"))
        table, reasons = read(path)
        header = [field.strip().casefold() for field in next(csv.reader([lines[0]]))]
        whole = [line for line in lines[1 : len(lines) - cut_off] if line.strip()]
        expected = [dict(zip(header, next(csv.reader([line])), strict=False)) for line in whole]
        # A cut line is a record only where the cut left all its fields.
        assert set(reasons) <= ({len(lines)} if cut_off else set()), name
        assert table.num_rows - len(expected) == (cut_off and len(lines) not in reasons), name
        assert set(table["service"].to_pylist()) == {name.split("_")[0]}, name
        for target, sources in {
            "trip_distance": ("trip_distance",),
            "total_amount": ("total_amt", "total_amount"),
            "extra": ("surcharge", "extra"),
            "tip_amount": ("tip_amt", "tip_amount"),
            "pickup_longitude": ("start_lon", "pickup_longitude"),
        }.items():
            source = next((source for source in sources if source in header), None)
            wanted = [float(row[source]) if source and row[source] else None for row in expected]
            assert table[target].to_pylist()[: len(wanted)] == wanted, (name, target)
        seen += 1
    assert seen == 303
