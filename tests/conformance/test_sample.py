"""Samples that may hold little: the rows that are drawn do not depend on it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.execution import spill_files as spill
from bamquery.engine.operators.sample import reservoir
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.errors import CancelledError, StorageError

ROWS = 20_000
LIMIT = 90_000
TABLE = pa.table(
    {
        "row": np.arange(ROWS),
        "text": [None if i % 11 == 0 else f"text {i}" for i in range(ROWS)],
        "word": pa.array([f"word {i % 7}" for i in range(ROWS)]).dictionary_encode(),
    }
)
MANY = "SELECT row, text, word FROM t TABLESAMPLE 5000 ROWS REPEATABLE (3)"


@pytest.fixture
def connection(tmp_path: Path, device_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    for limit in ("FIRST_VECTORS", "CHUNK_VECTORS"):
        monkeypatch.setattr(scan_chunks, limit, 1)
    if device_name != "cpu":
        for limit in ("_FIRST_VECTORS", "_FIRST_ROWS", "_CHUNK_VECTORS"):
            monkeypatch.setattr(f"bamquery.engine.cuda.scan.scan.{limit}", 1)
    monkeypatch.setattr(reservoir, "_FEWEST_HELD", 100)
    with bamquery.connect(tmp_path / "db", device=device_name, threads=2) as found:
        found.load("t", TABLE)
        yield found


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return table.to_pylist()


@pytest.mark.parametrize("count", [2500, 7000, ROWS - 1, ROWS + 1])
def test_a_number_of_rows_is_the_same_with_any_limit(
    connection: Connection, count: int, tmp_path: Path
) -> None:
    sql = f"SELECT row, text, word FROM t TABLESAMPLE {count} ROWS REPEATABLE (7)"
    wanted = connection.sql(sql)
    rows = _rows(wanted.to_arrow())
    assert wanted.profile.spilled == 0
    assert len(rows) == min(count, ROWS)
    before = sorted((tmp_path / "db").rglob("*"))
    for limit in (LIMIT, 10 * LIMIT):
        connection.sql(f"SET memory_limit = '{limit} B'")
        drawn = connection.sql(sql)
        assert _rows(drawn.to_arrow()) == rows
        assert (drawn.profile.spilled > 0) == (limit == LIMIT or count > 2500)
        assert drawn.profile.peak_memory <= limit
    assert sorted((tmp_path / "db").rglob("*")) == before


@pytest.mark.parametrize("method", ["bernoulli", "system"])
def test_a_share_of_the_rows_is_drawn_as_they_come(connection: Connection, method: str) -> None:
    sql = f"SELECT row, text, word FROM t TABLESAMPLE {method}(60%) REPEATABLE (7)"
    rows = _rows(connection.sql(sql).to_arrow())
    connection.sql(f"SET memory_limit = '{LIMIT} B'")
    drawn = connection.sql(sql)
    assert _rows(drawn.to_arrow()) == rows
    assert ROWS // 4 < len(rows) < ROWS
    assert (drawn.profile.spilled, drawn.profile.peak_memory) == (0, 0)


def test_a_full_disk(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.sql(f"SET memory_limit = '{LIMIT} B'")
    written = spill.BatchFile.write_batch
    calls: list[int] = []

    def full() -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def failing(file: Any, batch: pa.RecordBatch) -> None:
        calls.append(1)
        with file._failures():
            if len(calls) == 60:
                full()
        written(file, batch)

    with monkeypatch.context() as patch:
        patch.setattr(spill.BatchFile, "write_batch", failing)
        with pytest.raises(StorageError, match="SET memory_limit"):
            connection.sql(MANY).to_arrow()
    assert len(connection.sql(MANY).to_arrow()) == 5000


@pytest.mark.parametrize("step", [2, 150])
def test_cancelled_by_another_thread(
    connection: Connection, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.sql(f"SET memory_limit = '{LIMIT} B'")
    written = spill.BatchFile.write_batch
    result = connection.sql(MANY).run()
    steps: list[int] = []

    def counted(file: Any, batch: pa.RecordBatch) -> None:
        steps.append(1)
        if len(steps) == step:
            canceller = threading.Thread(target=result.cancel)
            canceller.start()
            canceller.join()
        written(file, batch)

    monkeypatch.setattr(spill.BatchFile, "write_batch", counted)
    with pytest.raises(CancelledError):
        list(result)
    assert step <= len(steps) <= step + 2  # rows, and their keys
