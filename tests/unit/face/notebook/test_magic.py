"""%bamquery and %%bamquery."""

from __future__ import annotations

import pytest

import bamquery
from bamquery.errors import BamQueryError, ExecutionError, SqlError
from bamquery.notebook.cell_options import CellOptions, parse_options


def test_a_cell_answers(cells):
    relation = cells.run("%%bamquery\nSELECT 42 AS x\nUNION ALL SELECT 43 ORDER BY x")
    assert relation.fetchall() == [(42,), (43,)]
    assert cells.run("%bamquery SELECT 'a b' AS x").fetchall() == [("a b",)]
    assert cells.run("x = %bamquery SELECT 1\nx.fetchone()") == (1,)


def test_variables_are_tables_and_parameters(cells):
    cells.run("import pandas as pd; df = pd.DataFrame({'a': [1, 2, 3]}); low = 2")
    relation = cells.run("%%bamquery\nSELECT * FROM df WHERE a >= $low AND '$high' <> ''")
    assert relation.fetchall() == [(2,), (3,)]
    cells.run("%bamquery -o picked SELECT max(a) AS m FROM df WHERE a < $low")
    assert cells.run("%bamquery SELECT m + 1 FROM picked").fetchall() == [(2,)]


def test_variables_of_sql_are_no_variables_of_the_notebook(cells):
    cells.run("%%bamquery\nSET VARIABLE inner_one = 3; SELECT $inner_one")
    assert cells.run("%bamquery SELECT $Inner_One AS a") is not None


def test_output_shows_and_runs_nothing(cells, monkeypatch):
    monkeypatch.setattr(bamquery.Result, "__next__", lambda self: pytest.fail("it was run"))
    assert cells.run("%%bamquery --output lazy\nSELECT 1") is None
    assert isinstance(cells.shell.user_ns["lazy"], bamquery.Relation)


def test_what_is_shown_was_run_once(cells, monkeypatch):
    runs = []
    run = bamquery.Relation.view
    monkeypatch.setattr(bamquery.Relation, "view", lambda self: runs.append(self) or run(self))
    cells.run("%%bamquery\nSELECT 1 AS x")
    assert len(runs) == 1


def test_errors_are_short_and_the_cells(cells):
    with pytest.raises(SqlError):
        cells.run("%%bamquery\nSELECT *\nFRM t")
    assert cells.tracebacks[-1].startswith("SqlError: syntax error")
    assert "line 2" in cells.tracebacks[-1]
    assert "Traceback" not in cells.tracebacks[-1]
    with pytest.raises(ExecutionError):  # when it runs, not when it is shown
        cells.run("%%bamquery\nSELECT CAST(x AS INTEGER) FROM (VALUES ('\x1b[31mred')) t(x)")
    assert cells.tracebacks[-1].startswith("ExecutionError: '\\x1b[31mred'")
    with pytest.raises(BamQueryError, match=r"there is no variable lo, which \$lo stands for"):
        cells.run("low = 1\n%bamquery SELECT $lo")
    with pytest.raises(BamQueryError, match="a cell's parameters are variables"):
        cells.run("%bamquery SELECT ?")
    with pytest.raises(BamQueryError, match="there is no SQL"):
        cells.run("%bamquery")


def test_the_only_connection_is_taken(cells):
    cells.run("import bamquery\ncon = bamquery.connect()\nsame = con")
    cells.run("%bamquery CREATE TABLE t AS SELECT 5 AS x")
    assert cells.run("con.tables") == ["t"]
    cells.run("other = bamquery.connect()")
    assert cells.run("%bamquery FROM t").fetchall() == [(5,)]  # it stays with the one it took
    cells.run("con.close(); third = bamquery.connect()")
    with pytest.raises(BamQueryError, match="several connections: say which by --connection"):
        cells.run("%bamquery SELECT 1")
    cells.run("%bamquery -c other CREATE TABLE o AS SELECT 6 AS x")
    assert cells.run("%bamquery FROM o").fetchall() == [(6,)]
    cells.run("other.close(); third.close()")


def test_a_database_by_its_path(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells.run("%%bamquery --connection ./made.bq\nCREATE TABLE t AS SELECT 7 AS x")
    assert (tmp_path / "made.bq").is_dir()
    assert cells.run("%bamquery -c made.bq\n%bamquery FROM t").fetchall() == [(7,)]
    with pytest.raises(BamQueryError, match=r'neither a variable "mode" .*\./mode'):
        cells.run("%bamquery -c mode SELECT 1")
    assert not (tmp_path / "mode").exists()


def test_statements_say_what_they_did(cells):
    relation = cells.run("%bamquery CREATE TABLE t AS SELECT 1 AS x")
    assert relation.message == 'created table "t": 1 row'
    assert 'created table "t": 1 row' in relation._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    ("line", "cell", "expected"),
    [
        ("SELECT -1", None, CellOptions(None, None, "SELECT -1")),
        ("-c a SELECT 1", None, CellOptions("a", None, "SELECT 1")),
        (" --output=x -c 'a b'", "SELECT 1\n", CellOptions("a b", "x", "SELECT 1\n")),
        ("SELECT 1,", "2", CellOptions(None, None, "SELECT 1,\n2")),
        ("", "", CellOptions(None, None, "")),
    ],
)
def test_options(line, cell, expected):
    assert parse_options(line, cell) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--conection x", 'no option --conection. Did you mean "--connection"?'),
        ("-c", "--connection needs a value"),
        ("-o -c x", "--output needs a value"),
        ("-o 1x", "--output takes the name of a variable, not '1x'"),
    ],
)
def test_options_that_are_none(line, message):
    with pytest.raises(BamQueryError) as caught:
        parse_options(line, None)
    assert message in str(caught.value)


def test_unloading_closes_what_was_opened(cells):
    opened = cells.run("%bamquery -c :memory: -o kept SELECT 1\nkept")
    cells.run("%unload_ext bamquery")
    with pytest.raises(BamQueryError, match="closed"):
        opened.fetchall()
    cells.run("%load_ext bamquery")
    assert cells.run("%bamquery SELECT 2").fetchall() == [(2,)]


def test_without_a_connection_it_is_the_modules(cells):
    cells.run("import bamquery\nbamquery.sql('CREATE OR REPLACE TABLE of_cells AS SELECT 3 AS x')")
    assert cells.run("%bamquery FROM of_cells").fetchall() == [(3,)]
    cells.run("%bamquery DROP TABLE of_cells")
