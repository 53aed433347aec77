"""`bamquery.sql` and its like: a default connection, the caller's variables, and what TAB shows."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Iterator

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection import module_functions as module


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test begins and ends without a default connection."""
    yield
    for connection in module._connections.values():
        connection.close()
    module._connections.clear()


def test_functions_of_the_module(tmp_path) -> None:
    assert bamquery.sql("SELECT $a + 1", {"a": 41}).fetchall() == [(42,)]
    bamquery.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert bamquery.table("t").fetchall() == bamquery.query("FROM t").fetchall() == [(1,)]
    assert bamquery.load("u", pa.table({"a": [1, 2]})) == 2
    assert bamquery.default_connection().tables == ["t", "u"]
    bamquery.register("v", pa.table({"b": [3]}))
    assert bamquery.sql("SELECT b FROM v").fetchall() == [(3,)]
    bamquery.unregister("v")
    with pytest.raises(bamquery.SqlError, match='no table "v"'):
        bamquery.sql("FROM v")
    for name, write in (("read_parquet", "to_parquet"), ("read_json", "to_json"), ("read_csv", "to_csv")):
        path = tmp_path / name
        assert getattr(bamquery.table("t"), write)(path) == 1
        assert getattr(bamquery, name)(str(path)).fetchall() == [(1,)]
    bamquery.table("t").to_arrow_file(tmp_path / "x.arrow")
    assert bamquery.read_arrow(tmp_path / "x.arrow").fetchall() == [(1,)]


def test_objects_of_python() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    rows = [(1, "x"), (2, None)]
    assert bamquery.from_arrow(table).fetchall() == rows
    assert bamquery.from_pandas(table.to_pandas()).fetchall() == rows
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert bamquery.from_polars(frame).fetchall() == bamquery.from_polars(frame.lazy()).fetchall() == rows
    assert bamquery.from_df(frame).fetchall() == bamquery.from_df(table).fetchall() == rows
    assert bamquery.from_dict({"a": [1, 2], "b": ["x", None]}).fetchall() == rows
    assert bamquery.from_dicts([{"a": 1, "b": "x"}, {"a": 2}]).fetchall() == rows
    assert bamquery.values((1, "x"), (2, None)).fetchall() == rows
    assert bamquery.values([(1, "x"), (2, None)]).fetchall() == rows
    assert bamquery.values([1, "x"]).fetchall() == bamquery.values(1, "x").fetchall() == rows[:1]
    with pytest.raises(TypeError, match="a frame of pandas, not Table"):
        bamquery.from_pandas(table)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes rows"):
        bamquery.values([1], 2)
    for wrong in ("x.parquet", [1, 2]):
        with pytest.raises(TypeError, match="an object that has rows"):
            bamquery.from_df(wrong)
    with pytest.raises(bamquery.IngestError, match="object"):
        bamquery.from_arrow(5)
    with pytest.raises(bamquery.IngestError, match="columns of one length"):
        bamquery.from_dict({"a": [1], "b": [1, 2]})


def test_variables_of_the_caller_are_found() -> None:
    frame = pd.DataFrame({"a": [1, 2]})  # noqa: F841 (SQL names it)
    assert bamquery.sql("SELECT sum(a) FROM frame").fetchall() == [(3,)]
    assert bamquery.execute("FROM frame WHERE a > 1").fetchall() == [(2,)]
    first = bamquery.sql("SELECT 1 AS a")
    assert first.sql("FROM self JOIN frame USING (a)").fetchall() == [(1,)]
    assert first.filter("a IN (SELECT a FROM frame)").fetchall() == [(1,)]
    assert first.select("(SELECT max(a) FROM frame) AS most").fetchall() == [(2,)]


def test_threads_share_one_default_connection() -> None:
    found: list[bamquery.Connection] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait(30)
        found.append(bamquery.default_connection())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len({id(connection) for connection in found}) == 1


def test_a_closed_default_connection_is_made_anew() -> None:
    first = bamquery.default_connection()
    bamquery.sql("CREATE TABLE t AS SELECT 1 AS a")
    first.close()
    assert bamquery.default_connection() is not first
    assert bamquery.default_connection().tables == []


def test_another_default_connection(tmp_path) -> None:
    with bamquery.connect(tmp_path / "own") as own:
        bamquery.set_default_connection(own)
        bamquery.sql("CREATE TABLE t AS SELECT 1 AS a")
        assert own.tables == ["t"]
    with pytest.raises(bamquery.BamQueryError, match="closed"):
        bamquery.set_default_connection(own)
    with pytest.raises(TypeError, match="not str"):
        bamquery.set_default_connection("own")  # type: ignore[arg-type]


_FORK = """
import os, bamquery
bamquery.sql("CREATE TABLE t AS SELECT 1 AS a")
path = bamquery.default_connection()._session.path
child = os.fork()
if child == 0:
    try:
        assert bamquery.default_connection()._session.path != path
        assert bamquery.default_connection().tables == []
        assert bamquery.sql("SELECT 1").fetchall() == [(1,)]
        bamquery.default_connection().close()
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert bamquery.table("t").fetchall() == [(1,)]
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tab_shows_what_users_need_and_nothing_else() -> None:
    assert dir(bamquery) == sorted(bamquery.__all__)
    for name in bamquery.__all__:
        assert getattr(bamquery, name).__doc__
    # A room that is imported becomes an attribute of the package, in place of what has its name.
    assert not {room.name for room in pkgutil.iter_modules(bamquery.__path__)} & set(bamquery.__all__)
