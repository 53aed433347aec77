"""COPY, and table functions over files with options: files and answers are DuckDB's."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import BamQueryError, ExecutionError, SqlError, StorageError
from tests.oracle import connect
from tests.sql.script import render_table

ROWS = r"""
SELECT * FROM (VALUES
  (1, 'plain', 1.50, 1.5::DOUBLE, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.5', TRUE,
   '\x00a"\xFF'::BLOB),
  (2, 'comma, quote " and ''', -0.01, -12.25, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59',
   FALSE, ''::BLOB),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, '', 0, -0.0, DATE '0001-01-01', TIMESTAMP '2024-01-01 00:00:00', NULL, 'x'::BLOB),
  (4, 'two
lines | and ; more', 1e3, 0.1, DATE '9999-12-31', TIMESTAMP '2000-01-01 00:00:00.000001', TRUE, NULL)
) v(i, "a name", d, f, day, ts, b, bl)
"""


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.chdir(tmp_path)
    with bamquery.connect(device="cpu") as connection:
        yield connection


@pytest.fixture
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.csv", ""),
        ("x.csv", "(HEADER false, DELIMITER '|')"),
        ("x.csv", "(FORMAT csv, SEP ';', NULLSTR 'NULL')"),
        ("x.csv", "WITH (HEADER, QUOTE '''')"),
        ("x.csv", r"(QUOTE '|', ESCAPE '\')"),
        ("x.csv", "(FORCE_QUOTE (i, day))"),
        ("x.csv", "(FORCE_QUOTE *)"),
        ("x.unknown", ""),
        ("x.json", ""),
        ("x.json", "(ARRAY true)"),
        ("x.other", "(FORMAT json)"),
    ],
)
def test_text_files_are_duckdbs_to_the_byte(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, options: str
) -> None:
    # A DECIMAL has no exponent, and a DOUBLE's least digits are not this test's.
    ours.sql(f"COPY ({ROWS}) TO 'ours-{name}' {options}")
    theirs.execute(f"COPY ({ROWS}) TO '{tmp_path}/theirs-{name}' {options}")
    assert (tmp_path / f"ours-{name}").read_text() == (tmp_path / f"theirs-{name}").read_text()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.parquet", ""),
        ("x.pq", "(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 2)"),
        ("x.parquet", "(COMPRESSION zstd, COMPRESSION_LEVEL 3)"),
        ("x.csv.gz", ""),
        ("x.bin", "(FORMAT csv, COMPRESSION gzip)"),
        ("x.json.gz", ""),
    ],
)
def test_duckdb_reads_what_is_written(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, options: str
) -> None:
    query = f"SELECT * EXCLUDE (bl) FROM ({ROWS}) q"
    answer = ours.sql(f"COPY ({query}) TO '{name}' {options}")
    assert answer.fetchall() == [(5,)]
    reader = "read_csv" if "csv" in name + options else "read_json" if "json" in name else "read_parquet"
    hint = ", compression='gzip'" if name == "x.bin" else ""
    written = theirs.sql(f"SELECT i, day, b FROM {reader}('{tmp_path}/{name}'{hint}) ORDER BY i")
    expected = theirs.sql(f"SELECT i, day, b FROM ({query}) q ORDER BY i")
    assert written.fetchall() == expected.fetchall()


def test_arrow_files(ours: Connection, tmp_path: Path) -> None:
    ours.sql(f"CREATE TABLE t AS {ROWS}")
    ours.sql("COPY t (i, day) TO 'x.arrow'; COPY t TO 'y.feather' (COMPRESSION lz4)")
    with ipc.open_file(tmp_path / "x.arrow") as reader:
        assert reader.read_all().column_names == ["i", "day"]
    assert feather.read_table(tmp_path / "y.feather").num_rows == 5
    assert render_table(ours.sql("FROM 'y.feather'").to_arrow()) == render_table(
        ours.sql("FROM t").to_arrow()
    )
    assert ours.sql("SELECT count(*) FROM read_arrow(['x.arrow', 'x.arrow'])").fetchall() == [(10,)]


def test_an_empty_answer_is_a_file(ours: Connection, tmp_path: Path) -> None:
    for name in ("e.csv", "e.json", "e.parquet", "e.arrow"):
        ours.sql(f"COPY (SELECT 1 AS a WHERE false) TO '{name}'")
    assert (tmp_path / "e.csv").read_text() == "a\n"
    assert (tmp_path / "e.json").read_text() == ""
    assert parquet.read_table(tmp_path / "e.parquet").num_rows == 0


def test_a_file_is_there_whole_or_not_at_all(ours: Connection, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("before")
    ours.sql("CREATE TABLE t AS SELECT * FROM (VALUES ('1'), ('2'), ('x')) v(a)")
    with pytest.raises(ExecutionError):
        ours.sql("COPY (SELECT CAST(a AS INTEGER) FROM t) TO 'x.csv'")
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "before"
    ours.sql("COPY (SELECT a FROM 'x.csv' v(a)) TO 'x.csv' (HEADER false)")
    assert (tmp_path / "x.csv").read_text() == ""
    with pytest.raises(StorageError, match="a folder"):
        ours.sql(f"COPY t TO '{tmp_path}'")
    with pytest.raises(StorageError, match="nowhere"):
        ours.sql("COPY t TO 'nowhere/x.csv'")


CSV = 'i,s,d,day\n1,007,1.10,2024-01-01\n2,,12345678901234567.25,\n3,"a,b",,2024-02-29\n'


@pytest.mark.parametrize(
    "copy",
    [
        "COPY t FROM 'x.csv'",
        "COPY t (i, s, d, day) FROM 'x.csv' (FORMAT csv, HEADER)",
        "COPY t (i, s, d, day) FROM 'x.csv' (AUTO_DETECT true, DELIMITER ',')",
        "COPY t FROM 'x.parquet'",
        "COPY t FROM 'x.json'",
    ],
)
def test_copy_from(ours: Connection, theirs: duckdb.DuckDBPyConnection, tmp_path: Path, copy: str) -> None:
    (tmp_path / "x.csv").write_text(CSV)
    (tmp_path / "x.json").write_text('{"day":"2024-01-01","i":1,"s":"x"}\n{"i":2,"d":1.5}\n')
    table = pa.table(
        {"p": [1, 2], "q": ["a", None], "r": [1.25, 2.0], "s": pa.array([None, 19000], pa.date32())}
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    for connection in (ours, theirs):
        connection.sql("CREATE TABLE t (i INTEGER, s VARCHAR, d DECIMAL(20,2), day DATE)")
        connection.sql(copy)
    expected = theirs.sql("FROM t ORDER BY i").to_arrow_table()
    assert render_table(ours.sql("FROM t ORDER BY i").to_arrow()) == render_table(expected)


def test_copy_from_fills_in_defaults(ours: Connection, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("5\n6\n")
    ours.sql("CREATE TABLE t (a INTEGER DEFAULT 7, b INTEGER NOT NULL)")
    assert ours.sql("COPY t (b) FROM 'x.csv' (HEADER false)").fetchall() == [(2,)]
    assert ours.sql("FROM t ORDER BY b").fetchall() == [(7, 5), (7, 6)]
    with pytest.raises(bamquery.ConstraintError, match='"b"'):
        ours.sql("COPY t (a) FROM 'x.csv' (HEADER false)")
    assert ours.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


OPTIONS = [
    "read_csv('b.csv', header=false, delim=';', nullstr='NA')",
    "read_csv('b.csv', header := false, names := ['p', 'q', 'r'], types := {'p': 'VARCHAR'})",
    "read_csv('b.csv', header=false, columns={'p': 'VARCHAR', 'q': 'VARCHAR', 'r': 'VARCHAR'})",
    "read_csv('a.csv', all_varchar=true)",
    "read_csv('a.csv', skip=1, header=false)",
    "read_csv('a.csv', types=['VARCHAR', 'VARCHAR', 'DECIMAL(20,2)'])",
    "read_csv('a.csv', dtypes={'I': 'SMALLINT', 'day': 'TIMESTAMP'})",
    "read_csv('a.csv', sep=',', auto_detect=true, quote='\"')",
    "'again.csv'",
    "read_csv('again.csv', names=['q', 'i'], types={'i_2': 'VARCHAR'})",
    "'comments.csv'",
    "read_csv('comments.csv', header=false, all_varchar=true)",
    "read_json('n.json')",
    "read_ndjson('n.json')",
    "read_json('array.json')",
    "read_json('array.json', format='array')",
    "read_json('n.json', columns={'a': 'VARCHAR', 'zz': 'INTEGER', 'd': 'VARCHAR'})",
    "'n.json'",
    "'array.json'",
    "'lines.ndjson.gz'",
    "read_parquet('x.parquet', union_by_name=true)",
]


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "again.csv").write_text("i,i,I,,column3\n1,2,3,4,5\n")
    (tmp_path / "comments.csv").write_text("# one, two, three\n# four\na,b\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("1;x;NA\n2;y;5\n")
    lines = (
        '{"a":1,"b":"x","d":"2020-01-01","t":"2020-01-01 10:00:00","f":1}\n\n'
        '{"a":2,"b":null,"c":true,"f":1.5}\r\n{"b":"y\\u00df","d":null}'
    )
    (tmp_path / "n.json").write_text(lines)
    (tmp_path / "array.json").write_text(' [ {"a":1,"b":"x]"},\n {"a":2,"b":"y\\n{"} , {"a": 3}\n]\n ')
    (tmp_path / "lines.ndjson.gz").write_bytes(gzip.compress(lines.encode()))
    parquet.write_table(pa.table({"p": [1, 2]}), tmp_path / "x.parquet")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("source", OPTIONS)
def test_readers_take_options(ours: Connection, theirs: duckdb.DuckDBPyConnection, source: str) -> None:
    expected = theirs.sql(f"FROM {source}").to_arrow_table()
    given = ours.sql(f"FROM {source}")
    assert given.columns == expected.column_names
    assert render_table(given.to_arrow()) == render_table(expected)
    assert ours.sql(f"SELECT count(*) FROM {source}").fetchall() == [(expected.num_rows,)]


@pytest.mark.usefixtures("files")
def test_files_are_described_like_tables(ours: Connection, theirs: duckdb.DuckDBPyConnection) -> None:
    for sql in (
        "DESCRIBE 'a.csv'",
        "DESCRIBE FROM 'n.json'",
        "DESCRIBE SELECT * FROM read_parquet('x.parquet')",
    ):
        assert render_table(ours.sql(sql).to_arrow()) == render_table(theirs.sql(sql).to_arrow_table())
    assert ours.sql("SUMMARIZE 'a.csv'").to_arrow().num_rows == 4


@pytest.mark.usefixtures("files")
def test_the_name_of_a_rows_file(ours: Connection) -> None:
    query = "SELECT filename, count(*) FROM read_csv(['a.csv', 'a.csv'], filename=true) GROUP BY 1"
    assert ours.sql(query).fetchall() == [("a.csv", 6)]
    assert (
        ours.sql("SELECT filename FROM read_parquet('x.parquet', filename=true)").fetchall()
        == [("x.parquet",)] * 2
    )
    assert ours.sql("SELECT p FROM read_parquet('x.parquet', filename=true)").fetchall() == [(1,), (2,)]
    assert ours.sql("SELECT count(*) FROM read_json('n.json', filename=true)").fetchall() == [(3,)]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("FROM read_csv('a.csv', nope=true)", "read_csv() has no option nope"),
        ("FROM read_csv('a.csv', headr=true)", 'Did you mean "header"?'),
        ("FROM read_csv('a.csv', header='maybe')", "header: it takes TRUE or FALSE"),
        ("FROM read_csv('a.csv', delim='ab')", "delim: it takes one ASCII character"),
        ("FROM read_csv('a.csv', types={'zz': 'INTEGER'})", 'no column "zz"'),
        ("FROM read_csv('a.csv', types={'i': 'NOPE'})", "there is no type NOPE"),
        ("FROM read_csv('a.csv', columns={'x': 'VARCHAR'})", "4 columns, not 1"),
        ("FROM read_csv('a.csv', names=['a', 'b', 'c', 'd', 'e'])", "4 columns, not 5"),
        ("FROM read_csv('a.csv', names=[' ', '  '])", "names: a name cannot be empty"),
        ("FROM read_csv('a.csv', nullstr=[42])", "nullstr: it takes a string or a list of strings"),
        (
            "FROM read_csv('a.csv', nullstr=[])",
            "nullstr: it takes a string or a list of strings, and no",
        ),
        ("FROM read_csv('a.csv', sample_size=0)", "sample_size: it takes a number of rows, or -1"),
        ("FROM read_csv('a.csv', dateformat='%q')", "dateformat: %q is not understood"),
        ("FROM read_csv('a.csv', timestampformat=5)", "timestampformat: it takes a format such as"),
        ("FROM read_csv('a.csv', names=['q', 'Q'])", '"q" is given 2 times'),
        ("FROM read_csv('a.csv', quote='|')", "quote: '|' is not supported"),
        ("FROM read_csv('a.csv', skip=99)", "fewer than 100 lines"),
        ("FROM read_json('a.csv')", "line"),
        ("FROM read_json('array.json', format='newline_delimited')", "line"),
        ("FROM read_json('n.json', format='array')", "object 1"),
        ("FROM read_csv('a.csv', 'b.csv')", "one path or list of paths"),
        ("FROM read_nothing('a.csv')", "no table function read_nothing()"),
        ("COPY t FROM 'a.csv'", "takes 1 column here, not 4"),
        ("COPY t (zz) FROM 'a.csv'", 'no column "zz"'),
        ("COPY nope FROM 'a.csv'", 'no table "nope"'),
        ("COPY v FROM 'a.csv'", '"v" is a view'),
        ("COPY t FROM 'missing.csv'", "no such file"),
        ("COPY t TO 'x.csv' (NOPE 1)", "COPY TO csv has no option nope"),
        ("COPY t TO 'x.csv' (FORMAT nope)", "one of csv, parquet, json, arrow"),
        ("COPY t TO 'x.csv' (DELIMITER 'ab')", "delimiter: it takes one ASCII character"),
        ("COPY t TO 'x.csv' (FORCE_QUOTE (zz))", 'no column "zz"'),
        ("COPY t TO 'x' (FORMAT parquet, PARTITION_BY (a))", "every column is in PARTITION_BY"),
        ("COPY t TO 'x' (APPEND)", "append is for files in folders"),
        ("COPY t (zz) TO 'x.csv'", 'no column "zz"'),
        ("COPY t TO x", "path in quotes"),
        ("COPY (SELECT nope FROM t) TO 'x.csv'", 'no column "nope"'),
    ],
)
def test_what_is_wrong_is_said(ours: Connection, tmp_path: Path, sql: str, message: str) -> None:
    ours.sql("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS FROM t")
    with pytest.raises(BamQueryError) as caught:
        ours.sql(sql).fetchall()
    assert message in str(caught.value)
    assert not (tmp_path / "x.csv").exists()
    if "has no option" in message:
        assert isinstance(caught.value, SqlError)
        assert caught.value.reasons[0].line == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":1}\n{"a":"x"}\n', "line"),
        ('{"a":[1]}', "a"),
        ("[1, 2]", "object"),
        ('[{"a":1}', "not closed"),
        ('[{"a":1},]', "object"),
        ('[{"a":1}] x', "object"),
        ("{}\n", "no objects with members"),
        ('{"a":"\xff"}'.encode("latin1"), "not UTF-8"),
    ],
)
def test_json_that_cannot_be_rows(ours: Connection, tmp_path: Path, text: str | bytes, message: str) -> None:
    (tmp_path / "x.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BamQueryError) as caught:
        ours.sql("FROM 'x.json'").fetchall()
    assert message in str(caught.value)


def test_json_of_many_blocks(ours: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bamquery.storage.ingest.json.blocks._BLOCK_BYTES", 100)
    rows = [f'{{"i": {i}, "s": "ü{i}"}}' if i <= 90 else f'{{"i": {i}, "late": 1.5}}' for i in range(100)]
    (tmp_path / "lines.json").write_text("\n".join(rows))
    (tmp_path / "array.json").write_text("[" + ",\n".join(rows) + "]")
    for name in ("lines", "array"):
        answer = ours.sql(f"SELECT count(*), sum(i), max(s), count(late) FROM '{name}.json'")
        assert answer.fetchall() == [(100, 4950, "ü90", 9)]


def test_loading_json(ours: Connection, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"a": 1}, {"a": 2}]')
    assert ours.load("t", "x.json") == 2
    assert ours.load("t", tmp_path / "x.json", if_exists="append", format="json") == 2
    assert ours.sql("SELECT sum(a) FROM t").fetchall() == [(6,)]


def test_members_that_json_lacks_are_null_and_columns_not_named_get_defaults(
    ours: bamquery.Connection, tmp_path: Path
) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"a":1}\n{"a":2,"b":5}\n', encoding="utf-8")
    theirs = duckdb.connect()
    for sql in (
        "CREATE TABLE t (a INTEGER, b INTEGER DEFAULT 7, c VARCHAR DEFAULT 'd')",
        f"COPY t FROM '{path}'",
        f"COPY t (a, b) FROM '{path}'",
        f"INSERT INTO t BY NAME FROM '{path}'",
    ):
        ours.sql(sql)
        theirs.execute(sql)
    assert ours.table("t").fetchall() == theirs.table("t").fetchall()


def test_a_path_in_double_quotes_is_a_file_unless_a_table_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with bamquery.connect() as database:
        database.sql(f"COPY (SELECT 1 AS a) TO '{path}'")
        assert database.sql(f'FROM "{path}"').fetchall() == [(1,)]
        assert database.sql(f'SELECT x.a FROM "{path.parent}/*.parquet" AS x').fetchall() == [(1,)]
        assert database.sql(f'DESCRIBE "{path}"').fetchall()[0][:2] == ("a", "INTEGER")
        database.sql('CREATE TABLE "y.parquet" AS SELECT 2 AS b')
        assert database.sql('FROM "y.parquet"').fetchall() == [(2,)]
        with pytest.raises(SqlError, match="no such file"):
            database.sql(f'FROM "{tmp_path}/z.parquet"')


def test_times_of_parquet_that_are_adjusted_to_utc_are_times_of_that_clock(ours: Connection) -> None:
    duckdb.sql("COPY (SELECT '10:00:00+02'::TIMETZ AS x) TO 'adjusted.parquet'")
    found = ours.sql("SELECT x, typeof(x), x = '08:00:00' FROM 'adjusted.parquet'").fetchall()
    assert found == [(time(8), "TIME", True)]
    assert ours.sql("DESCRIBE FROM 'adjusted.parquet'").fetchall()[0][1] == "TIME"
    summary = ours.sql("SUMMARIZE FROM 'adjusted.parquet'").fetchall()[0]
    assert summary[1:4] == ("TIME", "08:00:00", "08:00:00")
