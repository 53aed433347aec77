"""What libraries and the system raise below a statement becomes an error of ours that names both."""

import errno

import pyarrow as pa
import pytest

import bamquery
from bamquery import dbapi
from bamquery.errors import InternalError, StorageError, foreign_errors
from bamquery.flight.flight_errors import flight_error
from bamquery.relations.relation import Relation
from bamquery.session import result
from bamquery.sql_frontend import statement_binder as statements
from bamquery.storage.database.database import Database

SQL = "SELECT i + 1 AS j FROM t"


@pytest.fixture
def con():
    with bamquery.connect() as con:
        con.execute("CREATE TABLE t AS SELECT range AS i FROM range(3)")
        yield con


def failing(error):
    def fail(*arguments, **options):
        raise error

    return fail


FOREIGN = [
    ValueError("odd"),
    OverflowError("large"),
    pa.ArrowInvalid("offsets"),
    KeyError("k"),
    AssertionError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    TypeError("kind"),
]


@pytest.mark.parametrize("error", FOREIGN, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["bind", "lower", "run", "convert"])
def test_a_fault_below_a_statement_is_an_internal_error_with_the_statement(con, monkeypatch, error, where):
    target, name = {
        "bind": (statements, "bind_query"),
        "lower": (result, "lower"),
        "run": (result, "optimized_plan"),
        "convert": (result, "_to_arrow"),
    }[where]
    monkeypatch.setattr(target, name, failing(error))
    with pytest.raises(bamquery.InternalError) as caught:
        con.sql(SQL).fetchall()
    assert caught.value.__cause__ is error
    assert caught.value.sql == SQL
    assert SQL in str(caught.value)
    assert type(error).__name__ in str(caught.value)
    assert "report" in str(caught.value)
    monkeypatch.undo()
    assert con.sql(SQL).fetchall() == [(1,), (2,), (3,)]


def test_what_the_system_refuses_is_a_storage_error(con, monkeypatch):
    refused = OSError(errno.EIO, "Input/output error", "/there")
    monkeypatch.setattr(result, "_to_arrow", failing(refused))
    with pytest.raises(StorageError, match="Input/output") as caught:
        con.sql(SQL).fetchall()
    assert str(caught.value.path) == "/there"
    assert caught.value.__cause__ is refused


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ImportError("no pandas"), SystemExit(3)])
def test_what_is_not_about_the_statement_stays_what_it_is(con, monkeypatch, error):
    monkeypatch.setattr(result, "_to_arrow", failing(error))
    with pytest.raises(type(error)):
        con.sql(SQL).fetchall()


def test_misuse_from_python_stays_what_it_is(con):
    with pytest.raises(TypeError, match="params"):
        con.sql("SELECT ?", 5)
    with pytest.raises(TypeError, match="params"):
        con.execute("SELECT ?", "text")
    with pytest.raises(TypeError):
        con.sql(5)
    with pytest.raises(TypeError):
        con.table(5)
    with pytest.raises(ValueError, match="if_exists"):
        con.load("x", "y.csv", if_exists="sometimes")
    with pytest.raises(ValueError, match="own"), foreign_errors(takes_arguments=True):
        raise ValueError("own")
    with pytest.raises(InternalError), foreign_errors(takes_arguments=True):
        raise pa.ArrowInvalid("not own")


def test_what_a_callback_raises_is_what_the_query_raises(con):
    class OwnError(Exception):
        pass

    con.on_progress(failing(OwnError("stop")), interval=0.01)
    with pytest.raises(OwnError):
        con.sql("SELECT count(*) FROM range(300000000) a WHERE range % 7 = 3").fetchall()


@pytest.mark.parametrize("work", ["vacuum", "check", "optimize", "load", "tables", "register"])
def test_other_ways_in_have_no_foreign_errors_either(con, monkeypatch, work):
    for name in ("vacuum", "check", "table", "table_names", "create_table"):
        monkeypatch.setattr(Database, name, failing(OverflowError("large")))
    monkeypatch.setattr("bamquery.connection.connection.python_source", failing(OverflowError("large")))
    ways = {
        "vacuum": con.vacuum,
        "check": con.check,
        "optimize": lambda: con.optimize("t"),
        "load": lambda: con.load("u", pa.table({"x": [1]})),
        "tables": lambda: con.tables,
        "register": lambda: con.register("u", pa.table({"x": [1]})),
    }
    with pytest.raises(InternalError, match="OverflowError: large"):
        ways[work]()


def test_a_long_statement_is_cut_in_the_text_only(con, monkeypatch):
    monkeypatch.setattr(statements, "bind_query", failing(ValueError("odd")))
    text = "SELECT " + ", ".join(map(str, range(5000)))
    with pytest.raises(InternalError) as caught:
        con.sql(text)
    assert caught.value.sql == text
    assert len(str(caught.value)) < 2300


def test_other_faces_have_classes_for_it(con, monkeypatch):
    error = InternalError("odd", SQL)
    assert flight_error(error) is None  # a client learns nothing of the server's faults
    monkeypatch.setattr(Relation, "run", failing(error))
    with dbapi.connect(":memory:") as other, pytest.raises(dbapi.InternalError):
        other.cursor().execute("SELECT 1").fetchall()


@pytest.mark.parametrize("digits", [309, 4301, 20_000])
def test_numbers_that_no_type_holds_are_the_statements_fault(con, digits):
    for text in ("SELECT {}", "SELECT -{}", "SELECT i FROM t LIMIT {}", "SELECT 1 + {} AS x"):
        with pytest.raises(bamquery.SqlError, match=r"digits|LIMIT|whole number"):
            con.sql(text.format("9" * digits)).fetchall()
