"""What comes out of each format can be read back, whatever the types."""

from __future__ import annotations

import io
import json
import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, ipc, parquet

import bamquery
from bamquery.output.arrow_batches import small_batches
from bamquery.output.binary_files import write_arrow_file, write_arrow_stream, write_parquet
from bamquery.output.display_options import DisplayOptions
from bamquery.output.formats import TEXT_FORMATS
from bamquery.text.terminal import escape_lines

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


PLAIN = DisplayOptions()
BINARY = {"parquet": write_parquet, "arrow stream": write_arrow_stream, "arrow": write_arrow_file}


def written(kind: str, table: pa.Table = TABLE, options: DisplayOptions = PLAIN) -> bytes:
    out = io.BytesIO()
    if kind in BINARY:
        rows = BINARY[kind](table.to_batches(), table.schema, out)
    else:
        rows = TEXT_FORMATS[kind](table.to_batches(), table.schema, out, options)
    assert rows == table.num_rows
    return out.getvalue()


def plain(table: pa.Table) -> pa.Table:
    return pa.table(
        {
            n: c.combine_chunks().dictionary_decode() if pa.types.is_dictionary(c.type) else c
            for n, c in zip(table.column_names, table.columns, strict=True)
        }
    )


def test_arrow_and_parquet() -> None:
    with ipc.open_file(written("arrow")) as file:
        assert file.read_all() == plain(TABLE)
    with ipc.open_stream(written("arrow stream")) as stream:
        assert stream.read_all() == plain(TABLE)
    found = parquet.read_table(io.BytesIO(written("parquet")))
    assert found.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("kind", [*BINARY, *TEXT_FORMATS])
def test_dictionaries_may_differ_from_batch_to_batch(kind: str) -> None:
    one = pa.record_batch({"w": pa.array(["a", "b"]).dictionary_encode()})
    two = pa.record_batch({"w": pa.array(["c", "a"]).dictionary_encode()})
    assert written(kind, pa.Table.from_batches([one, two]))


def test_csv() -> None:
    data = written("csv")
    options = csv.ConvertOptions(
        column_types={field.name: field.type for field in plain(TABLE).schema if field.name != "bytes"},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    found = csv.read_csv(
        io.BytesIO(data), parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=options
    )
    assert found["bytes"].to_pylist() == ["\\x00\\xFF", "", None]
    assert found.drop(["bytes"]) == plain(TABLE).drop(["bytes"])
    assert data.splitlines()[0].decode() == ",".join(TABLE.column_names)


def test_json() -> None:
    rows = json.loads(written("json"), parse_float=Decimal)
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
        "zoned": "2024-01-01 00:00:00+00",
        "text": 'a "quoted", line\nbreak | pipe',
        "bytes": "\\x00\\xFF",
        "word": "red",
        "number": 7,
    }
    assert rows[1]["moment"] == "1969-01-01 00:00:00"


def test_json_has_no_infinity() -> None:
    table = pa.table({"x": [1.5, math.nan, math.inf, -math.inf]})
    assert json.loads(written("json", table)) == [{"x": 1.5}, {"x": None}, {"x": None}, {"x": None}]
    assert json.loads(written("json", table.slice(0, 0))) == []


def test_names_that_come_twice_are_told_apart() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    assert json.loads(written("json", table)) == [{"a": 1, "a_1": 2}]
    assert parquet.read_table(io.BytesIO(written("parquet", table))).to_pylist() == [{"a": 1, "a_1": 2}]


def test_markdown() -> None:
    lines = written("markdown", TABLE.select(["big", "text", "exact"])).decode().splitlines()
    assert lines == [
        "| big | text | exact |",
        "| ---: | :--- | ---: |",
        '| 18446744073709551615 | a "quoted", line<br>break \\| pipe | 12345678901234567890.12 |',
        "| 0 |  | -0.01 |",
        "| NULL | NULL | NULL |",
    ]


@pytest.mark.parametrize("kind", [*BINARY, *TEXT_FORMATS])
def test_no_rows(kind: str) -> None:
    assert written(kind, TABLE.slice(0, 0)) or kind in ("jsonl", "insert", "line")


def test_csv_is_copys(con: bamquery.Connection, tmp_path: Path) -> None:
    con.load("t", TABLE)
    con.sql(f"COPY t TO '{tmp_path}/t.csv'")
    con.sql(f"COPY t TO '{tmp_path}/t.tsv' (FORMAT csv, DELIMITER '\t', NULL 'n/a', HEADER false)")
    with con.table("t").run() as result:
        assert written("csv", result.table()) == (tmp_path / "t.csv").read_bytes()
    options = DisplayOptions(headers=False, null_value="n/a")
    assert written("tsv", con.table("t").to_arrow(), options) == (tmp_path / "t.tsv").read_bytes()


