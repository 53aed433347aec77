"""Columns whose rows are picked late, over a stand-in for libcudf: what frames of them become is what frames
of copied columns do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, SortKey

ROWS = 40
FIELDS = [Field("n", pa.int64()), Field("word", pa.large_string()), Field("plain", pa.int64())]
NUMBERS = [None if i % 7 == 0 else i for i in range(ROWS)]
WORDS = ["pear", "fig", "pear", "12"]
"""Of a dictionary of two fragments' values: one is there twice."""
CODES = [4 if i % 5 == 0 else i % 4 for i in range(ROWS)]
WORD = ColumnRef(1, "word", pa.large_string())


def late_frame(device: Any, *, nulls: bool = True) -> Any:
    """A number that is late, a word of a dictionary, and a number that is there."""
    from bamquery.engine.cuda.cache.late_columns import Dictionary, LateColumn, RowPlaces
    from bamquery.engine.cuda.frames import make_frame

    kernels = device.kernels
    codes = CODES if nulls else [code % 4 for code in CODES]
    batch = pa.record_batch(
        [pa.array(NUMBERS, pa.int64()), pa.array(codes, pa.int32()), pa.array(range(ROWS), pa.int64())],
        names=["n", "codes", "plain"],
    )
    number, places, plain = device.from_arrow(batch).columns
    (values,) = device.from_arrow(pa.record_batch([pa.array(WORDS, pa.large_string())], names=["w"])).columns
    whole = RowPlaces.run(kernels, 0, ROWS, whole=True)
    dictionary = Dictionary(values, pa.array(WORDS, pa.large_string()))
    word = LateColumn(kernels, values, RowPlaces.listed(places, nulls=nulls), dictionary)
    return make_frame([LateColumn(kernels, number, whole), word, plain], ROWS)


def copied(device: Any, frame: Any) -> Any:
    """The same with columns that are there."""
    from bamquery.engine.cuda.frames import make_frame

    return make_frame(list(frame.columns), frame.rows)


def rows(device: Any, frame: Any, fields: list[Field] = FIELDS) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = device.to_arrow(frame, fields).to_pylist()
    return found


def is_late(frame: Any) -> list[bool]:
    from bamquery.engine.cuda.cache.late_columns import LateColumn

    return [isinstance(one, LateColumn) for one in frame.held]


def positions(device: Any, numbers: list[int]) -> Any:
    from bamquery.engine.cuda.frames import CudaPositions

    batch = pa.record_batch([pa.array(numbers, pa.int32())], names=["p"])
    return CudaPositions(device.from_arrow(batch).columns[0])


@pytest.mark.parametrize("seed", range(40))
def test_frames_of_them_become_what_frames_of_copies_do(device: Device[Any], seed: int) -> None:
    """Rows taken, some of them null, slices, frames behind each other and beside each other, in any order."""
    choose = random.Random(seed)
    late = late_frame(device)
    now, empty = copied(device, late), False
    for _ in range(choose.randint(1, 6)):
        count = late.rows
        what = choose.randrange(6)
        if what == 0:
            some = [choose.randrange(count) for _ in range(choose.randint(1, 30))] if count else []
            late, now = (device.take(one, positions(device, some)) for one in (late, now))
        elif what == 1:
            some = [choose.randint(-1, count - 1) for _ in range(choose.randint(1, 30))]
            late, now = (device.take_or_null(one, np.array(some, np.int64)) for one in (late, now))
        elif what == 2:
            start, length = choose.randint(0, count), choose.randint(0, count)
            late, now = (device.slice(one, start, length) for one in (late, now))
        elif what == 3:
            start = choose.randint(0, count)
            late, now = (device.concatenate([one, device.slice(one, start, 9), one]) for one in (late, now))
        elif what == 4:
            order = choose.sample(range(3), 3)
            chosen = [device.select(one, order) for one in (late, now)]
            back = [order.index(place) for place in range(3)]
            late, now = (device.select(one, back) for one in chosen)
        else:
            bound = Literal(pa.scalar(choose.randint(0, ROWS), pa.int64()))
            below = Call("less", (ColumnRef(2, "plain", pa.int64()), bound), pa.bool_())
            late, now = (device.filter(one, below) for one in (late, now))
        empty |= not late.rows
    assert is_late(late)[:2] == [True, True] or empty  # rows of nothing are nulls
    assert late.rows == now.rows
    assert rows(device, late) == rows(device, now)


@pytest.mark.parametrize("nulls", [True, False])
def test_groups_by_values_of_a_dictionary(device: Any, nulls: bool) -> None:
    """Equal values are one group wherever they are in the dictionary, and so are all nulls."""
    late = late_frame(device, nulls=nulls)
    late = device.take_or_null(late, np.arange(-3 if nulls else 0, ROWS).clip(-1))
    count = AggregateCall("count_star", (), pa.int64())
    fields = [Field("word", pa.large_string()), Field("count", pa.int64())]
    answers = []
    for frame in (late, copied(device, late)):
        grouped = device.aggregation([WORD], [count])
        answers.append(rows(device, grouped.final(grouped.partial(frame)), fields))
    assert answers[0] == answers[1]
    assert len(answers[0]) == 4 if nulls else 3


