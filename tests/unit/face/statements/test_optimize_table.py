"""OPTIMIZE … CLUSTER BY, where the rows are more than memory_limit sorts in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import bamquery
from bamquery.engine.execution.memory_budget import MemoryBudget
from bamquery.errors import CatalogError, ConflictError

ROWS = 100_000


def rows() -> pa.Table:
    keys = [(i * 7919) % 50_000 for i in range(ROWS)]
    floats = [None if k % 100 == 3 else float("nan") if k % 100 == 7 else k / 3 for k in keys]
    return pa.table(
        {
            "k": keys,
            "f": pa.array(floats, pa.float64()),
            "s": pa.array([None if k % 11 == 0 else f"text {k:>6}" for k in keys]),
            "d": pa.array([f"kind {k % 5}" for k in keys]).dictionary_encode(),
            "n": range(ROWS),
        }
    )


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with bamquery.connect(tmp_path / "db", threads=2) as connection:
        connection.load("t", rows())
        yield connection


@pytest.mark.parametrize("keys", [["k"], ["f", "K"], ["d", "s"]])
def test_rows_are_sorted_by_files_as_they_are_in_memory(con: Any, keys: list[str]) -> None:
    con.execute("CREATE TABLE small AS SELECT * FROM t")
    con.optimize("t", cluster_by=keys)
    con.set(memory_limit="4MB")  # k and the order take 2.4 MB
    report = con.optimize("small", cluster_by=keys)
    con.set(memory_limit=None)
    assert report.rows_written == ROWS
    assert report.fragments_after > 1
    expected, found = (con.sql(f"SELECT * FROM {name}").to_arrow() for name in ("t", "small"))
    order = pc.is_null(expected["f"], nan_is_null=True)
    assert pc.equal(order, pc.is_null(found["f"], nan_is_null=True)).to_pylist() == [True] * ROWS
    for name in ("k", "s", "d", "n"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    assert con.check().clean


def test_what_allocators_keep_is_given_back_under_the_limit(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(MemoryBudget, "relieve", lambda self: limits.append(self.limit))
    con.execute("SET memory_limit = '100MB'")
    con.execute("OPTIMIZE t CLUSTER BY (k)")
    assert set(limits) == {100_000_000}


def test_the_statement_does_so_too(con: Any) -> None:
    con.execute("SET memory_limit = '4MB'")
    con.execute("OPTIMIZE t CLUSTER BY (k)")
    found = con.sql("SELECT k, n FROM t").to_arrow()
    assert found["k"].to_pylist() == sorted(found["k"].to_pylist())
    assert sorted(found["n"].to_pylist()) == list(range(ROWS))


def test_rules_of_columns_stay(con: Any) -> None:
    con.execute("CREATE TABLE r (k BIGINT NOT NULL, v INTEGER DEFAULT 7)")
    con.execute("INSERT INTO r (k) SELECT k FROM t")
    con.execute("ALTER TABLE r ADD COLUMN w INTEGER DEFAULT 5")
    con.set(memory_limit="4MB")
    con.optimize("r", cluster_by=["k"])
    con.set(memory_limit=None)
    con.execute("INSERT INTO r (k) VALUES (-1)")
    query = "SELECT count(*), min(v), max(v), min(w), max(w) FROM r"
    assert con.execute(query).fetchone() == (ROWS + 1, 7, 7, 5, 5)
    with pytest.raises(bamquery.BamQueryError, match="NOT NULL"):
        con.execute("INSERT INTO r VALUES (NULL, 1, 1)")


def test_a_column_that_is_not_there(con: Any) -> None:
    con.set(memory_limit="4MB")
    with pytest.raises(CatalogError, match='has no column "kk"'):
        con.optimize("t", cluster_by=["kk"])
    assert con.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)


def test_an_append_meanwhile_wins(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.storage.tables.writer import TableWriter

    write, other = TableWriter.write, []

    def writing(self: TableWriter, batch: pa.RecordBatch) -> None:
        write(self, batch)
        if not other:
            other.append(True)
            with con.cursor() as cursor:
                cursor.execute("INSERT INTO t (k) VALUES (-5)")

    con.set(memory_limit="4MB")
    monkeypatch.setattr(TableWriter, "write", writing)
    with pytest.raises(ConflictError):
        con.optimize("t", cluster_by=["k"])
    monkeypatch.undo()
    assert con.execute("SELECT count(*), min(k) FROM t").fetchone() == (ROWS + 1, -5)
    con.vacuum()
    assert con.check().clean
