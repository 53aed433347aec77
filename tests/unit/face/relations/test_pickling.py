"""Connections and relations as bytes: elsewhere, over the same versions, or an error that says why."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bamquery
from bamquery import col
from bamquery.errors import BamQueryError, CatalogError


@pytest.fixture
def con(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "db", threads=2, memory_limit="100MB") as connection:
        connection.sql("CREATE TABLE t AS SELECT range AS n, range % 3 AS kind FROM range(1000)")
        connection.sql("CREATE TABLE u AS SELECT * FROM (VALUES (0, 'a'), (1, 'b')) AS u(kind, name)")
        yield connection


def queries(con: bamquery.Connection) -> list[bamquery.Relation]:
    t, u = con.table("t"), con.table("u")
    return [
        t,
        t.filter(col("n") > 10).join(u, "kind", how="left").aggregate(s="sum(n)", by="name"),
        t.select(w=col("n").sum().over("kind", "n", rows=(-3, 0))).order("w").limit(5),
        con.sql("SELECT $a + n AS x, $b AS b FROM t", {"a": 5, "b": "it's"}),
        con.sql(
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT * FROM r"
        ),
        con.sql("SELECT kind, count(*) FROM t GROUP BY ROLLUP (kind)"),
        con.sql("SELECT * FROM t WHERE kind IN (SELECT kind FROM u) EXCEPT SELECT 3, 0"),
        con.values((1, None), (2, "x")),
        con.sql("DESCRIBE t"),
        t.sample(10, seed=1),
        con.sql("SELECT rowid, x.* FROM t x WHERE rowid < 5"),
        t.take([3, 7, 900]),
    ]


def test_the_same_rows_of_the_same_versions(con) -> None:
    for relation in queries(con):
        before = sorted(map(repr, relation.fetchall()))
        data = pickle.dumps(relation)
        con.sql("INSERT INTO t VALUES (5000, 0)")
        again = pickle.loads(data)
        assert again.columns == relation.columns
        assert again.types == relation.types
        assert sorted(map(repr, again.fetchall())) == before
        assert again._session.settings == con.settings
        again._session.close()


_ELSEWHERE = """
import pickle, sys
relation = pickle.loads(sys.stdin.buffer.read())
print(relation.fetchall(), relation._session.settings.threads)
"""


def test_in_another_process(con) -> None:
    relation = con.table("t").aggregate("count(*)", "sum(n)")
    data = pickle.dumps(relation)
    con.sql("INSERT INTO t VALUES (5000, 0)")
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE], input=data, capture_output=True, timeout=120)
    assert done.stdout.decode().strip() == "[(1000, 499500)] 2", done.stderr.decode()


def test_what_is_pickled_together_stays_together(con) -> None:
    other, t, u = pickle.loads(pickle.dumps((con, con.table("t"), con.table("u"))))
    assert len(t.join(u, "kind")) == 667
    assert other.sql("SELECT count(*) FROM t").fetchall() == [(1000,)]
    assert other.settings == con.settings
    assert t.sql_query() == con.table("t").sql_query()
    assert t.alias == "t"
    other.close()
    with pytest.raises(BamQueryError, match="closed"):
        t.fetchall()
    assert len(con.table("t")) == 1000


def test_versions_that_vacuum_took(con) -> None:
    data = pickle.dumps(con.table("t"))
    con.sql("INSERT INTO t VALUES (5000, 0)")
    con.vacuum()
    with pytest.raises(CatalogError, match=r'version 1 of table "t".*not there any more.*VACUUM'):
        pickle.loads(data)
    data = pickle.dumps(con.table("u"))
    con.sql("DROP TABLE u; VACUUM; CREATE TABLE u AS SELECT 'another' AS a")
    with pytest.raises(CatalogError, match='version 1 of table "u"'):
        pickle.loads(data)


def test_a_database_that_is_gone(con, tmp_path: Path) -> None:
    data = pickle.dumps(con.table("t")), pickle.dumps(con)
    con.close()
    (tmp_path / "db").rename(tmp_path / "elsewhere")
    for one in data:
        with pytest.raises(bamquery.StorageError, match="create=False"):
            pickle.loads(one)


def test_what_cannot_be_pickled_says_why(con, tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    pq.write_table(table, tmp_path / "x.parquet")
    con.register("registered", table)
    for relation, why in (
        (con.from_arrow(table), "not in the database"),
        (con.sql("FROM registered"), "not in the database"),
        (con.table("t").join(con.sql('SELECT 1 AS n, * FROM "table"'), "n"), "not in the database"),
        (con.read_parquet(tmp_path / "x.parquet"), r"reads .*x\.parquet.*load it"),
        (con, r"registered \(registered\).*unregister"),
    ):
        with pytest.raises(BamQueryError, match=why):
            pickle.dumps(relation)
    con.unregister("registered")
    pickle.dumps(con)
    with bamquery.connect() as memory:
        for what in (memory, memory.sql("SELECT 1")):
            with pytest.raises(BamQueryError, match=":memory: goes with its connection"):
                pickle.dumps(what)
    relation = con.table("t")
    con.close()
    for what in (con, relation):
        with pytest.raises(BamQueryError, match="the connection is closed"):
            pickle.dumps(what)


def test_copies_are_the_relation_itself(con) -> None:
    relation = con.from_arrow(pa.table({"a": [1]}))
    assert copy.copy(relation) is relation
    assert copy.deepcopy({"a": relation})["a"] is relation


def test_expressions() -> None:
    made = (col("a") + 1 > 3) & col("b").is_in(["x", None])
    assert pickle.loads(pickle.dumps(made)).sql == made.sql