def test_groups_by_a_dictionary_of_floats(device: Any) -> None:
    """Two zeros are one, wherever they are in the dictionary."""
    from bamquery.engine.cuda.cache.late_columns import Dictionary, LateColumn, RowPlaces
    from bamquery.engine.cuda.frames import make_frame

    batch = pa.record_batch([pa.array([0.0, -0.0, 1.5])], ["x"])
    (values,) = device.from_arrow(batch).columns
    listed = RowPlaces.listed(positions(device, [1, 0, 2, 0, 1]).column, nulls=False)
    frame = make_frame([LateColumn(device.kernels, values, listed, Dictionary(values, batch.column(0)))], 5)
    grouped = device.aggregation(
        [ColumnRef(0, "x", pa.float64())], [AggregateCall("count_star", (), pa.int64())]
    )
    fields = [Field("x", pa.float64()), Field("count", pa.int64())]
    found = rows(device, grouped.final(grouped.partial(frame)), fields)
    assert found == [{"x": 0.0, "count": 4}, {"x": 1.5, "count": 1}]


def test_a_distinct_dictionary_needs_no_numbers(device: Any) -> None:
    from bamquery.engine.cuda.cache.late_columns import Dictionary, RowPlaces

    places = positions(device, [0, 2**31 - 1, 2, 3]).column
    (values,) = device.from_arrow(pa.record_batch([pa.array(["a", "b"])], ["w"])).columns
    listed = RowPlaces.listed(places, nulls=True)
    codes = Dictionary(values, pa.array(["a", "b"])).key_codes(device.kernels, listed, pytest.fail)
    assert codes.values() == [0, 2, 2, 2]


@pytest.mark.parametrize(
    "expression",
    [
        Call("equal", (WORD, Literal(pa.scalar("fig", pa.large_string()))), pa.bool_()),
        Call("is_null", (WORD,), pa.bool_()),
        Call("coalesce", (WORD, Literal(pa.scalar("none", pa.large_string()))), pa.large_string()),
    ],
    ids=["equal", "is null", "coalesce"],
)
def test_each_value_is_asked_once(device: Any, expression: Expression) -> None:
    late = late_frame(device)
    late = device.take_or_null(late, np.arange(-2, ROWS).clip(-1))
    fields = [Field("answer", expression.type)]
    found = [rows(device, device.evaluate([expression], one), fields) for one in (late, copied(device, late))]
    assert found[0] == found[1]


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("beyond", [True, False])
def test_kernels_look_dictionaries_up(
    device: Any, monkeypatch: pytest.MonkeyPatch, nulls: bool, beyond: bool
) -> None:
    """Conditions on words and numbers together are one kernel, whose rows the operators select, too.

    `beyond`: rows are null because they were taken from nowhere.
    """
    late = late_frame(device, nulls=nulls)
    if beyond:
        late = device.take_or_null(late, np.arange(-3, ROWS).clip(-1))
    below = Call("less", (ColumnRef(0, "n", pa.int64()), Literal(pa.scalar(30, pa.int64()))), pa.bool_())
    fig = Call("equal", (WORD, Literal(pa.scalar("fig", pa.large_string()))), pa.bool_())
    nothing = Call("is_null", (WORD,), pa.bool_())
    for condition in (
        Call("and", (below, fig), pa.bool_()),
        Call("or", (fig, below), pa.bool_()),
        Call("and", (below, Call("not", (fig,), pa.bool_())), pa.bool_()),
        Call("or", (Call("and", (fig, below), pa.bool_()), nothing), pa.bool_()),
    ):
        wanted = device.read_positions(device.matching_positions(condition, copied(device, late))).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(type(device), "_mask", None)
            found = device.read_positions(device.matching_positions(condition, late)).tolist()
        assert found == wanted
        assert found


def test_a_value_that_no_row_has_fails_nobody(device: Any) -> None:
    """One of the dictionary's numbers has no room in eight bits: rows are cast that do not have it."""
    from bamquery.engine.cuda.cache.late_columns import Dictionary, LateColumn, RowPlaces
    from bamquery.engine.cuda.frames import make_frame

    batch = pa.record_batch([pa.array([7, 300, 9], pa.int64())], ["n"])
    (values,) = device.from_arrow(batch).columns
    places = positions(device, [0, 2, 2, 0]).column
    listed = RowPlaces.listed(places, nulls=False)
    frame = make_frame([LateColumn(device.kernels, values, listed, Dictionary(values, batch.column(0)))], 4)
    narrow = Cast(ColumnRef(0, "n", pa.int64()), pa.int8())
    found = rows(device, device.evaluate([narrow], frame), [Field("n", pa.int8())])
    assert [row["n"] for row in found] == [7, 9, 9, 7]


def test_sorted_rows_stay_late(device: Any) -> None:
    late = late_frame(device)
    key = SortKey(ColumnRef(2, "plain", pa.int64()), descending=True)
    first = device.sort(late, [key], 3)
    assert is_late(first) == [True, True, False]
    assert rows(device, first) == rows(device, device.sort(copied(device, late), [key], 3))


def test_what_is_copied_once_is_kept(device: Any) -> None:
    late = device.take(late_frame(device), positions(device, [3, 1]))
    assert late.columns[0] is late.columns[0]
    assert late.columns[0].values() == [3, 1]
