import collections
import datetime
import gzip
import math
import os

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from bamquery.errors import CancelledError, IngestError
from bamquery.statement_context.cancellation import use_cancellation_check
from bamquery.storage.ingest.csv import blocks as csv_blocks
from bamquery.storage.ingest.csv import source as csv
from bamquery.storage.ingest.csv import type_inference as csv_types
from bamquery.storage.ingest.csv.source import CsvReader
from bamquery.storage.ingest.many_files.union import UnifiedSource
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.options import FileOptions
from bamquery.storage.ingest.text.date_formats import format_of

DUCKDB_TYPES = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.large_string(),
}


@pytest.fixture
def read(tmp_path, rows_of):
    def read(text, name="x.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return rows_of(open_source(path, **options))

    return read


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv, "_HEAD_BYTES", 48)


SAME_AS_DUCKDB = {
    "integers": "a,b\n1,-5\n99999999999,0\n",
    "doubles": "a,b\n1.5,.5\n2,5.\n1e5,-0.0\n",
    "nan and infinity": "a\n1.5\nnan\ninf\n-inf\n",
    "a number among text": "a,b\n1,x\ny,2\n",
    "booleans": "a,b\ntrue,t\nFalse,f\n",
    "Y and N are text": "a,flag\n1,Y\n2,N\n",
    "1 and 0 are numbers": "a\n1\n0\n",
    "true among numbers is text": "a,b\n1,x\ntrue,y\n",
    "dates": "a,b\n2019-01-02,1\n2019-12-31,2\n",
    "short dates": "a,b\n2019-1-2,1\n2019-12-31,2\n",
    "month or day first": "a\n01/02/2019\n03/04/2019\n",
    "one line with a date": "05/06/2019\n",
    "one line with texts": "a,b\n",
    "one line with a time and a text": "10:00,x\n",
    "a header without names": ",,\n123,x,y\n",
    "a first record of texts and booleans": "x,true\ny,false\n",
    "dates as names": "Province,Lat,1/22/20,1/23/20\nHubei,30.9,444,445\n",
    "two-digit years": "a,b\n25-01-90,1\n01-02-68,2\n",
    "years first": "a,b\n90-01-25,1\n",
    "dots": "a,b\n2000.01.01,2000.01.01 10:00:00.5\n",
    "blanks": "a,b\n1 2 2000, 01/02/2000 \n",
    "twelve hours": "a,b\n01-25-2000 12:12:00 AM,x\n01-26-2000 1:12:00 pm,x\n",
    "UTC": "a,b\n2021-05-25 04:55:03 UTC,x\n",
    "one format for all columns": "a,b,c\n02/13/2000,01/02/2000,03/04/2000\n",
    "two formats for two columns": "a,b,c\n01/02/2000,02/13/2000,02.13.2000\n",
    "ISO first": "a,b\n2000-01-01,01/02/2000\n",
    "short times": "a,b\n9:05,1:2:3\n10:20,23:59:59\n",
    "no such day": "a,b\n29/02/2001,0/1/2000\n",
    "month first": "a,b\n01/02/2019,1\n12/31/2019,2\n",
    "day first": "a,b\n31.12.2019,1\n01.02.2019,2\n",
    "year first": "a,b\n2019/01/02,2019/01/02 10:00:00\n2019/12/31,2019/12/31 23:59:59\n",
    "timestamps": "a,b\n2019-01-02 03:04:05,2019-01-02T03:04:05.25\n2019-01-02 03:04:06,2019-01-02 03:04\n",
    "open data": "a,b\n03/25/2017 8:55:43 AM,\n04/11/2017 02:53:28 PM,2\n12/31/2017 12:00:00 AM,\n",
    "times": "a,b\n03:04:05,03:04\n23:00:00.5,04:05\n",
    "digits are no date": "a\n20190101\n20190102\n",
    "thousands and units are text": 'a,b,c,d\n"1,234",5%,$1,1_000\n',
    "empty fields": "a,b,c\n1,,x\n,,\n2,,\n",
    "quoted empty fields": 'a,b\n1,""\n"",x\n',
    "NULL and NA are text": "a,b\n1,NA\nNULL,2\n",
    "spaces around numbers": "a,b\n 7 ,x\n8 , y\n",
    "quoted numbers": '"a","b"\n"1","2019-01-01 00:00:00"\n"2","2019-01-02 00:00:00"\n',
    "line ends in fields": 'a,b\n1,"x\ny"\n2,"q""r"\n3,"s,t"\n',
    "quotes inside plain fields": 'a,b\n5" pipe,1\nx,2\n',
    "windows line ends": "a,b\r\n1,x\r\n2,y\r\n",
    "old mac line ends": "a,b\r1,x\r2,y\r",
    "no line end at the end": "a,b\n1,x\n2,y",
    "byte order mark": "\ufeffa,b\n1,x\n",
    "blank second line": "a,b\n\n1,2\n3,4\n",
    "blank lines of one column": "a\n1\n\n2\n",
    "spaces in the header": "vendor_id, pickup , x\n1,2,3\n",
    "an unnamed column": "a,,c\n1,2,3\n",
    "no header": "1,x\n2,y\n",
    "header only": "a,b\n",
    "tabs": "a\tb\n1\t2\n",
    "semicolons": "a;b\n1,5;2\n2,5;3\n",
    "bars": "a|b\n1|2\n",
    "unicode": "größe,名前\n1,東京\n2,Zürich\n",
}


