"""Long texts that come many times take little memory, and answers are the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from bamquery.storage.ingest import open_source
from bamquery.storage.ingest.parquet.dictionary_strings import small_slices
from bamquery.storage.ingest.sources.source import BATCH_BYTES

LONG = "é" * 500_000


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@pytest.mark.parametrize("plain", [False, True])
def test_a_few_bytes_that_are_many_texts(tmp_path: Path, kind: pa.DataType, plain: bool) -> None:
    values = [None if i % 7 == 3 else "short" if i % 7 else LONG for i in range(400)]
    if kind == pa.binary():
        values = [None if value is None else value.encode() for value in values]
    path = tmp_path / "x.parquet"
    table = pa.table({"s": pa.array(values, kind), "i": range(400), "t": [f"row {i}" for i in range(400)]})
    parquet.write_table(table, path, use_dictionary=not plain, compression="zstd", row_group_size=250)
    assert path.stat().st_size < 200_000
    found: list[object] = []
    for batch in open_source(path).batches(["i", "s"]):
        assert batch.nbytes <= 1.5 * BATCH_BYTES
        assert batch.column(0).to_pylist() == list(range(len(found), len(found) + batch.num_rows))
        found += batch.column(1).to_pylist()
    assert found == values


def test_short_texts_come_as_they_did(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"s": [f"text {i % 100}" for i in range(200_000)]}), path)
    rows = [batch.num_rows for batch in open_source(path).batches()]
    assert rows == [1 << 17, 200_000 - (1 << 17)]


def test_slices() -> None:
    third = "x" * (BATCH_BYTES // 3)
    whole = "y" * (2 * BATCH_BYTES)
    values = [third, third, third, third, whole, None, "z", whole, whole]
    batch = pa.record_batch({"s": pa.array(values).dictionary_encode(), "i": range(9)})
    slices = list(small_slices(batch, BATCH_BYTES))
    assert [piece.num_rows for piece in slices] == [3, 1, 1, 2, 1, 1]
    assert pa.Table.from_batches(slices)["s"].to_pylist() == values
