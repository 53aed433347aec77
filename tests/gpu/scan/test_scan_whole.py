"""Queries whose columns a GPU reads whole give the CPU's answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery

ROWS = 300_000
QUESTIONS = [
    "SELECT count(*), sum(i), min(d), max(f), sum(n) FROM t",
    "SELECT s, count(*), sum(d) FROM t WHERE f < 0.7 AND n > 2 AND s <> 'word 3' GROUP BY s ORDER BY s",
    "SELECT i, s, d, day FROM t WHERE f < 0.01 AND b ORDER BY i",
    "SELECT count(*), sum(t.d) FROM t JOIN few ON t.n = few.k WHERE few.name LIKE '%odd' AND t.i IS NOT NULL",
    "SELECT few.name, day, max(i) FROM t JOIN few ON t.n = few.k WHERE s IN ('word 1', 'word 2') "
    "GROUP BY ALL ORDER BY ALL LIMIT 20",
    "SELECT b, day, count(*) FROM t WHERE s LIKE '%7' OR s IS NULL GROUP BY ALL ORDER BY ALL",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(1)
    numbers = random.integers(0, 1000, ROWS)
    some = random.random(ROWS) < 0.1
    table = pa.table(
        {
            "i": pa.array(numbers * 1_000_003, mask=some),
            "n": pa.array((numbers % 11).astype(np.int32)),
            "s": pa.array([f"word {n % 20}" for n in numbers], mask=random.random(ROWS) < 0.02),
            "d": pa.array([Decimal(int(n)).scaleb(-2) for n in numbers], pa.decimal128(12, 2)),
            "f": pa.array(random.random(ROWS)),
            "day": pa.array((numbers % 30).astype(np.int32)).cast(pa.date32()),
            "b": pa.array(numbers % 3 == 0, mask=some),
        }
    )
    few = pa.table(
        {"k": pa.array(range(11), pa.int32()), "name": [f"{'odd' if k % 2 else 'even'}" for k in range(11)]}
    )
    folder = tmp_path_factory.mktemp("whole") / "db.bq"
    with bamquery.connect(folder, device="cpu") as con:
        con.load("t", table)
        con.load("few", few)
    return folder


def _notes(relation: bamquery.Relation) -> list[str]:
    return [note for scan in relation.profile.scans for note in scan.notes]


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("limit", [None, "200MiB"])
def test_answers(folder: Path, sql: str, limit: str | None) -> None:
    with bamquery.connect(folder, device="cpu") as con:
        wanted = con.sql(sql).to_arrow()
    with bamquery.connect(folder, device="cuda:0", gpu_cache_limit=0, gpu_memory_limit=limit) as con:
        for _ in range(3):
            relation = con.sql(sql)
            assert relation.to_arrow() == wanted
        notes = _notes(relation)
        # Booleans with nulls have no such reader.
        reads_whole = any("read whole" in note for note in notes)
        assert reads_whole == ("b " not in sql and "b," not in sql), notes
        assert ("few" not in sql) or any("by the processor" in note for note in notes), notes


def test_few_of_many_rows_are_not_worth_it(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0", gpu_cache_limit=0) as con:
        for _ in range(3):
            relation = con.sql("SELECT i, s FROM t WHERE f < 0.5 LIMIT 3")
            assert relation.to_arrow().num_rows == 3
        assert not _notes(relation)