@pytest.mark.parametrize("text", SAME_AS_DUCKDB.values(), ids=SAME_AS_DUCKDB)
def test_as_duckdb(tmp_path, read, text):
    mine = read(text)
    theirs = duckdb.read_csv(str(tmp_path / "x.csv"))
    assert mine.column_names == theirs.columns
    assert mine.schema.types == [DUCKDB_TYPES[str(type_)] for type_ in theirs.types]
    expected = theirs.fetchall()
    assert repr(list(zip(*mine.to_pydict().values(), strict=True))) == repr(expected)


# Where DuckDB (or some version of it) guesses, rounds or gives up, and what happens here.
ON_PURPOSE = {
    "leading zeros": ("a\n007\n008\n", pa.large_string(), ["007", "008"]),
    "leading zeros of fractions": ("a\n00.5\n1.5\n", pa.large_string(), ["00.5", "1.5"]),
    "zeros": ("a\n0\n-0.5\n0.25\n", pa.float64(), [0.0, -0.5, 0.25]),
    "leading plus": ("a\n+49123\n8\n", pa.large_string(), ["+49123", "8"]),
    "yes and no": ("a\nyes\nNo\n", pa.bool_(), [True, False]),
    "huge integers": ("a\n92233720368547758079\n1\n", pa.decimal128(38, 0), [92233720368547758079, 1]),
    "years of three digits": ("a\n1/1/123\n", pa.large_string(), ["1/1/123"]),
    "no such day": ("a\n02/30/2019\n12/31/2019\n", pa.large_string(), ["02/30/2019", "12/31/2019"]),
    "nanoseconds": ("a\n2019-01-02 03:04:05.123456789\n", pa.timestamp("ns"), None),
    "date and timestamp": (
        "a\n2019-01-02\n2019-01-02 03:04:05\n",
        pa.timestamp("us"),
        [datetime.datetime(2019, 1, 2), datetime.datetime(2019, 1, 2, 3, 4, 5)],
    ),
    "zones": (
        "a\n2019-01-02T03:04:05Z\n2019-01-02 03:04:06+01:00\n",
        pa.timestamp("us", "UTC"),
        [
            datetime.datetime(2019, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
            datetime.datetime(2019, 1, 2, 2, 4, 6, tzinfo=datetime.UTC),
        ],
    ),
    "hexadecimal": ("a\n0x1F\n5\n", pa.large_string(), ["0x1F", "5"]),
    "digits a double cannot hold": (
        "a\n9007199254740993\n0.5\n",
        pa.large_string(),
        ["9007199254740993", "0.5"],
    ),
    "digits a double can hold": ("a\n9007199254740992\n0.5\n", pa.float64(), [2.0**53, 0.5]),
    "more digits than a decimal": ("a\n" + "9" * 39 + "\n", pa.large_string(), ["9" * 39]),
}


@pytest.mark.parametrize(("text", "type_", "values"), ON_PURPOSE.values(), ids=ON_PURPOSE)
def test_otherwise_than_duckdb(read, text, type_, values):
    table = read(text)
    assert table.schema.types == [type_]
    if values is None:
        assert table.column(0).cast(pa.int64()).to_pylist() == [1546398245123456789]
    else:
        assert table.column(0).to_pylist() == values


LATE = {
    "null, then integer": (["", "", "5"], pa.int64()),
    "integer, then double": (["1", "2", "2.5"], pa.float64()),
    "integer, then huge": (["1", "2", "92233720368547758079"], pa.decimal128(38, 0)),
    "huge, then double": (["92233720368547758079", "1", "2.5"], pa.large_string()),
    "large, then double": (["9007199254740993", "1", "2.5"], pa.large_string()),
    "double, then text": (["1.5", "2", "x"], pa.large_string()),
    "date, then timestamp": (["2019-01-02", "2019-01-03", "2019-01-03 10:00:00"], pa.timestamp("us")),
    "date, then text": (["2019-01-02", "2019-01-03", "x"], pa.large_string()),
    "date, then short date": (["2019-01-02", "2019-01-03", "2019-1-4"], pa.date32()),
    "timestamp, then nanoseconds": (
        ["2019-01-02 00:00:00", "2019-01-02 00:00:00", "2019-01-02 00:00:00.123456789"],
        pa.timestamp("ns"),
    ),
    "late timestamp, then nanoseconds": (
        ["9999-01-02 00:00:00", "2019-01-02 00:00:00", "2019-01-02 00:00:00.123456789"],
        pa.large_string(),
    ),
    "time, then date": (["10:00:00", "11:00:00", "2019-01-02"], pa.large_string()),
    "boolean, then integer": (["true", "false", "1"], pa.large_string()),
    "integer, then boolean": (["1", "0", "true"], pa.large_string()),
    "integer, then leading zero": (["1", "2", "007"], pa.large_string()),
    "ambiguous, then month first": (["01/02/2019", "01/03/2019", "01/31/2019"], pa.date32()),
    "month first, then day first": (["01/31/2019", "01/03/2019", "31/01/2019"], pa.large_string()),
    "ambiguous all along": (["01/02/2019", "01/03/2019", "01/04/2019"], pa.date32()),
}


@pytest.mark.parametrize(("values", "type_"), LATE.values(), ids=LATE)
@pytest.mark.parametrize("order", [1, -1])
def test_a_later_block_changes_the_type(read, small_blocks, values, type_, order):
    """The last value comes many blocks after the others, or, reversed, long before them."""
    first, second, last = values
    column = [first, *[second] * 40, last][::order]
    table = read("a,b\n" + "".join(f"{value},{'x' * 20}\n" for value in column))
    assert table.schema.field("a").type == type_
    if pa.types.is_large_string(type_):
        assert table.column("a").to_pylist() == column
    else:
        assert table.column("a").null_count == column.count("")


def test_a_file_is_looked_through_once(tmp_path, rows_of, monkeypatch):
    path = tmp_path / "once.csv"
    path.write_text("a\n1\n")
    os.utime(path, (1000, 1000))
    open_source(path)
    calls = []
    monkeypatch.setattr(
        csv, "infer", lambda *args, **options: calls.append(args) or csv_types.infer(*args, **options)
    )
    open_source(path)
    assert not calls
    # Just written: it may be written again at what looks like the same time.
    for text in ("1", "x"):
        path.write_text(f"a\n{text}\n")
        assert rows_of(open_source(path)).to_pydict() == {"a": [int(text) if text == "1" else text]}
    assert len(calls) == 2


def test_a_file_that_changes_meanwhile(tmp_path, small_blocks):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    source = open_source(path)
    path.write_text("a,b\n" + "1,2\n" * 99 + "1,z\n")
    with pytest.raises(IngestError, match=r"x\.csv: lines \d+ to \d+: the file changed since"):
        list(source.batches())


def test_tlc_files_with_fields_the_header_lacks(read):
    """Green trips of 2013: a space in the last name, a blank line, two fields too many in each row."""
    table = read("VendorID,Total_amount,Trip_type \r\n\r\n2,21.25,,,\r\n1,5,,,\r\n")
    assert table.to_pydict() == {"VendorID": [2, 1], "Total_amount": [21.25, 5.0], "Trip_type": [None, None]}


def test_unnamed_fields_with_values_are_kept(read):
    assert read("a,b\n1,2,,x\n3,4,,\n").column_names == ["a", "b", "column2", "column3"]


def test_real_headers(read, shared_taxi):
    """The start of a TLC file of each kind has the columns of its header, and rows of the right types."""
    heads = pa.parquet.read_table(shared_taxi / "heads_2009-2020.parquet").to_pylist()
    files = collections.defaultdict(list)
    for line in heads:
        if not line["cut_off"]:
            files[line["file"]].append(line["line"])
    # Same header, same blank line, same number of fields: the same kind.
    kinds = {(lines[0], lines[1].strip(), lines[-1].count(",")): file for file, lines in files.items()}
    assert len(kinds) > 20
    for file in kinds.values():
        lines = files[file]
        table = read("".join(line + "\n" for line in lines), file)
        expected = [name.strip(' "') for name in lines[0].rstrip("\r").split(",")]
        assert table.column_names == expected
        assert table.num_rows == sum(bool(line.strip()) for line in lines[1:])
        for name, type_ in zip(table.column_names, table.schema.types, strict=True):
            if "date" in name.lower() and table.column(name).null_count < table.num_rows:
                assert type_ == pa.timestamp("us")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv: is an empty file"),
        ("\n\n", "x.csv: has no header and no rows, only blank lines"),
        ("a,b\n1,2\n3\n", "x.csv: line 3: has 1 field where the others have 2: 3"),
        ("a,b\n1,2\n\n3,4,5\n", "x.csv: line 4: has 3 fields where the others have 2: 3,4,5"),
        ('a,b\n1,2\n3,"x\n', "x.csv: line 3: a record starts here that does not end"),
        (b"a,b\n1,x\n2,\xe9\n", "x.csv: line 3: is not UTF-8 (byte 0xe9)"),
    ],
)
def test_bad_files(read, text, message):
    with pytest.raises(IngestError) as caught:
        read(text)
    assert message in str(caught.value)


