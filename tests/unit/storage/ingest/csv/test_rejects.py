from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import SqlError
from bamquery.storage.ingest.csv.blocks import CsvBlock
from bamquery.storage.ingest.csv.dialect import Dialect
from bamquery.storage.ingest.csv.rejects import Sifted, sift


def sifted(data: bytes, width: int, *, fields: int | None = None, one_line: bool = False) -> Sifted:
    names = tuple("abcdefghi"[:width])
    dialect = Dialect(",", b"\n", names, 0, 0, 2, names, True, ("",))
    return sift(CsvBlock(data, 2, 1 + data.count(b"\n"), 0), dialect, fields=fields, one_line=one_line)


def test_lines_are_brought_to_one_width() -> None:
    found = sifted(b'1,2,3\r\n1,2,3,,\n1,"a,b",3', 4, fields=3)
    assert found.data == b'1,2,3,\n1,2,3,\n1,"a,b",3,\n'
    assert found.lines == [2, 3, 4]
    assert found.rejects == []


def test_blank_lines_are_neither_records_nor_rejects() -> None:
    found = sifted(b"\n\r\n   \n1,2\n", 2)
    assert found.lines == [5]
    assert found.rejects == []
    assert sifted(b"\n1\n", 1).lines == [2, 3]


def test_lines_that_are_not_records_are_rejected_with_the_reason() -> None:
    data = b'1,2\n1,2,3,x\n1,2,"3\n1,\xff,3\n1,2\r,3\n1,2,3\n'
    found = sifted(data, 3, fields=3, one_line=True)
    assert [(reject.line, reject.kind, reject.reason) for reject in found.rejects] == [
        (2, "MISSING COLUMNS", "only 2 of the 3 fields that the header names"),
        (3, "TOO MANY COLUMNS", "field 4 holds 'x', the header names only 3"),
        (4, "UNQUOTED VALUE", "a quote that does not close"),
        (5, "INVALID ENCODING", "byte 3 is not UTF-8"),
        (6, "UNQUOTED VALUE", "a carriage return inside the line"),
    ]
    assert found.rejects[3].text == "1,\\xff,3"
    assert found.lines == [7]


def test_a_quote_may_be_closed_on_a_later_line_where_that_makes_a_record() -> None:
    found = sifted(b'1,"a\r\nb"\n2,c\n3,"d\n4,e\n5,f", g\n', 2)
    assert found.data == b'1,"a\r\nb"\n2,c\n4,e\n'
    assert found.lines == [2, 4, 6]
    assert [(reject.line, reject.reason) for reject in found.rejects] == [
        (5, "a quote that does not close"),
        (7, "field 3 holds ' g', the header names only 2"),
    ]


@pytest.fixture
def con() -> Iterator[Connection]:
    with bamquery.connect() as connection:
        yield connection


BROKEN = b'a,b\n1,x\n1,x\n1,x\n2\n3,y,z\n4,"open\n5,\xe9\n6,w\n"7","v\nv"\n'


def test_read_csv_leaves_out_what_is_no_record(con: Connection, tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(BROKEN)
    rows = [(1, "x")] * 3 + [(6, "w"), (7, "v\nv")]
    assert con.sql(f"FROM read_csv('{path}', ignore_errors = true)").fetchall() == rows
    assert con.sql(f"SELECT a FROM read_csv('{path}', ignore_errors = true)").fetchall() == [(1,)] * 3 + [
        (6,),
        (7,),
    ]
    assert con.sql(f"SELECT count(*) FROM read_csv('{path}', ignore_errors = true)").fetchall() == [(5,)]
    with pytest.raises(SqlError, match="line 5: has 1 field where the others have 2"):
        con.sql(f"FROM read_csv('{path}')")


def test_as_duckdb_where_quotes_are_closed(con: Connection, tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(b'a,b\n1,x\n1,x\n1,x\n2\n3,y,z\n\n5,\xe9\n6,w\n"7","v\nv"\n8,\n9,""\n')
    options = "ignore_errors = true, header = true, quote = '\"', types = ['BIGINT', 'VARCHAR']"
    sql = f"FROM read_csv('{path}', {options})"
    with duckdb.connect() as other:
        assert con.sql(sql).fetchall() == other.sql(sql).fetchall()


@pytest.mark.parametrize("block_bytes", [8, 64])
def test_blocks_of_any_size(
    con: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr("bamquery.storage.ingest.csv.blocks.BLOCK_BYTES", block_bytes)
    path = tmp_path / "broken.csv"
    path.write_bytes(b"a,b\n" + b"".join(b"%d,x\n%d\n" % (i, i) for i in range(500)))
    found = con.sql(f"SELECT count(*), sum(a) FROM read_csv('{path}', ignore_errors = true)").fetchall()
    assert found == [(500, 499 * 250)]


def test_rows_whose_values_are_not_of_the_types_that_are_given(con: Connection, tmp_path: Path) -> None:
    path = tmp_path / "typed.csv"
    path.write_bytes(b"a,b\n1,2020-01-01\nx,2020-01-02\n,2020-01-03\n4,no\n")
    sql = f"FROM read_csv('{path}', ignore_errors = true, types = {{'a': 'INTEGER', 'b': 'DATE'}})"
    assert con.sql(f"SELECT a {sql}").fetchall() == [(1,), (None,)]


def test_rejects_are_kept_where_that_is_asked_for(con: Connection, tmp_path: Path) -> None:
    assert con.sql("FROM reject_errors").fetchall() == []
    path = tmp_path / "broken.csv"
    path.write_bytes(BROKEN)
    for _ in range(2):  # the second time the file is known
        assert len(con.sql(f"FROM read_csv('{path}', store_rejects = true)").fetchall()) == 5
    con.sql(f"FROM read_csv('{path}', ignore_errors = true)").fetchall()
    assert con.sql("FROM reject_scans").fetchall() == [(0, 0, str(path)), (1, 0, str(path))]
    assert con.sql("SELECT line, error_type, csv_line FROM reject_errors WHERE scan_id = 1").fetchall() == [
        (5, "MISSING COLUMNS", "2"),
        (6, "TOO MANY COLUMNS", "3,y,z"),
        (7, "UNQUOTED VALUE", '4,"open'),
        (8, "INVALID ENCODING", "5,\\xe9"),
    ]
