"""Rows told apart, as numbers and as bytes: nulls, bounds that grow either way, all of them given back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.operators.recursion.by_column.distinct_rows import DistinctRows
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    TEXT,
    Column,
    column_from_arrow,
    columns_to_arrow,
)
from bamquery.engine.operators.recursion.by_row.values import DATE

INTEGER, BIGINT = pa.int32(), pa.int64()
TABLES: list[list[tuple[pa.DataType, st.SearchStrategy[Any]]]] = [
    [(INTEGER, st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1))],
    [(BIGINT, st.integers(-3, 3)), (pa.bool_(), st.none() | st.booleans())],
    [(TEXT, st.none() | st.text("ab", max_size=2)), (pa.uint8(), st.none() | st.integers(0, 255))],
    [(HUGEINT, st.integers(-1, 1) | st.integers(-(2**62), 2**62)), (INTEGER, st.none() | st.integers(0, 9))],
    [(BIGINT, st.none() | st.integers(-(2**63), 2**63 - 1)), (INTEGER, st.integers(0, 1))],
    [(pa.uint64(), st.integers(2**64 - 3, 2**64 - 1) | st.integers(0, 2))],
    [(pa.float64(), st.none() | st.sampled_from([0.0, -0.0, 1.5])), (DATE, st.integers(-2, 2))],
]


def columns(rows: list[tuple[Any, ...]], kinds: list[pa.DataType], texts: TextCodes) -> list[Column]:
    values = zip(zip(*rows, strict=True), kinds, strict=True)
    return [
        column_from_arrow(pa.array(own, INTEGER).view(kind) if kind == DATE else pa.array(own, kind), texts)
        for own, kind in values
    ]


def drained(seen: DistinctRows, kinds: list[pa.DataType], texts: TextCodes) -> list[str]:
    found: list[str] = []
    for part in seen.drain():
        arrays = [columns_to_arrow([own], kind, texts) for own, kind in zip(part, kinds, strict=True)]
        plain = [array.view(INTEGER) if array.type == DATE else array for array in arrays]
        found += map(row_text, zip(*(array.to_pylist() for array in plain), strict=True))
    return sorted(found)


def row_text(row: tuple[Any, ...]) -> str:
    """A row as it is compared: of two zeros one, of whole numbers one kind."""
    whole = [int(value) if isinstance(value, Decimal) else value for value in row]
    return str([value + 0.0 if isinstance(value, float) else value for value in whole])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: " ".join(str(kind) for kind, _ in table))
@given(data=st.data())
def test_each_row_is_new_once(
    table: list[tuple[pa.DataType, st.SearchStrategy[Any]]], data: st.DataObject
) -> None:
    kinds, texts = [kind for kind, _ in table], TextCodes()
    rows_of_step = st.lists(st.tuples(*(values for _, values in table)), min_size=1, max_size=6)
    seen, known = DistinctRows(kinds), list[str]()
    for rows in data.draw(st.lists(rows_of_step, max_size=6)):
        expected = []
        for place, row in enumerate(map(row_text, rows)):
            if row not in known:
                known.append(row)
                expected.append(place)
        places = seen.add(columns(rows, kinds, texts))
        assert (list(range(len(rows))) if places is None else places.tolist()) == expected
        assert len(seen) == len(known)
    assert drained(seen, kinds, texts) == sorted(known)
    assert len(seen) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_depths_that_grow_need_few_layouts(sign: int) -> None:
    """Either way, and with rows of before among them."""
    kinds, texts = [BIGINT, INTEGER], TextCodes()
    seen, known = DistinctRows(kinds), set[tuple[int, int]]()
    for depth in range(300):
        rows = [(depth % 7, sign * depth), (1, sign * depth), (depth % 7, sign * (depth // 2))]
        places = seen.add(columns(rows, kinds, texts))
        found = rows if places is None else [rows[place] for place in places.tolist()]
        assert found == [row for row in dict.fromkeys(rows) if row not in known]
        known.update(rows)
    assert seen.is_coded
    assert drained(seen, kinds, texts) == sorted(map(row_text, known))


def test_bounds_that_are_wider_than_the_values_do_no_harm() -> None:
    kinds, texts = [BIGINT, BIGINT], TextCodes()
    seen = DistinctRows(kinds)
    wide = [own._replace(low=-(2**63), high=2**63 - 1) for own in columns([(1, 2), (3, 4)], kinds, texts)]
    assert seen.add(wide) is None
    assert seen.is_coded
    again = seen.add(wide)
    assert again is not None
    assert again.tolist() == []


def test_rows_that_fit_no_number_are_bytes_from_then_on() -> None:
    kinds, texts = [BIGINT, BIGINT], TextCodes()
    seen = DistinctRows(kinds)
    assert seen.add(columns([(1, 2), (1, 3)], kinds, texts)) is None
    assert seen.is_coded
    places = seen.add(columns([(1, 3), (2**62, -(2**62))], kinds, texts))
    assert places is not None
    assert places.tolist() == [1]
    assert not seen.is_coded
    assert len(seen) == 3
