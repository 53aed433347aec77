"""Dictionaries of many chunks become one that is sorted, small and free of nulls."""

import math

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.fragments.dictionaries import Reindexer, plain_buffers, unify
from tests.unit.storage.random_columns import DICTIONARY_TYPES, assert_same, column, with_nulls

WORDS = pa.dictionary(pa.int8(), pa.large_string())


def coded(indices: list[int | None], values: list[str | None]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values, pa.large_string()))


def test_values_are_sorted_and_only_those_in_use() -> None:
    chunks = [
        coded([1, 0, None], ["pear", "apple", "unused"]),
        coded([0, 0], ["fig"]),
        coded([], ["nothing"]),
        coded([0, 1], ["apple", None]),
    ]
    values = unify(WORDS, chunks)
    assert values.to_pylist() == ["apple", "fig", "pear"]
    reindex = Reindexer(WORDS, values)
    assert [reindex(chunk).to_pylist() for chunk in chunks] == [[0, 2, None], [1, 1], [], [0, None]]
    assert reindex(chunks[0]).type == pa.int8()


def test_rows_under_nulls_do_not_count() -> None:
    """Their indexes may be anything, even out of range."""
    indices = with_nulls(pa.array([0, 99], pa.int8()), np.array([False, True]))
    chunk = pa.DictionaryArray.from_arrays(indices, pa.array(["a"], pa.large_string()), safe=False)
    values = unify(WORDS, [chunk])
    assert values.to_pylist() == ["a"]
    assert Reindexer(WORDS, values)(chunk).to_pylist() == [0, None]


def test_floats_keep_their_bits() -> None:
    type_ = pa.dictionary(pa.int32(), pa.float64())
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    chunk = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array([0.0, -0.0, math.nan, payload])
    )
    values = unify(type_, [chunk])
    assert len(values) == 4
    found = pa.DictionaryArray.from_arrays(Reindexer(type_, values)(chunk), values)
    assert_same(found, chunk)


def test_as_many_values_as_indexes_fit() -> None:
    values = [f"{i:03}" for i in range(128)]
    assert len(unify(WORDS, [coded(list(range(128)), values)])) == 128
    with pytest.raises(ValueError, match="129 different values do not fit"):
        unify(WORDS, [coded(list(range(128)), values), coded([0], ["one more"])])


@pytest.mark.parametrize("type_", DICTIONARY_TYPES, ids=str)
def test_random_chunks(type_: pa.DataType) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        chunks = [column(type_, int(random.integers(0, 200)), random) for _ in range(4)]
        values = unify(type_, chunks)
        assert values.null_count == 0
        reindex = Reindexer(type_, values)
        for chunk in chunks:
            assert_same(pa.DictionaryArray.from_arrays(reindex(chunk), values), chunk)


@pytest.mark.parametrize("type_", DICTIONARY_TYPES, ids=str)
def test_plain_buffers(type_: pa.DataType) -> None:
    random = np.random.default_rng(0)
    values = column(type_, 100, random).dictionary.drop_null()
    for array in (values, values.slice(3), values.slice(0, 0)):
        offsets, contents = plain_buffers(array)
        buffers = [None, *([pa.py_buffer(offsets)] if offsets is not None else []), pa.py_buffer(contents)]
        found = pa.Array.from_buffers(type_.value_type, len(array), buffers)
        assert_same(found, array)
