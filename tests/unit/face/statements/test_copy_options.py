"""Options of COPY and of readers: what makes no sense is refused before any work, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import SqlError
from tests.oracle import connect

ROWS = "SELECT * FROM (VALUES (1, 'a,b'), (2, 'say \"so\"'), (NULL, 'x|y'), (4, NULL)) v(a, b)"


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "n.json").write_text('{"a":1}\n')
    with bamquery.connect(device="cpu") as connection:
        connection.sql("CREATE TABLE t (a INTEGER, b INTEGER)")
        yield connection


NO_LEVEL = "has no levels: leave it out"
NOT_BELOW_ZERO = "it takes a whole number not below zero"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        # Codecs and their levels.
        ("COPY t TO 'x' (FORMAT parquet, COMPRESSION snappy, COMPRESSION_LEVEL 3)", f"snappy {NO_LEVEL}"),
        ("COPY t TO 'x.pq' (COMPRESSION uncompressed, COMPRESSION_LEVEL 1)", f"uncompressed {NO_LEVEL}"),
        ("COPY t TO 'x.pq' (COMPRESSION gzip, COMPRESSION_LEVEL 99)", "level: gzip takes 1 to 9, not 99"),
        ("COPY t TO 'x.pq' (COMPRESSION gzip, COMPRESSION_LEVEL -1)", "level: gzip takes 1 to 9, not -1"),
        ("COPY t TO 'x.pq' (COMPRESSION lz4_raw, COMPRESSION_LEVEL 13)", "lz4_raw takes 1 to 12, not 13"),
        ("COPY t TO 'x.pq' (COMPRESSION brotli, COMPRESSION_LEVEL 12)", "brotli takes 0 to 11, not 12"),
        ("COPY t TO 'x.pq' (COMPRESSION_LEVEL 99)", "zstd takes -131072 to 22, not 99"),
        ("COPY t TO 'x.pq' (COMPRESSION_LEVEL 1.5)", "compression_level: it takes a whole number"),
        # CSV that nobody can read back.
        ("COPY t TO 'x' (DELIMITER '\"')", "delimiter and quote are both '\"'"),
        ("COPY t TO 'x' (DELIMITER '|', QUOTE '|')", "delimiter and quote are both '|'"),
        ("COPY t TO 'x' (QUOTE ',')", "delimiter and quote are both ','"),
        ("COPY t TO 'x' (ESCAPE ',')", "delimiter and escape are both ','"),
        ("COPY t TO 'x' (DELIMITER '\"', QUOTE '|')", "delimiter and escape are both '\"'"),
        ("COPY t TO 'x.tsv' (QUOTE '\t')", "delimiter and quote are both '\\t'"),
        ("COPY t TO 'x' (DELIMITER '\n')", "delimiter: it takes one ASCII character, but not '\\n'"),
        ("COPY t TO 'x' (QUOTE '\r')", "quote: it takes one ASCII character, but not '\\r'"),
        ("COPY t TO 'x' (NULLSTR 'a,b')", "nullstr 'a,b' holds the delimiter ','"),
        ("COPY t TO 'x' (NULL '\"')", "nullstr '\"' holds the quote '\"'"),
        ("COPY t TO 'x' (NULLSTR 'a\nb')", "nullstr 'a\\nb' holds the line end '\\n'"),
        (r"COPY t TO 'x' (NULLSTR '\N', ESCAPE '\')", r"nullstr '\\N' holds the escape '\\'"),
        ("FROM read_csv('a.csv', delim='\"')", "delim: '\"' is the quote already"),
        ("FROM read_csv('a.csv', sep='\n')", "sep: it takes one ASCII character, but not '\\n'"),
        ("COPY t FROM 'a.csv' (DELIMITER '\"')", "delimiter: '\"' is the quote already"),
        # Compression that a file does not have.
        ("FROM read_csv('a.csv', compression='gzip')", "is not compressed, and not what compression says"),
        ("COPY t FROM 'a.csv' (COMPRESSION zstd)", "is not compressed, and not what compression says"),
        ("FROM read_json('n.json', compression='gzip')", "is not compressed, and not what compression says"),
        ("FROM read_csv('a.csv', compression='zip')", "compression: it takes one of auto, none, gzip, zstd"),
        # Types.
        ("FROM read_csv('a.csv', types={'a': 'INT[]'})", "types: INT[]: a nested type is not supported"),
        ("FROM read_csv('a.csv', types=['STRUCT(x INT)'])", "types: STRUCT(x INT): a nested type is not"),
        ("FROM read_json('n.json', columns={'a': 'INT[]'})", "columns: INT[]: a nested type is not"),
        ("FROM read_json('n.json', columns={'a': 'MAP(INT, INT)'})", "MAP(INT, INT): a nested type is not"),
        ("FROM read_csv('a.csv', types={'a': 'ENUM(''x'')'})", "there is no type ENUM('x')"),
        ("FROM read_csv('a.csv', types={'a': 'DECIMAL(x)'})", "there is no type DECIMAL(x)"),
        ("FROM read_csv('a.csv', types={'a': NULL})", "types: it takes types by name"),
        ("FROM read_csv('a.csv', types={'a': 'INT', 'a': 'DOUBLE'})", 'types: "a" is given 2 types'),
        # What an option takes.
        ("FROM read_csv('a.csv', skip=-1)", f"skip: {NOT_BELOW_ZERO}"),
        ("FROM read_csv('a.csv', skip=1.5)", f"skip: {NOT_BELOW_ZERO}"),
        ("COPY t TO 'x.parquet' (ROW_GROUP_SIZE -1)", f"row_group_size: {NOT_BELOW_ZERO}"),
        ("COPY t TO 'x.parquet' (ROW_GROUP_SIZE)", f"row_group_size: {NOT_BELOW_ZERO}"),
        (f"COPY t TO 'x.parquet' (ROW_GROUP_SIZE {1 << 63})", f"{NOT_BELOW_ZERO}, of 64 bits"),
        (f"COPY t TO 'x.parquet' (ROW_GROUP_SIZE {'9' * 300})", f"{NOT_BELOW_ZERO}, of 64 bits"),
        ("FROM read_csv('a.csv', delim=NULL)", "delim: it takes one ASCII character"),
        ("FROM read_csv('a.csv', header=NULL)", "header: it takes TRUE or FALSE"),
        ("FROM read_csv('a.csv', nullstr=[NULL])", "nullstr: it takes a string or a list of strings"),
        ("COPY t TO 'x' (NULLSTR NULL)", "nullstr: it takes a text"),
        ("COPY t TO 'x' (FORCE_QUOTE)", "force_quote: it takes columns in parentheses, or *"),
        ("COPY t TO 'x.foo' (FORMAT foo)", "format: it takes one of csv, parquet, json, arrow"),
        ("COPY t FROM 'a.csv' (FORMAT NULL)", "format: it takes one of csv, parquet, json, arrow"),
        # Options that are given twice.
        ("FROM read_csv('a.csv', header=true, header=false)", "header is given twice"),
        ("FROM read_csv('a.csv', delim=',', sep=',')", "delim and sep are one option: give one of them"),
        ("FROM read_json('n.json', filename=true, FILENAME=true)", "filename is given twice"),
        ("COPY t TO 'x' (HEADER true, HEADER false)", "header is given twice"),
        ("COPY t TO 'x' (NULL '', NULLSTR '')", "null and nullstr are one option: give one of them"),
        ("COPY t TO 'x' (FORMAT csv, FORMAT json)", "format is given twice"),
        ("COPY t FROM 'a.csv' (HEADER, HEADER)", "header is given twice"),
        ("COPY t FROM 'a.csv' (FORMAT csv, FORMAT csv)", "format is given twice"),
    ],
)
def test_refused_before_any_work(ours: Connection, tmp_path: Path, sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        ours.sql(sql)
    assert message in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "n.json"]


def test_all_faults_are_said_at_once(ours: Connection) -> None:
    with pytest.raises(SqlError) as caught:
        ours.sql("COPY t TO 'x' (HEADER, HEADER,\nDELIMITER NULL)")
    assert [(reason.message, reason.line) for reason in caught.value.reasons] == [
        ("header is given twice", 1),
        ("delimiter: it takes one ASCII character", 2),
    ]


@pytest.mark.parametrize(
    "options",
    [
        "COMPRESSION zstd, COMPRESSION_LEVEL -5",
        "COMPRESSION_LEVEL 22",
        "COMPRESSION gzip, COMPRESSION_LEVEL 9",
        "COMPRESSION lz4, COMPRESSION_LEVEL 12",
        "COMPRESSION lz4_raw, COMPRESSION_LEVEL 1",
        "COMPRESSION brotli, COMPRESSION_LEVEL 0",
        f"ROW_GROUP_SIZE {(1 << 63) - 1}",
    ],
)
def test_levels_that_there_are(ours: Connection, tmp_path: Path, options: str) -> None:
    ours.sql(f"COPY ({ROWS}) TO 'x.parquet' ({options})")
    codec = options.split()[1].rstrip(",") if options.startswith("COMPRESSION ") else "zstd"
    written = parquet.read_metadata(tmp_path / "x.parquet").row_group(0).column(0).compression
    assert written.lower() == codec.removesuffix("_raw")
    assert ours.sql("SELECT count(*) FROM 'x.parquet'").fetchall() == [(4,)]


def test_nulls_and_punctuation_that_can_be_read_back(ours: Connection, tmp_path: Path) -> None:
    ours.sql(f"COPY ({ROWS}) TO 'x.csv' (NULLSTR 'N/A', ESCAPE '\\', DELIMITER '|', QUOTE '''')")
    ours.sql(f"COPY ({ROWS}) TO 'y.csv' (NULLSTR -99, DELIMITER '|')")
    with connect() as theirs:
        told = "nullstr='N/A', escape='\\', quote='''', delim='|', header=true"
        answer = theirs.sql(f"FROM read_csv('{tmp_path}/x.csv', {told}) ORDER BY b")
        assert answer.fetchall() == theirs.sql(f"{ROWS} ORDER BY b").fetchall()
    answer = ours.sql("FROM read_csv('y.csv', nullstr=-99) ORDER BY b")
    assert answer.fetchall() == ours.sql(f"{ROWS} ORDER BY b").fetchall()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "ndjson"])
def test_zstd_is_read_back(ours: Connection, suffix: str) -> None:
    name, expected = f"x.{suffix}.zst", ours.sql(f"{ROWS} ORDER BY b").fetchall()
    ours.sql(f"COPY ({ROWS}) TO '{name}'")
    reader = "read_json" if "json" in suffix else "read_csv"
    for source in (f"'{name}'", f"{reader}('{name}')", f"{reader}('{name}', compression='zstd')"):
        assert ours.sql(f"FROM {source} ORDER BY b").fetchall() == expected
    ours.sql(f"CREATE TABLE u (a INTEGER, b VARCHAR); COPY u FROM '{name}' (COMPRESSION zstd)")
    assert ours.sql("FROM u ORDER BY b").fetchall() == expected
    assert ours.load("w", name) == 4
    with pytest.raises(SqlError, match=r"is compressed by zstd, and not what compression says, none"):
        ours.sql(f"FROM {reader}('{name}', compression='none')")


def test_zstd_of_duckdb_under_any_name(ours: Connection, tmp_path: Path) -> None:
    with connect() as theirs:
        theirs.execute(f"COPY ({ROWS}) TO '{tmp_path}/x.bin' (FORMAT csv, COMPRESSION zstd)")
        expected = theirs.sql(f"{ROWS} ORDER BY b").fetchall()
    assert ours.sql("FROM read_csv('x.bin') ORDER BY b").fetchall() == expected