def test_a_bad_line_far_down_is_named(read, small_blocks):
    with pytest.raises(IngestError, match="line 502: has 3 fields"):
        read("a,b\n" + "1,2\n" * 500 + "1,2,3\n" + "1,2\n" * 500)


def test_gzip(read):
    table = read(gzip.compress(b"a,b\n1,x\n2,y\n"), "x.csv.gz")
    assert table.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_tab_separated(read):
    assert read("a,b\tc\n1,5\t2\n", "x.tsv").to_pydict() == {"a,b": ["1,5"], "c": [2]}


def test_columns_of_a_projection_and_none(tmp_path, rows_of):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,x,2.5\n2,y,3.5\n")
    source = open_source(path)
    assert rows_of(source, ["c", "a"]).to_pydict() == {"c": [2.5, 3.5], "a": [1, 2]}
    assert sum(batch.num_rows for batch in source.batches([])) == 2
    assert source.total_rows == 2
    assert source.bytes_read == source.total_bytes == path.stat().st_size


def test_text_is_read_as_written_where_another_file_has_strings(tmp_path, rows_of):
    (tmp_path / "1.csv").write_text("zip,day\n10001,2019-01-02\n10002,2019-01-03\n")
    (tmp_path / "2.csv").write_text("zip,day\n00501,n/a\n")
    table = rows_of(open_source(f"{tmp_path}/*.csv"))
    assert table.to_pydict() == {
        "zip": ["10001", "10002", "00501"],
        "day": ["2019-01-02", "2019-01-03", "n/a"],
    }


