"""Values at places of groups, searched for and sorted for, against numpy's sort of each group."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.ranks import _as_numbers, values_at

RANDOM = np.random.default_rng(7)


def _column(kind: str, rows: int) -> Any:
    numbers = RANDOM.integers(-50, 50, rows)
    if kind == "decimal":
        return pa.array([Decimal(int(n)).scaleb(-2) for n in numbers], pa.decimal128(30, 2))
    if kind == "wide":
        return pa.array([Decimal(int(n)) * 10**20 for n in numbers], pa.decimal128(38, 0))
    if kind == "double":
        values = numbers / 4
        values[RANDOM.random(rows) < 0.1] = np.nan
        return pa.array(values)
    if kind == "date":
        return pa.array(numbers.astype(np.int32), pa.date32())
    return pa.array([str(n) for n in numbers], pa.large_string())


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize("kind", ["decimal", "wide", "double", "date", "text"])
@pytest.mark.parametrize("counts", [[1000, 0, 2000, 1], [3, 0, 1, 5], [1, 0], [0], []])
@pytest.mark.parametrize("descending", [False, True])
def test_values_are_those_of_each_group_in_order(kind: str, counts: list[int], descending: bool) -> None:
    sizes = np.array(counts, np.int64)
    values = _column(kind, int(sizes.sum()))
    ranks = [np.maximum(sizes // 3, 0), np.maximum(sizes - 1, 0)]
    given = values_at(values, sizes, ranks, descending=descending)
    ends = np.cumsum(sizes)
    for rank, column in zip(ranks, given, strict=True):
        assert column.type == values.type
        for group in np.flatnonzero(sizes).tolist():
            own = values[int(ends[group] - sizes[group]) : int(ends[group])].to_pylist()
            own.sort(key=lambda v: (_is_nan(v), 0 if _is_nan(v) else v), reverse=descending)
            assert repr(column[group].as_py()) == repr(own[int(rank[group])])


@pytest.mark.parametrize("kind", ["decimal", "wide", "double", "date", "text"])
def test_what_has_numbers_in_its_order_is_found_by_these(kind: str) -> None:
    """Which sorts of values do not need."""
    values = _column(kind, 100)
    numbers = _as_numbers(values)
    assert (numbers is None) == (kind in {"wide", "text"})
    if numbers is not None:
        assert len(numbers) == len(values)
        given = [
            value for value in values.take(pa.array(np.argsort(numbers))).to_pylist() if not _is_nan(value)
        ]
        assert given == sorted(given)
