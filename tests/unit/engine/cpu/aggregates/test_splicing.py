"""States whose keys hardly overlap: put together where they do, they have the groups that merging gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation, CpuGroups
from bamquery.engine.cpu.aggregates.splicing import _overlaps, shared_groups
from bamquery.plan.expressions import AggregateCall, ColumnRef

KEY, TEXT, VALUE = (
    ColumnRef(0, "k", pa.int32()),
    ColumnRef(1, "t", pa.large_string()),
    ColumnRef(2, "v", pa.int64()),
)
CALLS = [
    AggregateCall("sum", (VALUE,), pa.decimal128(38, 0)),
    AggregateCall("first", (VALUE,), pa.int64()),
    AggregateCall("max", (TEXT,), pa.large_string()),
    AggregateCall("mode", (TEXT,), pa.large_string()),
]


def _frames(parts: Sequence[Sequence[int | None]]) -> list[pa.RecordBatch]:
    frames, row = [], 0
    for keys in parts:
        values = list(range(row, row + len(keys)))
        texts = [None if value % 5 == 0 else f"t{value % 7}" for value in values]
        columns: list[Any] = [
            pa.array(keys, pa.int32()),
            pa.array(texts, pa.large_string()),
            pa.array(values),
        ]
        frames.append(pa.record_batch(columns, ["k", "t", "v"]))
        row += len(keys)
    return frames


def _rows(aggregation: CpuAggregation, states: Sequence[CpuGroups]) -> list[list[str]]:
    return [[repr(row) for row in aggregation.final(state).to_pylist()] for state in states]


def _check(keys: Sequence[ColumnRef], parts: Sequence[Sequence[int | None]]) -> list[CpuGroups] | None:
    aggregation = CpuAggregation(keys, CALLS)
    states = [aggregation.partial(frame) for frame in _frames(parts)]
    wanted = _rows(aggregation, [aggregation.merge(states)])[0]
    with ThreadPoolExecutor(2) as pool:
        spliced = aggregation.splice(states, lambda step, items: (one for one in pool.map(step, items)))
    assert (spliced is None) == (aggregation.splice(states) is None)
    if spliced is not None:
        assert len(spliced) == len(states)
        assert sorted(row for rows in _rows(aggregation, spliced) for row in rows) == sorted(wanted)
        assert aggregation.splice(spliced) is not None
    return spliced


LONG = [[*range(40), 39, 39], [39, 40, *range(40, 80)], [*range(79, 120)]]


@pytest.mark.parametrize("keys", [[KEY], [KEY, TEXT], [TEXT, KEY]], ids=["number", "and text", "behind text"])
def test_rows_in_the_order_of_a_key(keys: list[ColumnRef]) -> None:
    assert _check(keys, LONG) is not None
    assert _check(keys, [*LONG, [], [200, 300]]) is not None
    assert _check(keys, list(reversed(LONG))) is not None
    shuffled = [random.Random(3).sample(part, len(part)) for part in LONG]
    assert _check(keys, shuffled) is not None


def test_states_that_share_nothing_stay_as_they_are() -> None:
    aggregation = CpuAggregation([KEY], CALLS[:1])
    states = [aggregation.partial(frame) for frame in _frames([[1, 2], [7, 9], [3, 4]])]
    spliced = aggregation.splice(states)
    assert spliced is not None
    assert all(one is other for one, other in zip(spliced, states, strict=True))


@pytest.mark.parametrize(
    "parts",
    [[[1, 2, 3], [2, 3, 4]], [[*range(50)], [None, *range(49, 90)]], [[1, 90], [*range(2, 89)]]],
    ids=["many shared", "a null", "one around the other"],
)
def test_others_are_merged(parts: list[list[int | None]]) -> None:
    assert _check([KEY], parts) is None
    assert _check([TEXT], parts) is None
    assert CpuAggregation([], CALLS[:1]).splice([]) is None


@given(st.lists(st.lists(st.integers(-30, 30), max_size=60), min_size=1, max_size=4))
def test_groups_are_those_of_merging(parts: list[list[int | None]]) -> None:
    _check([KEY], parts)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 6)), max_size=6))
def test_what_lies_within_several_spans(drawn: list[tuple[int, int]]) -> None:
    spans = [[low, low + length] for low, length in drawn]
    inside = {n for n in range(-10, 20) if sum(low <= n <= high for low, high in spans) > 1}
    found = _overlaps(spans)
    assert {n for low, high in found for n in range(low, high + 1)} >= inside
    assert all(one[1] < other[0] for one, other in pairwise(found))
    for low, high in found:
        assert {low, high} <= inside


def test_keys_that_are_no_numbers_tell_nothing() -> None:
    texts = pa.array(["a", "b"], pa.large_string())
    assert shared_groups([[texts], [texts]]) is None
