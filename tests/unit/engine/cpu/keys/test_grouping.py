"""Numbers of groups: dense, and in order of first appearance, however they are found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.keys import grouping as grouping_module
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.keys.hashing import hash_rows

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


def _strings(rows: int, distinct: int, length: int) -> list[str | None]:
    chosen = np.random.default_rng(rows + distinct).integers(0, distinct, rows)
    return [None if one % 11 == 3 else "x" * int(one % length) + str(one) * int(one % 3) for one in chosen]


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("distinct", [1, 30, 10**6])
@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary()])
def test_strings(rows: int, distinct: int, kind: pa.DataType) -> None:
    texts = pa.array(_strings(rows, distinct, 90), pa.large_string()).cast(kind)
    _check(texts)
    _check(texts.slice(rows // 3))


def test_strings_beside_numbers() -> None:
    texts = pa.array(_strings(5000, 40, 9), pa.large_string())
    numbers = pa.array(np.arange(5000) % 3)
    grouping = group_rows([texts, numbers], 5000)
    pairs = list(zip(texts.to_pylist(), numbers.to_pylist(), strict=True))
    order = list(dict.fromkeys(pairs))
    assert [order[code] for code in grouping.codes.tolist()] == pairs
    assert list(zip(*(key.to_pylist() for key in grouping.keys), strict=True)) == order


def test_different_strings_of_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash is of eight places of a long string, which may differ between them."""
    asked = []
    own = grouping_module._number_by_dictionary
    monkeypatch.setattr(
        grouping_module, "_number_by_dictionary", lambda column: asked.append(column) or own(column)
    )
    middle = [f"{'a' * 77}{i}{'b' * 77}" for i in range(10)]
    assert len({int(one) for one in hash_rows([pa.array(middle, pa.large_string())], 10)}) == 1
    _check(pa.array([*middle, *middle, None, ""], pa.large_string()))
    assert len(asked) == 1
    _check(pa.array(["short", *middle[:1], "short"], pa.large_string()))
    assert len(asked) == 1


def test_all_hashes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = lambda offsets, data: np.zeros(len(offsets) - 1, np.uint64)  # noqa: E731
    monkeypatch.setattr("bamquery.engine.cpu.keys.hashing.native.hash_strings", zeros)
    _check(pa.array(["", None, "a", "b", "ab", "a", "abc", "abx", ""], pa.large_string()))
