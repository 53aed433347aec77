"""Layouts survive JSON, and nothing else passes for one."""

import json
from pathlib import Path
from typing import Any

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
checksums = st.integers(0, 2**32 - 1)
extents = st.builds(Extent, sizes, sizes)
maybe_extents = st.none() | extents
dictionaries = st.builds(DictionaryLayout, sizes, maybe_extents, extents, checksums, checksums)
columns = st.builds(ColumnLayout, maybe_extents, maybe_extents, extents, st.none() | dictionaries)
layouts = st.builds(
    FragmentLayout,
    sizes,
    st.lists(columns, max_size=4).map(tuple),
    st.lists(st.tuples(extents, checksums), max_size=3).map(tuple),
)


@given(layouts)
def test_layouts_survive_json(layout: FragmentLayout) -> None:
    assert FragmentLayout.from_json(layout.to_json(), Path("f")) == layout


WHOLE = {"rows": 5, "columns": [{"values": [0, 8]}, {"values": [4096, -8]}], "metadata": [[0, 64, 1]]}


def test_a_column_is_parsed_when_it_is_asked_for() -> None:
    layout = FragmentLayout.from_json(json.dumps(WHOLE), Path("the-file"))
    assert layout.columns[0] == ColumnLayout(None, None, Extent(0, 8))
    assert layout.columns[0] is layout.columns[-2]
    assert layout.columns[:1] == (layout.columns[0],)
    assert len(layout.columns) == 2
    for _ in range(2):
        with pytest.raises(CorruptionError, match=r"the-file: its buffer layout .*-8 is not a size"):
            layout.columns[1]
    with pytest.raises(IndexError):
        layout.columns[2]


PACKED = {"divisor": 1, "origin": 0, "has_nulls": False, "cells": [0, 8], "lists": None, "plain_bytes": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": {"values": [0, 8]}},
        {"columns": ["packed"]},
        {"columns": [[0, 8]]},
        {"lists": [0, 8]},
        {"columns": [{"values": [0, 8], "packed": PACKED}], "lists": [0, 8]},
        {"columns": [{"values": [0, 8], "packed": PACKED}, {"values": [0, 8]}]},
        {"metadata": [[0, 64, 1 << 32]]},
    ],
    ids=str,
)
def test_what_cannot_be_of_any_column_is_found_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(CorruptionError, match="its buffer layout"):
        FragmentLayout.from_json(json.dumps(WHOLE | wrong), Path("f"))


@pytest.mark.parametrize("name", ["values_crc", "offsets_crc"])
def test_a_checksum_has_32_bits(name: str) -> None:
    """Readers of dictionaries compare with it as such."""
    values = {"size": 1, "values": [0, 8], "values_crc": 1, "offsets": None, "offsets_crc": 1}
    for crc, fits in (((1 << 32) - 1, True), (1 << 32, False)):
        text = json.dumps(WHOLE | {"columns": [{"values": [0, 8], "dictionary": values | {name: crc}}]})
        columns = FragmentLayout.from_json(text, Path("f")).columns
        if fits:
            assert getattr(columns[0].dictionary, name) == crc
        else:
            with pytest.raises(CorruptionError, match="4294967296 is not a CRC-32C"):
                columns[0]


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
