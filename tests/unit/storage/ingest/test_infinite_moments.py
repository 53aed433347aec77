"""Infinite dates and timestamps, which only DuckDB has."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.infinite_moments import first_infinite
from bamquery.storage.ingest.opening import open_source

_DAY_LIMIT, _LIMIT = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize("name", ["infinity", "-infinity"])
@pytest.mark.parametrize(
    "kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
)
def test_files_of_duckdb(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        query = f"SELECT * FROM (VALUES (1, NULL), (2, '2024-01-01'::{kind}), (3, '{name}'::{kind})) t(a, d)"
        connection.sql(f"COPY ({query}) TO '{path}'")
    source = open_source(path)
    assert [batch.num_rows for batch in source.batches(["a"])] == [3]
    with pytest.raises(IngestError, match=rf'row 3 of row group 0, column "d": .* has no {name} here'):
        list(source.batches())


def test_the_first_one_is_found() -> None:
    for kind, numbers, largest in (
        (pa.date32(), pa.int32(), _DAY_LIMIT),
        (pa.timestamp("us"), pa.int64(), _LIMIT),
    ):

        def array(*values: int | None, kind: pa.DataType = kind, numbers: pa.DataType = numbers) -> object:
            return pa.array(values, numbers).cast(kind)

        assert first_infinite(array(1, None, -largest, largest)) == (2, "-infinity")
        assert first_infinite(array(largest, 1, -largest)) == (0, "infinity")
        assert first_infinite(array(-largest - 1, 5, -largest)) == (2, "-infinity")
        assert first_infinite(array(largest - 1, 1 - largest, None)) is None
        assert first_infinite(array(None)) is None
        assert first_infinite(array()) is None


def test_other_types_are_not_looked_at() -> None:
    assert first_infinite(pa.array([_LIMIT])) is None
