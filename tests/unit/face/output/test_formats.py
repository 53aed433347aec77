"""What comes out of each format can be read back, whatever the types."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import csv, ipc, parquet

from bamquery.output.formats import (
    Writer,
    write_arrow_file,
    write_arrow_stream,
    write_csv,
    write_json,
    write_markdown,
    write_parquet,
)

COLUMNS = {
    "flag": pa.array([True, False, None]),
    "small": pa.array([-128, 127, None], pa.int8()),
    "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "real": pa.array([0.1, -1e300, None]),
    "single": pa.array([0.1, 3.0, None], pa.float32()),
    "exact": pa.array([Decimal("12345678901234567890.12"), Decimal("-0.01"), None], pa.decimal128(38, 2)),
    "tiny": pa.array([Decimal("0.0000000001"), Decimal(0), None], pa.decimal128(38, 10)),
    "day": pa.array([date(2024, 2, 29), date(1, 1, 1), None]),
    "clock": pa.array([time(1, 2, 3, 4000), time(23, 59, 59), None], pa.time64("us")),
    "moment": pa.array(
        [datetime(2024, 1, 1, 5, 6, 7, 890000), datetime(1969, 1, 1), None], pa.timestamp("us")
    ),
    "zoned": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
    "text": pa.array(['a "quoted", line\nbreak | pipe', "", None], pa.large_string()),
    "bytes": pa.array([b"\x00\xff", b"", None], pa.large_binary()),
    "word": pa.array(["red", "red", None], pa.large_string()).dictionary_encode(),
    "number": pa.array([7, 7, None], pa.int64()).dictionary_encode(),
}
TABLE = pa.table(COLUMNS)


def written(writer: Writer, table: pa.Table = TABLE) -> bytes:
    out = io.BytesIO()
    assert writer(table.to_batches(), table.schema, out) == table.num_rows
    return out.getvalue()


def plain(table: pa.Table) -> pa.Table:
    return pa.table(
        {
            n: c.combine_chunks().dictionary_decode() if pa.types.is_dictionary(c.type) else c
            for n, c in zip(table.column_names, table.columns, strict=True)
        }
    )


def test_arrow_and_parquet() -> None:
    with ipc.open_file(written(write_arrow_file)) as file:
        assert file.read_all() == plain(TABLE)
    with ipc.open_stream(written(write_arrow_stream)) as stream:
        assert stream.read_all() == plain(TABLE)
    found = parquet.read_table(io.BytesIO(written(write_parquet)))
    assert found.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize(
    "writer", [write_arrow_file, write_arrow_stream, write_parquet, write_csv, write_json]
)
def test_dictionaries_may_differ_from_batch_to_batch(writer: Writer) -> None:
    one = pa.record_batch({"w": pa.array(["a", "b"]).dictionary_encode()})
    two = pa.record_batch({"w": pa.array(["c", "a"]).dictionary_encode()})
    out = io.BytesIO()
    assert writer([one, two], one.schema, out) == 4


def test_csv() -> None:
    data = written(write_csv)
    options = csv.ConvertOptions(
        column_types={field.name: field.type for field in plain(TABLE).schema if field.name != "bytes"},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    found = csv.read_csv(
        io.BytesIO(data), parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options
    )
    assert found["bytes"].to_pylist() == ["00ff", "", None]
    assert found.drop(["bytes"]) == plain(TABLE).drop(["bytes"])
    assert data.splitlines()[0].decode() == ",".join(TABLE.column_names)


def test_json() -> None:
    rows = json.loads(written(write_json), parse_float=Decimal)
    assert rows[2] == dict.fromkeys(TABLE.column_names)
    assert rows[0] == {
        "flag": True,
        "small": -128,
        "big": 2**64 - 1,
        "real": Decimal("0.1"),
        "single": Decimal("0.10000000149011612"),
        "exact": Decimal("12345678901234567890.12"),
        "tiny": Decimal("0.0000000001"),
        "day": "2024-02-29",
        "clock": "01:02:03.004",
        "moment": "2024-01-01 05:06:07.89",
        "zoned": "2024-01-01 00:00:00Z",
        "text": 'a "quoted", line\nbreak | pipe',
        "bytes": "00ff",
        "word": "red",
        "number": 7,
    }
    assert rows[1]["moment"] == "1969-01-01 00:00:00"


def test_json_has_no_infinity() -> None:
    table = pa.table({"x": [1.5, math.nan, math.inf, -math.inf]})
    assert json.loads(written(write_json, table)) == [{"x": 1.5}, {"x": None}, {"x": None}, {"x": None}]
    assert json.loads(written(write_json, table.slice(0, 0))) == []


def test_names_that_come_twice_are_told_apart() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    assert json.loads(written(write_json, table)) == [{"a": 1, "a_1": 2}]
    assert parquet.read_table(io.BytesIO(written(write_parquet, table))).to_pylist() == [{"a": 1, "a_1": 2}]


def test_markdown() -> None:
    lines = written(write_markdown, TABLE.select(["big", "text", "exact"])).decode().splitlines()
    assert lines == [
        "| big | text | exact |",
        "| ---: | :--- | ---: |",
        '| 18446744073709551615 | a "quoted", line<br>break \\| pipe | 12345678901234567890.12 |',
        "| 0 |  | -0.01 |",
        "| NULL | NULL | NULL |",
    ]


@pytest.mark.parametrize("writer", [write_csv, write_json, write_markdown, write_parquet, write_arrow_file])
def test_no_rows(writer: Writer) -> None:
    out = io.BytesIO()
    assert writer([], TABLE.schema, out) == 0
    assert out.getvalue()
