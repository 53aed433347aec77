"""Groups by dictionaries' places are those by their values, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

FIRST = ["pear", "fig", "pear", "12"]
"""Of two fragments: one value is there twice."""
SECOND = ["A", "N", "R"]


def late(device: Any, values: list[str], places: np.ndarray[Any, Any], *, nulls: bool) -> Any:
    from bamquery.engine.cuda.cache.late_columns import Dictionary, LateColumn, RowPlaces

    batch = pa.record_batch([pa.array(places, pa.int32())], ["places"])
    array = pa.array(values, pa.large_string())
    (column,) = device.from_arrow(pa.record_batch([array], ["values"])).columns
    listed = RowPlaces.listed(device.from_arrow(batch).columns[0], nulls=nulls)
    return LateColumn(device.kernels, column, listed, Dictionary(column, array))


def expected(keys: list[tuple[Any, ...]]) -> tuple[list[int], list[tuple[Any, ...]]]:
    numbers: dict[tuple[Any, ...], int] = {}
    codes = [numbers.setdefault(key, len(numbers)) for key in keys]
    return codes, list(numbers)


@pytest.mark.parametrize("rows", [1, 40, 3000])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_groups(device: Any, monkeypatch: pytest.MonkeyPatch, rows: int, nulls: bool, count: int) -> None:
    from bamquery.engine.cuda.keys import grouping

    monkeypatch.setattr(grouping, "MANY_ROWS", 1)
    monkeypatch.setattr(grouping, "hash_groups", None)  # no table of rows is made
    random = np.random.default_rng(rows)
    columns, wanted = [], []
    for values in (FIRST, SECOND)[:count]:
        places = random.integers(0, len(values) + nulls, rows)
        columns.append(late(device, values, places, nulls=nulls))
        wanted.append([values[place].encode() if place < len(values) else None for place in places])
    found = grouping.group_rows(device.kernels, columns, rows)
    codes, keys = expected(list(zip(*wanted, strict=True)))
    assert found.codes.column.values() == codes
    assert found.codes.groups == len(keys)
    assert list(zip(*(column.values() for column in found.keys), strict=True)) == keys


def test_places_of_some_rows_are_not_copied(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.keys import grouping

    monkeypatch.setattr(grouping, "MANY_ROWS", 1)
    random = np.random.default_rng(3)
    kept = np.flatnonzero(random.random(4000) < 0.9)
    batch = pa.record_batch([pa.array(kept, pa.int32())], ["kept"])
    columns, wanted = [], []
    for values in (FIRST, SECOND):
        places = random.integers(0, len(values) + 1, 4000)
        whole = late(device, values, places, nulls=True)
        columns.append(
            whole.move(whole.places.take(device.kernels, device.from_arrow(batch).columns[0], nullify=False))
        )
        wanted.append([values[p].encode() if p < len(values) else None for p in places[kept]])
    copied = []
    gather = type(device.kernels).gather
    monkeypatch.setattr(
        type(device.kernels), "gather", lambda *a, **k: (copied.append(a[2].size()), gather(*a, **k))[1]
    )
    found = grouping.group_rows(device.kernels, columns, len(kept))
    codes, keys = expected(list(zip(*wanted, strict=True)))
    assert found.codes.column.values() == codes
    assert len(kept) not in copied
    assert list(zip(*(column.values() for column in found.keys), strict=True)) == keys


def test_many_combinations_are_hashed(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.keys import dense_rows, grouping

    monkeypatch.setattr(grouping, "MANY_ROWS", 1)
    monkeypatch.setattr(dense_rows, "_MOST_COMBINATIONS", 11)
    places = np.arange(100) % 3
    keys = [late(device, FIRST, places, nulls=False), late(device, SECOND[:2] * 2, places, nulls=False)]
    assert dense_rows.number_combinations(device.kernels, keys, 100) is None
    assert grouping.group_rows(device.kernels, keys, 100).codes.groups == 2  # two of three are equal
    assert dense_rows.number_combinations(device.kernels, keys * 3, 100) is None
