"""Numbers of groups: dense, and in order of first appearance, however they are found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.keys.grouping import group_rows

SIZES = (0, 1, 31, 4095, 4096, 16_383, 16_384, 50_000)


def _check(column: pa.Array) -> None:
    grouping = group_rows([column], len(column))
    values = column.to_pylist()
    order = list(dict.fromkeys(values))
    assert grouping.groups == len(order)
    assert grouping.keys[0].to_pylist() == order
    assert [order[code] for code in grouping.codes.tolist()] == values


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("distinct", [1, 3, 300, 20_000, 10**9])
def test_integers(rows: int, distinct: int) -> None:
    values = np.random.default_rng(rows).integers(-5, distinct, rows)
    _check(pa.array(values))
    _check(pa.array(values, mask=values % 7 == 0))


@pytest.mark.parametrize("rows", SIZES)
def test_a_value_that_comes_late(rows: int) -> None:
    values = np.zeros(rows, np.int64)
    values[rows * 9 // 10 :] = np.arange(len(values[rows * 9 // 10 :])) % 50
    _check(pa.array(values))


@pytest.mark.parametrize("rows", SIZES)
def test_single_letters(rows: int) -> None:
    letters = np.array(["R", "A", "N"])[np.random.default_rng(rows).integers(0, 3, rows)]
    _check(pa.array(letters, pa.large_string()))
    _check(pa.array([*letters, "ab", "", None], pa.large_string()))
    _check(pa.array([*letters, "x"], pa.large_string()).slice(1))
