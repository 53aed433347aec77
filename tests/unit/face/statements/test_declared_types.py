"""Types given for CSV columns: what is written is cast, as DuckDB does, not what was made of it before."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import bamquery
from bamquery.errors import ExecutionError
from tests.oracle import connect
from tests.sql.script import render_table

GOOD = [
    ("BOOLEAN", "1\n0\n"),
    ("BOOLEAN", "yes\nf\n"),
    ("INTEGER", "1.5\n2.5\n1e3\n007\n"),
    ("FLOAT", "1.00000017881393432617187499\n16777217\n"),
    ("DOUBLE", "1\n2\n"),
    ("DATE", "2024-01-05 23:00:01-02:00\n"),
    ("DATE", "13/02/2024\n01/02/2024\n"),
    ("TIME", "2024-01-05 12:00:01+02:00\n1:02:03\n"),
    ("TIMESTAMP", "2024-01-05 12:00:01+02:00\n"),
    ("TIMESTAMP", "2024-01-05 12:00:01.123456789\n"),
    ("TIMESTAMP", "2024-01-05\n"),
    ("TIMESTAMPTZ", "2024-01-05 12:00:01+02:00\n"),
    ("INTERVAL", "3\n"),
    ("INTERVAL", "01:02:03\n"),
]
BAD = [("BOOLEAN", "1\n2\n"), ("INTEGER", "true\n"), ("DOUBLE", "true\nfalse\n"), ("DATE", "1\n")]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("kind", "lines"), GOOD)
def test_values_are_casts_of_what_is_written(tmp_path: Path, kind: str, lines: str) -> None:
    (tmp_path / "x.csv").write_text("a\n" + lines)
    with bamquery.connect(device="cpu") as ours, connect() as theirs:
        for source in (f"read_csv('x.csv', types={{'A': '{kind}'}})", f"read_csv('x.csv', types=['{kind}'])"):
            answer = ours.sql(f"FROM {source}").to_arrow()
            assert render_table(answer) == render_table(theirs.sql(f"FROM {source}").to_arrow_table())


@pytest.mark.parametrize(("kind", "lines"), BAD)
def test_what_no_cast_takes_is_an_error(tmp_path: Path, kind: str, lines: str) -> None:
    (tmp_path / "x.csv").write_text("a\n" + lines)
    sql = f"FROM read_csv('x.csv', types={{'a': '{kind}'}})"
    with bamquery.connect(device="cpu") as ours, connect() as theirs:
        with pytest.raises(ExecutionError, match=f"cannot be cast to {kind}"):
            ours.sql(sql).fetchall()
        with pytest.raises(duckdb.Error):
            theirs.sql(sql).fetchall()


@pytest.mark.parametrize(("kind", "lines"), [case for case in GOOD + BAD if case[0] != "INTERVAL"])
def test_a_tables_types_are_given_to_copy_from(tmp_path: Path, kind: str, lines: str) -> None:
    (tmp_path / "x.csv").write_text("a\n" + lines)
    with bamquery.connect(device="cpu") as ours, connect() as theirs:
        for connection in (ours, theirs):
            connection.sql(f"CREATE TABLE t (a {kind})")
        if (kind, lines) in BAD:
            with pytest.raises(ExecutionError, match=f"cannot be cast to {kind}"):
                ours.sql("COPY t FROM 'x.csv'")
            return
        for connection in (ours, theirs):
            connection.sql("COPY t FROM 'x.csv' (HEADER)")
        assert render_table(ours.sql("FROM t").to_arrow()) == render_table(
            theirs.sql("FROM t").to_arrow_table()
        )


def test_files_that_differ_are_cast_from_what_each_says(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "y.csv").write_text("a\n2.5\n")
    with bamquery.connect(device="cpu") as ours:
        sql = "SELECT a FROM read_csv(['x.csv', 'y.csv'], types={'a': 'INTEGER'}) ORDER BY a"
        assert ours.sql(sql).fetchall() == [(1,), (3,)]
