"""No statement keeps a version of a table beyond its answer: VACUUM could not remove it."""

from __future__ import annotations

import gc

import pytest

import bamquery
from bamquery.storage.tables.snapshot import Snapshot

STATEMENTS = [
    "SELECT * FROM t WHERE a > 1 ORDER BY a",
    "SELECT count(*) FROM v x, v y",
    "WITH c AS (SELECT * FROM t) SELECT * FROM c JOIN c d USING (a) JOIN c e USING (a)",
    "SELECT a, count(*) FROM t GROUP BY ROLLUP (a) UNION ALL SELECT 1, 2 FROM t",
    "SELECT * FROM t WHERE a IN (SELECT a FROM t WHERE a < 3)",
    "WITH RECURSIVE r(i) AS (SELECT a FROM t UNION SELECT i + 1 FROM r WHERE i < 5) SELECT * FROM r",
    "INSERT INTO t SELECT a + 1 FROM t",
    "CREATE OR REPLACE TABLE u AS SELECT * FROM t",
    "EXPLAIN ANALYZE SELECT sum(a) FROM t",
    "DESCRIBE t",
    "SUMMARIZE t",
]


def _snapshots() -> list[Snapshot]:
    return [found for found in gc.get_objects() if isinstance(found, Snapshot)]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_a_garbage_collection(sql: str) -> None:
    with bamquery.connect(threads=2) as con:
        con.sql("CREATE TABLE t AS SELECT range AS a FROM range(4); CREATE VIEW v AS SELECT a FROM t")
        gc.collect()
        before = {id(found) for found in _snapshots()}
        gc.disable()
        try:
            con.sql(sql).fetchall()
            held = [found for found in _snapshots() if id(found) not in before]
        finally:
            gc.enable()
        assert held == []
