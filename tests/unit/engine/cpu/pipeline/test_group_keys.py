"""Groups by places in dictionaries, which programs number, are those of the strings there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.pipeline import group_keys
from bamquery.plan.expressions import AggregateCall, ColumnRef

_STRING = pa.large_string()
_KEYS = (ColumnRef(0, "a", _STRING), ColumnRef(1, "b", pa.int64()))
_VALUE = ColumnRef(2, "v", pa.int64())
_CALLS = (
    AggregateCall("count", (), pa.int64()),
    AggregateCall("sum", (_VALUE,), pa.decimal128(38, 0)),
    AggregateCall("max", (_VALUE,), pa.int64()),
)
_LATE = AggregateCall("first", (_KEYS[0],), _STRING)
"""What no program computes, so that each row's group is asked for."""


def _frame(values: list[str | None], index: pa.DataType, rows: int = 3000) -> pa.RecordBatch:
    random = np.random.default_rng(len(values))
    places = random.integers(0, max(len(values), 1), rows)
    missing = (random.random(rows) < 0.1) | (not values)
    column = pa.DictionaryArray.from_arrays(pa.array(places, index, mask=missing), pa.array(values, _STRING))
    other = pa.array(random.integers(0, 3, rows), mask=random.random(rows) < 0.2)
    return pa.RecordBatch.from_arrays(
        [column, other, pa.array(random.integers(0, 99, rows))], ["a", "b", "v"]
    )


def _groups(calls: tuple[AggregateCall, ...], *frames: pa.RecordBatch, programs: bool) -> list[object]:
    aggregation = CpuAggregation(_KEYS, calls, programs=programs)
    merged = aggregation.merge([aggregation.partial(frame) for frame in frames])
    return aggregation.final(merged).to_pylist()


@pytest.mark.parametrize("index", [pa.int32(), pa.int8()])
@pytest.mark.parametrize(
    "values", [["A", "N", "R"], ["x", "x", "y"], ["x", None, "y"], [None], [], ["", "a", "\x00"]]
)
@pytest.mark.parametrize("calls", [_CALLS, (*_CALLS, _LATE)])
def test_groups_are_those_of_strings(
    index: pa.DataType, values: list[str | None], calls: tuple[AggregateCall, ...]
) -> None:
    """Of dictionaries whose values repeat, are null or are used by no row; of frames with other ones."""
    frames = [_frame(values, index), _frame(["R", "B", "A"], index), _frame(["R"], index).slice(7, 900)]
    plain = pa.RecordBatch.from_arrays(
        [pa.array(["B", None], _STRING), *frames[0].slice(0, 2).columns[1:]], "abv"
    )
    for some in ([frames[0]], frames, [frames[1], plain], [plain, frames[1]]):
        assert _groups(calls, *some, programs=True) == _groups(calls, *some, programs=False)


def test_programs_number_places() -> None:
    """And of values that are too many, or may be the same, rows are numbered otherwise."""
    compiled = CpuAggregation(_KEYS, _CALLS)._compiled
    assert compiled is not None
    for values, is_numbered in (
        (["A", "N", "R"], True),
        (["x", "x"], False),
        (["x", None], False),
        ([], False),
    ):
        assert (compiled.group(_frame(values, pa.int32())) is not None) == is_numbered, values
    many = [str(i) for i in range(group_keys._MOST_VALUES + 1)]
    assert compiled.group(_frame(many, pa.int32())) is None
    assert compiled.group(_frame(many[1:], pa.int32())) is not None
