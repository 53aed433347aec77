"""Arrow memory that says what it must not is an error that names the column, by every way in; no crash."""

import pyarrow as pa
import pytest

import bamquery
from tests.fuzz.invalid_memory import INVALID

VALID = pa.array(["x", "y", "z", "w"])


def spoiled(name):
    array, spoil = INVALID[name]()
    table = pa.table({"good": VALID.slice(0, len(array)), "bad": array})
    spoil()
    return table


class Capsule:
    """What another library hands over."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def con():
    with bamquery.connect() as con:
        yield con


@pytest.mark.parametrize("name", INVALID)
def test_a_registered_table_is_refused_where_its_column_is_read(con, name):
    con.register("t", spoiled(name))
    counted = "SELECT count(*) FROM t WHERE bad IS NOT NULL"
    for query in ("SELECT bad FROM t", counted, "CREATE TABLE s AS FROM t"):
        with pytest.raises(bamquery.IngestError, match='"bad"'):
            con.sql(query).fetchall()
    assert len(con.sql("SELECT good FROM t").fetchall()) == len(spoiled(name))
    assert con.tables == []


@pytest.mark.parametrize("name", INVALID)
def test_a_stream_is_refused(con, name):
    table = spoiled(name)
    con.register("reader", pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    con.register("capsule", Capsule(table))
    for source in ("reader", "capsule"):
        with pytest.raises(bamquery.IngestError, match='"bad"'):
            con.sql(f"SELECT * FROM {source}").fetchall()
    with pytest.raises(bamquery.IngestError, match='"bad"'):
        con.load("t", table)
    assert con.tables == []


# Arrow's writer moves offsets that begin below zero.
@pytest.mark.parametrize("name", [name for name in INVALID if name != "string offset negative"])
def test_a_file_is_refused(con, name, tmp_path):
    table = spoiled(name)
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(bamquery.IngestError, match='"bad"'):
        con.sql(f"SELECT * FROM '{path}'").fetchall()


def test_a_table_is_validated_once(con, monkeypatch):
    looked = []
    monkeypatch.setattr("bamquery.storage.ingest.arrow.stream.validate", looked.append)
    con.register("t", pa.table({"a": ["x"], "b": [1]}))
    for _ in range(3):
        assert con.sql("SELECT a FROM t").fetchall() == [("x",)]
    assert len(looked) == 1
    assert con.sql("SELECT b, a FROM t").fetchall() == [(1, "x")]
    assert len(looked) == 2


def test_the_end_of_a_day_is_a_time(con):
    times = pa.array([0, 86_400_000_000]).cast(pa.time64("us"))
    con.register("t", pa.table({"a": times}))
    assert con.sql("SELECT a::VARCHAR FROM t").fetchall() == [("00:00:00",), ("24:00:00",)]
