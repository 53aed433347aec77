"""Pairs of equal keys: of one key or several, with nulls that equal none or each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.recursion.by_column.key_index import KeyIndex
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import TEXT, Column, column_from_arrow
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-2, 2),
    pa.int64(): st.integers(-1, 2) | st.sampled_from([-(2**63), 2**63 - 1, 2**40]),
    pa.uint64(): st.integers(0, 1) | st.integers(2**64 - 2, 2**64 - 1),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1e300]),
    pa.bool_(): st.booleans(),
    TEXT: st.text("ab", max_size=1),
}
KEY = st.tuples(st.sampled_from(sorted(VALUES, key=str)), st.booleans())
Rows = list[tuple[Any, ...]]


def columns(rows: Rows, kinds: list[pa.DataType], texts: TextCodes) -> list[Column]:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return [column_from_arrow(pa.array(own, kind), texts) for own, kind in zip(values, kinds, strict=True)]


def are_equal(one: Any, other: Any, nulls_equal: bool) -> bool:
    return nulls_equal and other is None if one is None else bool(one == other)


@given(keys=st.lists(KEY, max_size=3), data=st.data())
def test_pairs_are_those_of_equal_keys(keys: list[tuple[pa.DataType, bool]], data: st.DataObject) -> None:
    kinds, nulls_equal = [kind for kind, _ in keys], [equal for _, equal in keys]
    some = st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in kinds)), max_size=6)
    build, probe = data.draw(some), [*data.draw(some), tuple(None for _ in kinds)]
    texts = TextCodes()
    index = KeyIndex(columns(build, kinds, texts), kinds, nulls_equal, len(build))
    order = list(range(len(build))) if index.order is None else index.order.tolist()
    expected = [
        [place for place in order if all(map(are_equal, row, build[place], nulls_equal))] for row in probe
    ]
    asked: list[int] = []
    for unmatched in (False, True):
        matches = index.find(columns(probe, kinds, texts), len(probe), asked.append, unmatched=unmatched)
        probed = list(range(len(probe))) if matches.probed is None else matches.probed.tolist()
        found = [order[place] if place >= 0 else None for place in matches.found.tolist()]
        assert list(zip(probed, found, strict=True)) == [
            (row, place) for row, places in enumerate(expected) for place in places or [None] * unmatched
        ]
        assert index.is_unique or asked.pop() == len(found)
    has_match = index.has_match(columns(probe, kinds, texts), len(probe))
    assert has_match.tolist() == [bool(places) for places in expected]


def test_what_is_told_of_too_many_pairs_stops_them() -> None:
    index = KeyIndex([], [], [], 1000)

    def refuse(pairs: int) -> None:
        assert pairs == 3_000
        raise LeftToDeviceError

    with pytest.raises(LeftToDeviceError):
        index.find([], 3, refuse, unmatched=False)


def test_keys_with_more_values_than_numbers_are_left_to_a_device() -> None:
    kinds = [pa.float64()] * 4
    values = np.arange(1 << 16) + 0.5
    with pytest.raises(LeftToDeviceError):
        KeyIndex([Column(values, None)] * 4, kinds, [False] * 4, len(values))