def test_wide_records_grow_the_sample(tmp_path, rows_of, monkeypatch):
    monkeypatch.setattr(csv, "_HEAD_BYTES", 16)
    names = [f"column_number_{i}" for i in range(500)]
    (tmp_path / "x.csv").write_text(",".join(names) + "\n" + ",".join("1" * 500) + "\n")
    assert rows_of(open_source(tmp_path / "x.csv")).column_names == names
    monkeypatch.setattr(csv, "_LONGEST_HEAD", 64)
    (tmp_path / "y.csv").write_text(",".join(names) + "\n" + ",".join("1" * 500) + "\n")
    with pytest.raises(IngestError, match="line 1: does not end"):
        open_source(tmp_path / "y.csv")


def test_large_records(read):
    long = "x" * 3_000_000
    assert read(f'a,b\n1,"{long}"\n2,y\n').column("b").to_pylist() == [long, "y"]


def test_progress_of_the_first_pass(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n" + "1\n" * 1000)
    seen = []
    reader = CsvReader(path, "x.csv", on_bytes=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size
    assert UnifiedSource("x", [reader]).total_rows == 1000


def test_doubles_keep_their_bits(read):
    values = [0.1, 1 / 3, 2.6299999999999999, 5e-324, 1.7976931348623157e308, -73.922592163085938]
    table = read("a\n" + "".join(f"{value!r}\n" for value in values))
    assert [math.copysign(1, v) * v for v in table.column("a").to_pylist()] == [abs(v) for v in values]
    assert table.column("a").to_pylist() == values


@pytest.mark.parametrize("first", ["5", "1.5", "2019-01-02", "31/12/2019", "04 18 1994 11:17:39 PM", "9:05"])
def test_a_value_over_texts_is_a_record(read, first):
    """DuckDB takes it for a name, and the record is gone."""
    assert read(f"{first},a\nx,b\ny,c\n").to_pydict() == {
        "column0": [first, "x", "y"],
        "column1": ["a", "b", "c"],
    }


def test_one_format_of_dates_in_all_files(tmp_path, rows_of):
    """What may be a day or a month is what it is in the first file; other columns are text, not wrong."""
    (tmp_path / "1.csv").write_text("day\n13/02/2019\n")
    (tmp_path / "2.csv").write_text("day\n01/02/2019\n")
    first, second = datetime.date(2019, 2, 13), datetime.date(2019, 2, 1)
    assert rows_of(open_source(f"{tmp_path}/*.csv")).to_pydict() == {"day": [first, second]}
    (tmp_path / "1.csv").write_text("day\n02/13/2019\n")
    assert rows_of(open_source(f"{tmp_path}/*.csv")).to_pydict() == {
        "day": [first, datetime.date(2019, 1, 2)]
    }
    (tmp_path / "3.csv").write_text("day\n14/02/2019\n")
    assert rows_of(open_source(f"{tmp_path}/*.csv")).to_pydict() == {
        "day": ["02/13/2019", "01/02/2019", "14/02/2019"]
    }


def test_formats_that_are_given(read):
    options = FileOptions(
        date_format=format_of("%Y%m%d", "date"), timestamp_format=format_of("%d.%m.%Y %Hh%M", "timestamp")
    )
    table = read("a,b,c,d\n20240131,5.1.2000 10h30,2024-01-31,31/01/2024\n", options=options)
    day = datetime.date(2024, 1, 31)
    assert table.to_pylist() == [
        {"a": day, "b": datetime.datetime(2000, 1, 5, 10, 30), "c": day, "d": "31/01/2024"}
    ]
    assert read("a\n20240131\n2024\n", options=options).to_pydict() == {"a": [20240131, 2024]}
    # The first record fits, so it has no names.
    assert read("20240131,x\n", options=options).column_names == ["column0", "column1"]


def test_a_header_and_records_of_any_length(read):
    names = [f"a_column_of_some_name_{i}" for i in range(6000)]
    assert sum(map(len, names)) > 131_072
    text = ",".join(names) + "\n" + ",".join("1" * len(names)) + "\n"
    assert read(text).column_names == names
    assert read(text, name="x.tsv").num_rows == 1
    with pytest.raises(IngestError, match="line 3: has 2 fields where the others have 6000"):
        read(text + "x" * 200_000 + ",1\n")


def test_every_block_asks_whether_it_was_cancelled(tmp_path, small_blocks):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)
    asked = []

    def check():
        asked.append(1)
        if len(asked) == 50:
            raise CancelledError("the statement was cancelled")

    with use_cancellation_check(check), pytest.raises(CancelledError):
        open_source(path)
    assert len(asked) == 50
