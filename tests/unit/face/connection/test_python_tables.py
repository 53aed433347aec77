"""Objects of Python in FROM: variables of the caller, and what is registered under a name."""

import polars
import pyarrow as pa
import pyarrow.dataset
import pytest

import bamquery
from bamquery.errors import BamQueryError, IngestError, SqlError

pandas = pytest.importorskip("pandas")

everywhere = pa.table({"i": [1, 2, 3], "s": ["a", None, "c"]})


@pytest.fixture
def connection():
    with bamquery.connect(device="cpu") as connection:
        yield connection


OBJECTS = {
    "table": everywhere,
    "batch": everywhere.to_batches()[0],
    "dataset": pyarrow.dataset.dataset(everywhere),
    "pandas": everywhere.to_pandas(),
    "polars": polars.from_arrow(everywhere),
    "lazy": polars.from_arrow(everywhere).lazy(),
    "reader": everywhere.to_reader(),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_variable_is_a_table(connection, kind):
    mine = OBJECTS[kind]
    assert mine is not None
    answer = connection.sql("SELECT s, sum(i) FROM mine WHERE i > 1 GROUP BY s ORDER BY s")
    assert answer.fetchall() == [("c", 3), (None, 2)]


def test_globals_are_seen_and_locals_hide_them(connection):
    assert connection.sql("SELECT count(*) FROM everywhere").fetchall() == [(3,)]

    def inner():
        everywhere = pa.table({"i": [1]})
        assert everywhere is not None
        return connection.sql("SELECT count(*) FROM everywhere").fetchall()

    assert inner() == [(1,)]


def test_tables_and_views_come_before_variables(connection):
    t = v = everywhere
    assert t is v
    connection.sql("CREATE TABLE t AS SELECT 5 AS x; CREATE VIEW v AS SELECT 6 AS x")
    assert connection.sql("FROM t").fetchall() == [(5,)]
    assert connection.sql("FROM v").fetchall() == [(6,)]


def test_a_view_sees_no_variables(connection):
    mine = everywhere
    assert mine is not None
    connection.register("named", mine)
    connection.sql("CREATE TABLE named AS SELECT 1 AS x; CREATE VIEW v AS FROM named")
    assert connection.sql("FROM v").columns == ["x"]
    assert connection.sql("FROM named").columns == ["i", "s"]


def test_a_view_cannot_be_made_of_an_object(connection):
    mine = everywhere
    connection.register("named", mine)
    for name in ("mine", "named"):
        with pytest.raises(SqlError, match=f'there is no table "{name}"'):
            connection.sql(f"CREATE VIEW v AS FROM {name}")
    assert connection.views == []


def test_relations_are_tables_of_their_connection(connection):
    first = connection.sql("SELECT i, i * 2 AS d FROM everywhere WHERE i <> ?", [2])  # noqa: F841
    second = connection.sql("SELECT sum(d) AS total FROM first")  # noqa: F841
    assert connection.sql("SELECT total + 1 FROM second").fetchall() == [(9,)]
    with (
        bamquery.connect(device="cpu") as other,
        pytest.raises(SqlError, match="the connection that it is of"),
    ):
        other.sql("FROM first")


def test_variables_count_where_statements_are_asked_for(connection):
    mine = everywhere
    assert mine is not None
    statements = connection.statements("SELECT count(*) FROM mine; SELECT max(i) FROM mine")

    def elsewhere():
        return [relation.fetchall() for relation in statements]

    assert elsewhere() == [[(3,)], [(3,)]]


def test_a_table_made_of_a_variable(connection):
    mine = everywhere.to_pandas()
    assert mine is not None
    connection.sql("CREATE TABLE kept AS FROM mine; INSERT INTO kept SELECT i + 10, s FROM mine")
    assert connection.sql("SELECT sum(i) FROM kept").fetchall() == [(42,)]


def test_a_variable_that_is_no_table(connection):
    number, array = 3, pa.array([1])
    assert number, array
    with pytest.raises(SqlError, match=r'no table "number".*Python\'s type int'):
        connection.sql("FROM number")
    with pytest.raises((SqlError, IngestError)):
        connection.sql("FROM array")
    with pytest.raises(SqlError, match='no table "nothing_like_it"'):
        connection.sql("FROM nothing_like_it")
    with pytest.raises(SqlError, match="is a Python object, not a table"):
        connection.sql("INSERT INTO everywhere VALUES (1, 'x')")


def test_registered_objects_hide_tables(connection):
    connection.sql("CREATE TABLE t AS SELECT 5 AS x")
    connection.register("T", everywhere)
    assert connection.sql("FROM t").columns == ["i", "s"]
    assert connection.table("t").columns == ["i", "s"]
    connection.register("t", pa.table({"z": [1]}))
    assert connection.sql("FROM T").columns == ["z"]
    connection.unregister("t")
    connection.unregister("t")
    assert connection.sql("FROM t").columns == ["x"]


def test_what_is_registered_must_be_a_table(connection):
    with pytest.raises(IngestError, match="cannot load int"):
        connection.register("x", 5)
    connection.register("x", pa.table({"nested": [[1, 2]]}))  # which others may have beside what is asked for
    with pytest.raises(BamQueryError, match="nested"):
        connection.sql("SELECT * FROM x")


def test_a_stream_is_read_once(connection):
    connection.register("stream", everywhere.to_reader())
    assert connection.sql("SELECT count(*) FROM stream").fetchall() == [(3,)]
    with pytest.raises(IngestError, match="only once"):
        connection.sql("SELECT count(*) FROM stream").fetchall()


def test_null_among_a_dictionarys_values_is_one_key():
    rows = pa.table({"a": pa.DictionaryArray.from_arrays([0, 1, None, 1], pa.array(["x", None]))})
    with bamquery.connect(device="cpu") as con:
        con.register("rows", rows)
        assert con.sql("SELECT a, count(*) FROM rows GROUP BY a ORDER BY a").fetchall() == [
            ("x", 1),
            (None, 3),
        ]
        assert con.sql("SELECT x.a FROM rows x JOIN rows y ON x.a = y.a").fetchall() == [("x",)]


@pytest.mark.parametrize("again", ["select sum(i) from mine", "select i from mine limit 1"])
def test_a_reader_is_read_by_one_statement_only(connection, again):
    mine = everywhere.to_reader()
    connection.sql("explain select sum(i) from mine")  # which reads nothing
    assert connection.sql("select sum(i) from mine").fetchall() == [(6,)]
    with pytest.raises(IngestError, match="can be read only once, and it was"):
        connection.sql(again).fetchall()
    connection.register("named", mine)
    with pytest.raises(IngestError, match="can be read only once, and it was"):
        connection.sql("from named").fetchall()
    with bamquery.connect(device="cpu") as other, pytest.raises(IngestError, match="only once"):
        other.load("t", mine)
    mine = everywhere.to_reader()
    assert connection.sql("select sum(i) from mine").fetchall() == [(6,)]