def test_a_null_value_stays_apart_from_the_same_text() -> None:
    table = pa.table({"s": ["NULL", None, ""]})
    assert written("csv", table, DisplayOptions(null_value="NULL")) == b's\n"NULL"\nNULL\n\n'
    assert written("csv", table, DisplayOptions(headers=False)) == b'NULL\n\n""\n'


def test_json_lines() -> None:
    lines = written("jsonl", pa.table({"a": [1, None], "s": ["x\ny", "\u2028"]})).split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"a": 1, "s": "x\ny"}, {"a": None, "s": "\u2028"}]
    assert lines[-1] == b""


def test_decimals_without_whole_digits_are_json() -> None:
    kind = pa.decimal128(2, 2)
    table = pa.table({"d": pa.array([Decimal("0.50"), Decimal("-0.25")], kind)})
    assert json.loads(written("json", table)) == [{"d": 0.5}, {"d": -0.25}]


HOSTILE = [
    "</td><script>alert(1)</script>",
    "a & b | c",
    "\\input{/etc/passwd} $x^2_1$ % ~ # {",
    "[10pt] * --- `code` **bold** _it_ snake_case [link](x)",
    "\x1b[31mred\x07\x9b2J\u202etxt\r",
    "two\nlines",
    "<!-- \" ' -->",
]


def test_html_is_text() -> None:
    table = pa.table({"<b>": HOSTILE})

    class Texts(HTMLParser):
        tags: list[str]
        texts: list[str]

        def handle_starttag(self, tag, attrs):
            self.tags.append(tag)

        def handle_data(self, data):
            self.texts.append(data)

    parser = Texts()
    parser.tags, parser.texts = [], []
    text = written("html", table).decode()
    parser.feed(text)
    assert set(parser.tags) == {"table", "thead", "tbody", "tr", "th", "td", "br"}
    assert parser.tags.count("tr") == len(HOSTILE) + 1
    shown = [data for data in parser.texts if data.strip()]
    assert shown[0] == "<b>"
    assert shown[1] == HOSTILE[0]
    assert "\\x1b[31mred\\x07\\x9b2J\\u202etxt\\r" in shown
    assert escape_lines(text) == text
    assert b"<th>" not in written("html", table, DisplayOptions(headers=False))


def test_latex_is_text() -> None:
    text = written("latex", pa.table({"a_b": HOSTILE})).decode()
    lines = text.splitlines()
    assert lines[0] == "\\begin{tabular}{l}"
    assert lines[2] == "a\\_b \\\\"
    rows = lines[4:-2]
    assert len(rows) == len(HOSTILE)
    for row in rows:
        cell = row.removesuffix(" \\\\")
        # Without the escapes, nothing is left that means something to TeX.
        bare = re.sub(
            r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}", "", cell
        )
        bare = re.sub(r"\\[&%$#_{}]|\{\[\}|\{\*\}|-\{\}", "", bare)
        assert not re.search(r"[\\&%$#_{}~^\[*]|--", bare), row
    assert rows[3].startswith("{[}10pt")


def test_markdown_is_text() -> None:
    lines = written("markdown", pa.table({"h": HOSTILE})).decode().splitlines()
    assert lines[2] == "| \\</td>\\<script>alert(1)\\</script> |"
    assert lines[3] == "| a & b \\| c |"
    assert lines[5] == "| \\[10pt] \\* --- \\`code\\` \\*\\*bold\\*\\* \\_it\\_ snake_case \\[link](x) |"
    assert lines[6] == "| \\\\x1b\\[31mred\\\\x07\\\\x9b2J\\\\u202etxt\\\\r |"
    assert lines[7] == "| two<br>lines |"


def test_lines() -> None:
    table = pa.table({"a": [1, None], "漢字": ["x", "\x1b\n"]})
    assert written("line", table).decode() == "   a = 1\n漢字 = x\n\n   a = NULL\n漢字 = \\x1b\\n\n"


def test_values_become_pythons_a_few_at_once() -> None:
    batches = [pa.record_batch({"a": range(20_000)}), pa.record_batch({"a": range(3)})]
    parts = list(small_batches(batches))
    assert pa.Table.from_batches(parts) == pa.Table.from_batches(batches)
    assert max(part.num_rows for part in parts) <= 8192
