"""What ADBC's client does with the server: queries, parameters, changes, loading, metadata."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi

import bamquery


def test_a_table_is_made_filled_and_read(serve: Any) -> None:
    cursor = serve().cursor()
    cursor.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    cursor.execute("INSERT INTO t VALUES (1, 'x'), (2, NULL)")
    cursor.execute("SELECT * FROM t ORDER BY a")
    assert cursor.fetchall() == [(1, "x"), (2, None)]
    assert [column[0] for column in cursor.description] == ["a", "b"]
    cursor.execute("SELECT a FROM t WHERE false")
    assert cursor.fetchall() == []
    cursor.execute("DESCRIBE t")
    assert [row[0] for row in cursor.fetchall()] == ["a", "b"]
    cursor.execute("SHOW TABLES")
    assert cursor.fetchall() == [("t",)]


def test_values_are_those_of_a_connection(serve: Any) -> None:
    served = serve()
    text = """SELECT 1::TINYINT AS a, 2::HUGEINT AS b, 1.50::DECIMAL(9, 2) AS c, 'naïve' AS d,
        '\\x00'::BLOB AS e, DATE '2024-02-29' AS f, TIMESTAMP '2024-02-29 12:34:56.789' AS g,
        TIME '12:34:56' AS h, TIMESTAMPTZ '2024-02-29 12:00:00+00' AS i, NULL AS j, true AS k,
        'nan'::DOUBLE AS l, INTERVAL '3 months 2 days' AS m"""
    cursor = served.cursor()
    cursor.execute(text)
    table = cursor.fetch_arrow_table()
    with bamquery.connect(served.database.path, device="cpu") as con:
        expected = con.sql(text).to_arrow()
    assert table.schema == expected.schema
    assert str(table.to_pydict()) == str(expected.to_pydict())  # nan is not itself
    assert table["c"][0].as_py() == Decimal("1.50")


def test_an_answer_is_cut_into_messages(serve: Any) -> None:
    served = serve()
    cursor = served.cursor()
    rows = 400_000
    cursor.execute(f"SELECT range AS a, repeat('x', 100) AS b FROM range({rows})")
    batches = list(cursor.fetch_record_batch())
    assert sum(batch.num_rows for batch in batches) == rows
    assert max(batch.nbytes for batch in batches) <= 4 << 20
    assert served.log[-1]["rows"] == rows
    assert served.server._running.count == 0


@pytest.mark.parametrize(
    ("text", "values", "answer"),
    [
        ("SELECT ? + 1, ?", (41, "x"), [(42, "x")]),
        ("SELECT $2, $1", (1, 2), [(2, 1)]),
        ("SELECT $b, $a", (2, 1), [(2, 1)]),
        ("SELECT $a, $b", pa.record_batch({"b": [1], "a": [2]}), [(2, 1)]),
        ("SELECT ?", (None,), [(None,)]),
        ("SELECT ?", (datetime.date(2024, 2, 29),), [(datetime.date(2024, 2, 29),)]),
        ("SELECT ?", (b"\x00\xff",), [(b"\x00\xff",)]),
        ("SELECT count(*) FROM range(10) WHERE range >= ? AND range < ?", (3, 7), [(4,)]),
    ],
)
def test_parameters(serve: Any, text: str, values: Any, answer: list[tuple[Any, ...]]) -> None:
    cursor = serve().cursor()
    cursor.execute(text, values)
    assert cursor.fetchall() == answer


def test_a_parameter_is_a_value_and_never_sql(serve: Any) -> None:
    cursor = serve().cursor()
    cursor.execute("SELECT ? AS a", ("'; DROP TABLE t; --",))
    assert cursor.fetchall() == [("'; DROP TABLE t; --",)]


def test_many_rows_of_values(serve: Any) -> None:
    cursor = serve().cursor()
    cursor.execute("CREATE TABLE t (a INTEGER, b VARCHAR)")
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"v{n}") for n in range(20)])
    assert cursor.rowcount == 20
    cursor.execute("SELECT count(*), max(b) FROM t")
    assert cursor.fetchall() == [(20, "v9")]


def test_the_wrong_number_of_values(serve: Any) -> None:
    cursor = serve().cursor()
    with pytest.raises(dbapi.Error, match="2 parameters"):
        cursor.execute("SELECT ?, ?", (1,))


def test_rows_are_loaded(serve: Any) -> None:
    cursor = serve().cursor()
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert cursor.adbc_ingest("t", table, mode="create") == 2
    assert cursor.adbc_ingest("t", table, mode="append") == 2
    assert cursor.adbc_ingest("t", table, mode="create_append") == 2
    assert cursor.adbc_ingest("new", iter_reader(table), mode="create_append") == 2
    cursor.execute("SELECT count(*) FROM t")
    assert cursor.fetchall() == [(6,)]
    assert cursor.adbc_ingest("t", table, mode="replace") == 2
    cursor.execute("SELECT * FROM t ORDER BY a")
    assert cursor.fetchall() == [(1, "x"), (2, None)]
    with pytest.raises(dbapi.Error, match="exists already"):
        cursor.adbc_ingest("t", table, mode="create")
    with pytest.raises(dbapi.Error, match='there is no table "none"'):
        cursor.adbc_ingest("none", table, mode="append")
    with pytest.raises(dbapi.Error, match="temporary"):
        cursor.adbc_ingest("temp", table, mode="create", temporary=True)
    with pytest.raises(dbapi.Error, match='no catalog "other"'):
        cursor.adbc_ingest("u", table, mode="create", catalog_name="other")
    with pytest.raises(dbapi.Error, match='"elsewhere"'):
        cursor.adbc_ingest("u", table, mode="create", db_schema_name="elsewhere")


def iter_reader(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT nosuch FROM t", 'no column "nosuch"'),
        ("SELEC 1", "line 1"),
        ("SELECT CAST(b AS INTEGER) FROM t", "Could not convert|cannot|x"),
        ("-- nothing", "must be one statement"),
        ("CREATE TABLE t AS SELECT 1", "exists already"),
        ("SET threads = 1", "lock_configuration"),
        ("SET enable_external_access = true", "lock_configuration"),
        ("RESET lock_configuration", "lock_configuration"),
        ("FROM '/etc/passwd'", "enable_external_access"),
        ("COPY t TO '/tmp/out.csv'", "enable_external_access"),
        ("COPY t FROM '/etc/passwd'", "enable_external_access"),
        ("FROM served", 'no table "served"'),
    ],
)
def test_errors_say_why_and_not_where_in_the_server(serve: Any, text: str, said: str) -> None:
    served = serve()
    cursor = served.cursor()
    cursor.execute("CREATE TABLE t AS SELECT 'x' AS b")
    with pytest.raises(dbapi.Error, match=said) as caught:  # noqa: PT012 (either may fail)
        cursor.execute(text)
        cursor.fetchall()
    assert "Traceback" not in str(caught.value)
    assert ".py" not in str(caught.value)
    assert not any("detail" in line for line in served.log if line.get("command") != "CloseSession")
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]


def test_there_are_no_transactions(serve: Any) -> None:
    cursor = serve().cursor()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.connection.adbc_connection.set_autocommit(False)


def test_metadata(serve: Any) -> None:
    cursor = serve().cursor()
    cursor.execute("CREATE TABLE one (a INTEGER, b DECIMAL(9, 2))")
    cursor.execute('CREATE TABLE "tw%o" AS SELECT 1 AS a')
    cursor.execute("CREATE VIEW three AS SELECT a AS c FROM one")
    connection = cursor.connection
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "BamQuery"
    assert info["vendor_version"] == bamquery.__version__
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert connection.adbc_get_table_schema("one").names == ["a", "b"]

    def tables(**filters: Any) -> dict[str, str]:
        found = connection.adbc_get_objects(depth="tables", **filters).read_all().to_pylist()
        return {
            table["table_name"]: table["table_type"]
            for catalog in found
            for schema in catalog["catalog_db_schemas"] or []
            for table in schema["db_schema_tables"] or []
        }

    everything = {"one": "TABLE", "tw%o": "TABLE", "three": "VIEW"}
    assert tables() == everything
    assert tables(table_name_filter="t%") == {"tw%o": "TABLE", "three": "VIEW"}
    assert tables(table_name_filter="_ne") == {"one": "TABLE"}
    assert tables(table_types_filter=["VIEW"]) == {"three": "VIEW"}
    assert tables(db_schema_filter="ma%") == everything
    assert tables(db_schema_filter="other") == {}
    assert tables(catalog_filter="db") == everything
    cursor.execute("SELECT current_database()")
    assert cursor.fetchall() == [("db",)]
    columns = connection.adbc_get_objects(depth="all", table_name_filter="one").read_all().to_pylist()
    (table,) = columns[0]["catalog_db_schemas"][0]["db_schema_tables"]
    assert [column["xdbc_type_name"] for column in table["table_columns"]] == ["INTEGER", "DECIMAL(9,2)"]


def test_a_view_that_cannot_be_read_does_not_hide_the_others(serve: Any) -> None:
    served = serve()
    with bamquery.connect(served.database.path) as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        con.sql("CREATE VIEW v AS SELECT a FROM t")
        con.sql("DROP TABLE t")
    found = served.cursor().connection.adbc_get_objects(depth="all").read_all().to_pylist()
    (view,) = found[0]["catalog_db_schemas"][0]["db_schema_tables"]
    assert (view["table_name"], view["table_columns"]) == ("v", [])


def test_several_clients_at_once(serve: Any) -> None:
    served = serve()
    first, second = served.cursor(), served.cursor()
    first.execute("CREATE TABLE t AS SELECT range AS a FROM range(100000)")
    first.execute("SELECT a FROM t")
    second.execute("INSERT INTO t VALUES (-1)")
    second.execute("SELECT count(*) FROM t")
    assert second.fetchall() == [(100001,)]
    assert len(first.fetchall()) == 100000  # as the table was
