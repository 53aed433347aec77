"""Rows of batches: all ways to take them give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.frames import batch_bytes, take_batch, take_batch_or_null
from bamquery.engine.cpu.kernels import boolean_values, booleans

ROWS = 2000


def _batch() -> pa.RecordBatch:
    texts = pa.array([None if n % 7 == 0 else "x" * (n % 5) for n in range(ROWS)], pa.large_string())
    numbers = pa.array([None if n % 11 == 0 else n for n in range(ROWS)])
    return pa.RecordBatch.from_arrays([texts, numbers, texts.dictionary_encode()], names=["0", "1", "2"])


@pytest.mark.parametrize("step", [2, 13, 500])
@pytest.mark.parametrize("order", ["ascending", "descending", "twice"])
def test_positions(step: int, order: str) -> None:
    batch = _batch().slice(3)
    positions = np.delete(np.arange(batch.num_rows), np.arange(0, batch.num_rows, step))
    if order == "descending":
        positions = positions[::-1].copy()
    elif order == "twice":
        positions[1] = positions[0]
    wanted = batch.take(pa.array(positions))
    assert take_batch(batch, positions).to_pydict() == wanted.to_pydict()


def test_missing_rows() -> None:
    batch = _batch()
    found = take_batch_or_null(batch, np.array([-1, 5, -1, ROWS - 1]))
    wanted = batch.take(pa.array([None, 5, None, ROWS - 1], pa.int64()))
    assert found.to_pydict() == wanted.to_pydict()


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 33])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 40])
def test_booleans(start: int, rows: int) -> None:
    flags = [None if n % 5 == 0 else n % 3 == 0 for n in range(start + rows + 3)]
    column = pa.array(flags, pa.bool_()).slice(start, rows)
    assert boolean_values(column).tolist() == [flag is True for flag in flags[start : start + rows]]
    known = column.fill_null(True)
    assert booleans(boolean_values(known)).equals(pa.array(known.to_pylist(), pa.bool_()))
    assert booleans(boolean_values(column), column.is_valid()).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.int32(), pa.date32(), pa.decimal128(38, 0), pa.timestamp("us"), pa.large_string()]
)
@pytest.mark.parametrize("values", [[], [None, None], [None] * 16 + ["1"] * 16], ids=len)
def test_bytes_are_what_arrow_says(kind: pa.DataType, values: list[str | None]) -> None:
    column: Any = pa.array([value and int(value) for value in values], pa.int64())
    column = column.cast(kind if kind == pa.timestamp("us") else pa.int32()).cast(kind)
    batch = pa.record_batch([column, column], ["a", "b"])
    assert batch_bytes(batch) == batch.nbytes
    if len(values) > 16:  # of no rows Arrow counts a byte
        assert batch_bytes(batch.slice(8, 16)) == batch.slice(8, 16).nbytes
