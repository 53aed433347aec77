"""Hashes of keys: equal for equal keys wherever they are, and spread over all places."""

from __future__ import annotations

from math import isnan

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.keys.hashing import hash_rows
from bamquery.engine.cpu.keys.key_words import canonical
from tests.strategies import PLAIN_TYPES, array, specials


@pytest.mark.parametrize("kind", PLAIN_TYPES, ids=str)
def test_equal_keys_have_equal_hashes(kind: pa.DataType) -> None:
    values = [*specials(kind), None]
    column = canonical(array(values + values, kind))
    once, again = np.split(hash_rows([column], len(column)), 2)
    assert (once == again).all()
    sliced = column.slice(3, len(values))
    assert (hash_rows([sliced], len(sliced)) == hash_rows([column], len(column))[3 : 3 + len(values)]).all()


def test_one_zero_and_one_nan() -> None:
    column = array(specials(pa.float64()), pa.float64())
    hashes = dict(zip(map(str, column.to_pylist()), hash_rows([canonical(column)], len(column)), strict=True))
    assert hashes["0.0"] == hashes["-0.0"]
    assert (
        len(
            {h for v, h in zip(column.to_pylist(), hash_rows([column], len(column)), strict=True) if isnan(v)}
        )
        == 1
    )


def test_a_null_differs_from_what_is_below_it() -> None:
    known = pa.array([0, 1])
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), known.buffers()[1]])
    assert (hash_rows([known], 2) == hash_rows([hidden], 2)).tolist() == [True, False]
    assert len(set(hash_rows([pa.array([None, None], pa.int64())], 2))) == 1


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 40, 63, 64])
def test_each_byte_of_a_text_counts(length: int) -> None:
    text = bytes(range(1, length + 1))
    others = [text[:at] + b"\xff" + text[at + 1 :] for at in range(length)]
    column = pa.array([b"behind it", text, *others, text[:-1], text + b"\0"], pa.large_binary()).slice(1)
    assert len(set(hash_rows([column], len(column)))) == len(column)


def test_equal_long_texts_wherever_they_are() -> None:
    texts = [b"x" * length for length in range(65, 400)]
    column = pa.array([b"?", *texts, *texts], pa.large_binary()).slice(1)
    once, again = np.split(hash_rows([column], len(column)), 2)
    assert (once == again).all()
    assert len(set(once)) == len(texts)


@pytest.mark.parametrize(
    "keys",
    [
        [pa.array(range(64_000))],
        [pa.array(range(0, 64_000 * 4096, 4096))],
        [pa.array(np.arange(64_000) / 8)],
        [pa.array([f"https://example.org/{n}/page" for n in range(64_000)], pa.large_string())],
        [pa.array([f"{n:x}" for n in range(64_000)], pa.large_string())],
        [pa.array([b"\0" * 300 + b"%d" % n for n in range(64_000)], pa.large_binary())],
        [pa.array(np.arange(64_000) % 250), pa.array(np.arange(64_000) // 250)],
    ],
    ids=["numbers", "multiples", "floats", "texts", "short texts", "long bytes", "pairs"],
)
def test_keys_spread_over_64_places(keys: list[pa.Array]) -> None:
    counts = np.bincount(hash_rows(keys, 64_000) >> np.uint64(58), minlength=64)
    assert counts.min() > 700
    assert counts.max() < 1300
