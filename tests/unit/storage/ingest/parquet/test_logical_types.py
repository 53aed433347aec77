"""Types of Parquet files that Arrow reads otherwise: answers are DuckDB's."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.errors import IngestError
from bamquery.storage.ingest import open_source
from tests.oracle import connect
from tests.unit.storage.ingest.small_parquet import int64_file

TIMESTAMP_MILLIS, TIMESTAMP_MICROS = 9, 10


@pytest.mark.parametrize("converted_type", [TIMESTAMP_MILLIS, TIMESTAMP_MICROS])
def test_timestamps_of_old_writers_are_local(tmp_path: Path, converted_type: int) -> None:
    path = tmp_path / "old.parquet"
    path.write_bytes(int64_file("t", converted_type, [0, 1_600_000_000_123, -1]))
    query = f"SELECT t, typeof(t) LIKE 'TIMESTAMP%ZONE' FROM '{path}'"
    with connect() as theirs, bamquery.connect(device="cpu") as ours:
        assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()


def test_timestamps_that_say_so_are_instants(tmp_path: Path) -> None:
    table = pa.table(
        {"t": pa.array([0, 1], pa.timestamp("ms", "UTC")), "l": pa.array([0, 1], pa.timestamp("us"))}
    )
    parquet.write_table(table, tmp_path / "x.parquet", version="1.0", store_schema=False)
    assert open_source(tmp_path / "x.parquet").schema.types == [pa.timestamp("ms", "UTC"), pa.timestamp("us")]


ROWS = """
SELECT i, INTERVAL (i) MONTH + INTERVAL (i * 2) DAY + INTERVAL (i * 1500) MILLISECOND AS v, 'x' || i AS s,
       CASE WHEN i % 3 = 0 THEN NULL ELSE INTERVAL (i) DAY END AS n
FROM range(1, 5000) t(i)
"""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v, n FROM {p} ORDER BY i LIMIT 20",
        "SELECT max(TIMESTAMP '2020-01-01' + v), count(n), count(*) FROM {p}",
        "SELECT n, s FROM {p} WHERE i BETWEEN 4000 AND 4010 ORDER BY i",
        "SELECT sum(epoch(n)) FROM {p}",
        "SELECT typeof(v) FROM {p} LIMIT 1",
    ],
)
def test_intervals(tmp_path: Path, query: str) -> None:
    with connect() as theirs, bamquery.connect(device="cpu") as ours:
        theirs.sql(f"COPY ({ROWS}) TO '{tmp_path}/x.parquet' (ROW_GROUP_SIZE 2048)")
        text = query.format(p=f"'{tmp_path}/x.parquet'")
        assert ours.sql(text).fetchall() == theirs.sql(text).fetchall()


def test_tables_have_no_intervals(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT INTERVAL 1 DAY AS v, 1 AS x) TO '{tmp_path}/x.parquet'")
    with pytest.raises(IngestError, match=r'column "v".*exclude'):
        open_source(tmp_path / "x.parquet")


def test_intervals_of_objects_have_microseconds() -> None:
    values = pa.array([(1, 2, 3_000_999), None, (0, 0, -1)], pa.month_day_nano_interval())
    source = open_source(pa.table({"v": values}), by_need=True)
    (batch,) = source.batches()
    assert batch.column(0).to_pylist() == [(1, 2, 3_000_000), None, (0, 0, -1000)]
    (batch,) = open_source(pa.table({"v": values.slice(1)}), by_need=True).batches()
    assert batch.column(0).to_pylist() == [None, (0, 0, -1000)]


def test_other_bytes_of_that_width_stay(tmp_path: Path) -> None:
    table = pa.table({"l": pa.array([[1]]), "b": pa.array([b"0" * 12], pa.binary(12))})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert open_source(tmp_path / "x.parquet", exclude=["l"]).schema.types == [pa.large_binary()]


def test_intervals_behind_nested_columns(tmp_path: Path) -> None:
    with connect() as theirs, bamquery.connect(device="cpu") as ours:
        theirs.sql(f"COPY (SELECT {{'a': 1, 'b': [2]}} AS s, INTERVAL 3 DAY AS v) TO '{tmp_path}/x.parquet'")
        query = f"SELECT v FROM '{tmp_path}/x.parquet'"
        assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()
