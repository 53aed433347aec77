"""Rows told apart by their bytes: nulls, zeros, bounds, and all of them given back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.recursion.by_column.packed_rows import PackedRows
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import Column, column_from_arrow, columns_to_arrow

KINDS = (pa.int8(), pa.float64(), pa.bool_())
ROW = st.tuples(
    st.none() | st.integers(-3, 3),
    st.none() | st.sampled_from([0.0, -0.0, 1.5]),
    st.none() | st.booleans(),
)


def columns(rows: list[tuple[Any, ...]], kinds: tuple[pa.DataType, ...]) -> list[Column]:
    return [
        column_from_arrow(pa.array(c, k), TextCodes())
        for c, k in zip(zip(*rows, strict=True), kinds, strict=True)
    ]


def drained(seen: PackedRows, kinds: tuple[pa.DataType, ...]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for part in seen.drain():
        arrays = [columns_to_arrow([c], k, TextCodes()).to_pylist() for c, k in zip(part, kinds, strict=True)]
        found += zip(*arrays, strict=True)
    return found


@given(st.lists(st.lists(ROW, min_size=1, max_size=6), max_size=6))
def test_each_row_is_new_once(steps: list[list[tuple[Any, ...]]]) -> None:
    seen, known = PackedRows(KINDS), list[tuple[Any, ...]]()
    for rows in steps:
        expected = []
        for place, row in enumerate(rows):
            if row not in known:
                known.append(row)
                expected.append(place)
        places = seen.add(columns(rows, KINDS))
        assert (list(range(len(rows))) if places is None else places.tolist()) == expected
        assert len(seen) == len(known)
    assert sorted(map(repr, drained(seen, KINDS))) == sorted(
        repr((whole, None if real is None else real + 0.0, truth)) for whole, real, truth in known
    )
    assert len(seen) == 0


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 20)), max_size=12), st.booleans())
def test_rows_beyond_the_others_are_looked_for_when_others_come(
    steps: list[tuple[int, int]], depth_first: bool
) -> None:
    """Depths that go on and sometimes back, as a step's bounds tell."""
    kinds = (pa.int64(), pa.int32())
    seen, known = PackedRows(kinds), set[tuple[int, int]]()
    depth = 0
    for more, start in steps:
        depth += more
        rows = [(depth, start), (depth, start + 1), (depth, start)]
        if not depth_first:
            rows = [(other, own) for own, other in rows]
        places = seen.add(columns(rows, kinds))
        found = rows if places is None else [rows[place] for place in places]
        assert found == [row for row in dict.fromkeys(rows) if row not in known]
        known.update(rows)
    assert sorted(drained(seen, kinds)) == sorted(known)


def test_a_null_is_no_number_beyond_the_others() -> None:
    seen = PackedRows((pa.int32(),))
    null = column_from_arrow(pa.array([None], pa.int32()), TextCodes())
    assert seen.add([null]) is None
    far = Column(null.values, null.valid, 5, 5)
    places = seen.add([far])
    assert places is not None
    assert places.tolist() == []


def test_many_columns() -> None:
    kinds = (pa.int8(),) * 20
    seen = PackedRows(kinds)
    rows: list[tuple[Any, ...]] = [(1,) * 19 + (None,), (None,) + (1,) * 19, (1,) * 20]
    assert seen.add(columns(rows, kinds)) is None
    places = seen.add(columns(rows, kinds))
    assert places is not None
    assert len(places) == 0
    assert sorted(map(repr, drained(seen, kinds))) == sorted(map(repr, rows))
