"""Tables of the catalogue: DuckDB's columns, what there is at the moment, and what stays out of the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.settings import Settings
from bamquery.function_catalog.table_functions import SYSTEM_FUNCTIONS
from bamquery.sql_frontend.system_names import INFORMATION_TABLES, SYSTEM_VIEWS

TABLES = [
    *(f"information_schema.{name}" for name in INFORMATION_TABLES),
    *(f"{name}()" for name in SYSTEM_FUNCTIONS if name not in ("pragma_table_info",)),
    "pragma_table_info('t')",
    *(name for name in SYSTEM_VIEWS if not name.startswith("reject_")),  # there once something was rejected
]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "taxi.bq", device="cpu") as con:
        con.sql("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'x')")
        con.sql("CREATE VIEW v AS SELECT a FROM t")
        yield con


@pytest.mark.parametrize("table", TABLES)
def test_columns_are_those_of_duckdb(con: bamquery.Connection, table: str) -> None:
    """Names, order and types; but what is nested there is its text here."""
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'x')")
        theirs = oracle.sql(f"FROM {table.replace('bamquery_', 'duckdb_')}")
        wanted = [
            (name, "VARCHAR" if any(mark in str(kind) for mark in ("[", "MAP", "VARIANT")) else str(kind))
            for name, kind in zip(theirs.columns, theirs.types, strict=True)
        ]
    ours = con.sql(f"FROM {table}")
    assert list(zip(ours.columns, ours.types, strict=True)) == wanted
    ours.fetchall()


def test_names_that_are_not_there_in_duckdb() -> None:
    with duckdb.connect() as oracle:
        known = {
            name for (name,) in oracle.execute("SELECT function_name FROM duckdb_functions()").fetchall()
        }
    assert {name for name in SYSTEM_FUNCTIONS if not name.startswith("bamquery_")} <= known


def names(con: bamquery.Connection, table: str) -> list[str]:
    return [name for (name,) in con.sql(f"SELECT table_name FROM {table} ORDER BY 1").fetchall()]


@pytest.mark.parametrize(
    "table", ["information_schema.tables", "bamquery_tables()", "duckdb_tables", "later"]
)
def test_each_query_sees_the_tables_of_now(con: bamquery.Connection, table: str) -> None:
    """None is kept by the statement cache, be it in a view."""
    con.sql(
        "CREATE VIEW later AS SELECT table_name FROM information_schema.tables WHERE table_type <> 'VIEW'"
    )
    before = names(con, table)
    names(con, table)
    con.sql("CREATE TABLE new (x INTEGER)")
    assert names(con, table) == sorted([*before, "new"])
    con.sql("DROP TABLE new")
    assert names(con, table) == before


def test_what_other_connections_did(con: bamquery.Connection) -> None:
    before = names(con, "information_schema.tables")
    with bamquery.connect(con._session.path) as other:
        other.sql("CREATE TABLE new (x INTEGER)")
    assert names(con, "information_schema.tables") == sorted([*before, "new"])


def test_statements_of_one_text(con: bamquery.Connection) -> None:
    answer = con.sql("CREATE TABLE new (x INTEGER); SELECT count(*) FROM duckdb_tables(); DROP TABLE new")
    assert not answer.is_answer
    assert con.sql("CREATE TABLE new (x INTEGER); SELECT count(*) FROM duckdb_tables()").fetchall() == [(2,)]


def test_rows_are_those_of_the_moment_the_relation_was_made(con: bamquery.Connection) -> None:
    relation = con.sql("SELECT table_name, estimated_size FROM duckdb_tables()")
    con.sql("INSERT INTO t VALUES (1, 'q')")
    assert relation.fetchall() == [("t", 0)]
    assert con.sql("SELECT table_name, estimated_size FROM duckdb_tables()").fetchall() == [("t", 1)]


def test_a_view_over_the_catalogue_is_in_it(con: bamquery.Connection) -> None:
    con.sql("CREATE VIEW columns_of AS SELECT table_name, column_name FROM information_schema.columns")
    found = con.sql("SELECT column_name FROM columns_of WHERE table_name = 'columns_of'").fetchall()
    assert found == [("table_name",), ("column_name",)]


def test_a_view_that_cannot_be_used(con: bamquery.Connection) -> None:
    con.sql("DROP TABLE t")
    query = "SELECT view_name, column_count, is_bound, sql FROM bamquery_views()"
    assert con.sql(query).fetchall() == [("v", None, False, "CREATE VIEW v AS SELECT a FROM t;")]
    assert con.sql("SELECT count(*) FROM information_schema.columns").fetchall() == [(0,)]


def test_a_damaged_table_is_listed(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE broken (x INTEGER)")
    manifests = sorted((con._session.path / "tables").glob("*broken*/**/*.json"))
    assert manifests
    for manifest in manifests:
        manifest.write_text("{")
    query = "SELECT table_name, estimated_size, sql FROM bamquery_tables() ORDER BY 1"
    (broken, _) = con.sql(query).fetchall()
    assert broken == ("broken", None, None)
    assert ("broken",) in con.sql("SELECT table_name FROM information_schema.tables").fetchall()


def test_python_objects_are_not_in_it(con: bamquery.Connection) -> None:
    con.register("mine", pa.table({"x": [1]}))
    assert names(con, "information_schema.tables") == ["t", "v"]


def test_python_objects_of_such_names(con: bamquery.Connection) -> None:
    """What is registered hides a table of the catalogue, a variable does not."""
    sqlite_master = pa.table({"x": [1]})
    assert con.sql("SELECT name FROM sqlite_master ORDER BY 1").fetchall() == [("t",), ("v",)]
    con.register("sqlite_master", sqlite_master)
    assert con.sql("FROM sqlite_master").fetchall() == [(1,)]


def test_main_stands_for_what_is_stored(con: bamquery.Connection) -> None:
    con.sql("INSERT INTO t VALUES (7, 'y')")
    con.register("t", pa.table({"x": [1]}))
    assert con.sql("FROM t").fetchall() == [(1,)]
    for name in ("main.t", "taxi.t", "taxi.main.t"):
        assert con.sql(f"FROM {name}").fetchall() == [(7, "y")]


def test_a_table_has_one_version_under_both_names(con: bamquery.Connection) -> None:
    """Of one statement, whose text is kept for the next time as if it had no schema in it."""
    query = "SELECT count(*) FROM t, main.t AS u"
    for rows in (1, 2, 3):
        con.sql("INSERT INTO t VALUES (1, 'q')")
        assert con.sql(query).fetchall() == [(rows * rows,)]
        assert con.sql(query).fetchall() == [(rows * rows,)]


def test_the_database_is_called_by_its_folder(con: bamquery.Connection, tmp_path: Path) -> None:
    assert con.sql("SELECT current_database()").fetchall() == [("taxi",)]
    query = "SELECT database_name, path FROM bamquery_databases()"
    assert con.sql(query).fetchall() == [("taxi", str(tmp_path / "taxi.bq"))]
    with bamquery.connect() as other:
        assert other.sql(query).fetchall() == [("memory", None)]
    with bamquery.connect(tmp_path / ".hidden") as other:
        assert other.sql("SELECT current_catalog").fetchall() == [(".hidden",)]
    with bamquery.connect(tmp_path / "main.bq") as other:
        other.sql("CREATE TABLE main.x AS SELECT 1 AS a")
        assert other.sql("FROM main.x, main.main.x y").fetchall() == [(1, 1)]


def test_every_setting_is_described(con: bamquery.Connection) -> None:
    rows = con.sql("SELECT name, value, description, input_type FROM bamquery_settings()").fetchall()
    assert {name for name, *_ in rows} == set(Settings.__dataclass_fields__)
    assert all(description and description.endswith(".") for _, _, description, _ in rows)


def test_settings_read_back(con: bamquery.Connection) -> None:
    """The value that is shown can be set, and changes nothing."""
    con.sql(
        "SET memory_limit = 1234567891; SET threads = 3; SET verify_checksums = 'all'; SET strategy = blocks"
    )
    before = con.settings
    query = "SELECT name, value FROM duckdb_settings() WHERE value IS NOT NULL AND name NOT LIKE 'allowed%'"
    for name, value in con.sql(query).fetchall():
        con.set(name, value)
    assert con.settings == before


def test_settings_of_now(con: bamquery.Connection) -> None:
    query = "SELECT current_setting('threads'), current_setting('zone_maps'), current_setting('memory_limit')"
    con.sql("SET threads = 3; SET memory_limit = '2GiB'")
    assert con.sql(query).fetchall() == [(3, True, "2.0 GiB")]
    assert con.sql(f"SET threads = 5; {query}").fetchall() == [(5, True, "2.0 GiB")]
    assert con.sql("SELECT current_setting('gpu_memory_limit')").fetchall() == [(None,)]
    con.sql("SET zone_maps = off; RESET threads")
    assert con.sql(query).fetchall() == [(con.settings.effective_threads, False, "2.0 GiB")]


def test_over_a_table_too(con: bamquery.Connection) -> None:
    """Beside columns of a stored table, whose plan could be kept."""
    con.sql("INSERT INTO t VALUES (1, 'q')")
    for threads in (2, 4):
        con.set("threads", threads)
        assert con.sql("SELECT a + current_setting('threads') FROM t").fetchall() == [(1 + threads,)]
        con.sql("CREATE OR REPLACE VIEW w AS SELECT a, current_setting('threads') AS threads FROM t")
        assert con.sql("FROM w").fetchall() == [(1, threads)]


def test_parameters_of_current_setting(con: bamquery.Connection) -> None:
    con.set("threads", 7)
    assert con.sql("SELECT current_setting(?)", ["threads"]).fetchall() == [(7,)]


def test_version(con: bamquery.Connection) -> None:
    assert con.sql("SELECT version()").fetchall() == [(f"v{bamquery.__version__}",)]
    assert con.sql("PRAGMA version").fetchall() == [(f"v{bamquery.__version__}", "", "")]


def test_many_tables(con: bamquery.Connection) -> None:
    for i in range(60):
        con.sql(f'CREATE TABLE "Table {i}" (a INTEGER, "b {i}" DOUBLE NOT NULL)')
    assert con.sql("SELECT count(*) FROM duckdb_columns()").fetchall() == [(2 + 1 + 120,)]
    query = "SELECT table_name FROM duckdb_columns() WHERE column_name = 'b 33'"
    assert con.sql(query).fetchall() == [("Table 33",)]


def test_start_up_does_not_wait_for_it() -> None:
    """A query of a table imports neither the catalogue's tables nor the reference of functions."""
    code = (
        "import bamquery, sys; con = bamquery.connect(); con.sql('CREATE TABLE t AS SELECT 1 AS a'); "
        "con.sql('SELECT a FROM t').fetchall(); "
        "print([m for m in sys.modules if 'system_catalog' in m or 'reference' in m or 'keywords' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_statements_that_change_name_what_is_stored(con: bamquery.Connection) -> None:
    """With the schema before its name, an object of Python does not hide a table from any statement."""
    con.register("t", pa.table({"x": [1]}))
    con.sql("INSERT INTO main.t VALUES (5, 'z')")
    con.sql("ALTER TABLE main.t ADD COLUMN c INTEGER")
    con.sql("OPTIMIZE main.t")
    assert con.sql("FROM main.t").fetchall() == [(5, "z", None)]
    assert [row[2] for row in con.sql("DESCRIBE main.t").fetchall()] == ["NO", "YES", "YES"]


def test_copies_of_the_catalogue(con: bamquery.Connection, tmp_path: Path) -> None:
    con.sql(f"COPY information_schema.tables (table_name) TO '{tmp_path / 'tables.csv'}'")
    assert (tmp_path / "tables.csv").read_text().split() == ["table_name", "t", "v"]
    con.sql("CREATE TABLE snapshot AS FROM duckdb_columns()")
    assert con.sql("SELECT count(*) FROM snapshot").fetchall() == [(3,)]
    with pytest.raises(bamquery.SqlError, match="cannot be made, changed or dropped"):
        con.sql(f"COPY information_schema.tables FROM '{tmp_path / 'tables.csv'}'")


def test_settings_that_are_lists_or_locked(con: bamquery.Connection, tmp_path: Path) -> None:
    con.set("allowed_directories", [str(tmp_path), str(tmp_path / "taxi.bq")])
    listed = f"[{tmp_path}, {tmp_path / 'taxi.bq'}]"
    assert con.sql("SELECT current_setting('allowed_directories')").fetchall() == [(listed,)]
    con.sql("SET statement_timeout = 900; SET enable_external_access = false; SET lock_configuration = true")
    query = "SELECT current_setting('statement_timeout'), current_setting('enable_external_access')"
    assert con.sql(query).fetchall() == [(900.0, False)]
    assert con.sql("SHOW threads").fetchall() == [(con.settings.effective_threads,)]
    assert ("lock_configuration", "true") in con.sql("SELECT name, value FROM bamquery_settings()").fetchall()
