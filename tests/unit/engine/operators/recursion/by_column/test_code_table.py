"""Numbers are told apart, whether slots are theirs or found by a hash; tables grow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.recursion.by_column import code_table
from bamquery.engine.operators.recursion.by_column.code_table import CodeTable

SPANS = (20, 1 << 40, 1 << 62)
"""Of numbers that are slots, and of numbers that are hashed."""


@pytest.mark.parametrize("span", SPANS)
@given(data=st.data())
def test_each_number_has_the_place_that_it_came_in(span: int, data: st.DataObject) -> None:
    numbers = st.integers(0, span - 1) | st.integers(0, 9)
    table, known = CodeTable(span), dict[int, int]()
    for step in data.draw(st.lists(st.lists(numbers, min_size=1, max_size=9), max_size=5)):
        expected = []
        for place, code in enumerate(step):
            if code not in known:
                known[code] = len(known) + 1
                expected.append(place)
        new = table.add(np.array(step))
        assert (list(range(len(step))) if new is None else new.tolist()) == expected
    asked = [*known, *data.draw(st.lists(numbers, min_size=1, max_size=9))]
    assert table.places(np.array(asked)).tolist() == [known.get(code, 0) for code in asked]
    assert table.codes.tolist() == list(known)
    assert len(table) == len(known)


@pytest.mark.parametrize("span", [1 << 20, 1 << 62])
def test_many_numbers(span: int) -> None:
    """More than the first slots have room for, many of them in each other's way."""
    random = np.random.default_rng(7)
    table, known = CodeTable(span), dict[int, int]()
    for _ in range(30):
        codes = random.integers(0, min(span, 1 << 40), 3000) & ~np.int64(0x3FF)
        for code in codes.tolist():
            known.setdefault(code, len(known) + 1)
        table.add(codes)
    assert table.codes.tolist() == list(known)
    asked = random.permutation(table.codes)
    assert table.places(asked).tolist() == [known[code] for code in asked.tolist()]
    assert not table.places(np.array([1, 3, 5])).any()


def test_what_has_many_of_its_numbers_becomes_a_table_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_table, "_SMALL", 1)
    table = CodeTable(1 << 14)
    codes = np.random.default_rng(3).permutation(1 << 14)
    for start in range(0, len(codes), 500):
        assert table.add(codes[start : start + 500]) is None
    assert table.add(codes) is not None
    assert table.nbytes < 40 * len(codes)
    assert table.places(codes).tolist() == list(range(1, len(codes) + 1))


@pytest.mark.parametrize("span", [1 << 16, 1 << 62])
def test_memory_is_known_before(span: int) -> None:
    table = CodeTable(span)
    codes = np.random.default_rng(5).permutation(1 << 16)
    for start in range(0, len(codes), 700):
        some = codes[start : start + 700]
        announced = table.nbytes_with(len(some))
        table.add(some)
        assert table.nbytes <= announced
