"""Layouts survive JSON, and nothing else passes for one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.errors import CorruptionError
from bamquery.storage.format.layout import (
    ColumnLayout,
    DictionaryLayout,
    Extent,
    FragmentLayout,
    align,
    vector_count,
)

sizes = st.integers(0, 2**62)
extents = st.builds(Extent, sizes, sizes)
maybe_extents = st.none() | extents
dictionaries = st.builds(DictionaryLayout, sizes, maybe_extents, extents, sizes, sizes)
columns = st.builds(ColumnLayout, maybe_extents, maybe_extents, extents, st.none() | dictionaries)
layouts = st.builds(
    FragmentLayout,
    sizes,
    st.lists(columns, max_size=4).map(tuple),
    st.lists(st.tuples(extents, sizes), max_size=3).map(tuple),
)


@given(layouts)
def test_layouts_survive_json(layout: FragmentLayout) -> None:
    assert FragmentLayout.from_json(layout.to_json(), Path("f")) == layout


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["rows", "columns", "metadata", "values"]), inner)
    ),
)


@given(st.text() | st.just("[" * 100_000) | json_values.map(str))
def test_other_text_is_corruption(text: str) -> None:
    with pytest.raises(CorruptionError, match=r"the-file: its buffer layout"):
        FragmentLayout.from_json(text, Path("the-file"))


@pytest.mark.parametrize(
    ("rows", "vectors"), [(0, 0), (1, 1), (1023, 1), (1024, 1), (1025, 2), (4096, 4), (4097, 5)]
)
def test_vector_count(rows: int, vectors: int) -> None:
    assert vector_count(rows) == vectors


def test_align() -> None:
    assert [align(x) for x in (0, 1, 4095, 4096, 4097)] == [0, 4096, 4096, 4096, 8192]


def test_extents_of_a_column() -> None:
    parts = [Extent(i * 4096, 10) for i in range(5)]
    dictionary = DictionaryLayout(3, parts[3], parts[4], 0, 0)
    assert ColumnLayout(parts[0], parts[1], parts[2], dictionary).extents == tuple(parts)
    assert ColumnLayout(None, None, parts[2]).extents == (parts[2],)
    assert parts[1].end == 4106
