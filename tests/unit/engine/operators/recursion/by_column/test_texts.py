"""Texts and their numbers: those that were read and those that were computed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.recursion.by_column import texts as module
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import TEXT
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError

STEP = st.tuples(st.booleans(), st.lists(st.none() | st.text("abé", max_size=2), max_size=5))


@given(st.lists(STEP, max_size=6))
def test_equal_texts_have_equal_numbers(steps: list[tuple[bool, list[str | None]]]) -> None:
    texts, known = TextCodes(), dict[str, int]()
    for is_read, some in steps:
        codes = texts.codes_of(pa.array(some, TEXT)) if is_read else texts.codes_of_computed(some)
        for text, code in zip(some, codes.tolist(), strict=True):
            if text is not None:
                assert known.setdefault(text, code) == code
        missing = np.array([text is None for text in some], np.bool_)
        assert texts.to_arrow(codes, missing).to_pylist() == some
    assert sorted(known.values()) == list(range(len(texts)))
    places = np.array([*known.values()], np.int32)
    assert texts.to_list(places) == list(known)
    assert texts.to_arrow(places, None).to_pylist() == list(known)


def test_nulls_alone_are_no_text() -> None:
    texts = TextCodes()
    codes = texts.codes_of(pa.array([None, None], TEXT))
    assert len(texts) == 0
    assert texts.to_list(codes) == ["", ""]
    assert texts.to_arrow(codes, np.array([True, True])).to_pylist() == [None, None]


def test_long_texts_and_many_are_left_to_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = TextCodes()
    with pytest.raises(LeftToDeviceError):
        texts.codes_of_computed(["x" * 2000])
    monkeypatch.setattr(module, "_MOST_LISTED", 3)
    with pytest.raises(LeftToDeviceError):
        texts.codes_of_computed(["a", "b", "c", "d"])
