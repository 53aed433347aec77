"""Compressed strings give every byte back: whole, by row, and by the decoder that docs show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery.storage.encodings.fsst.parameters import BYTES, SYMBOLS, stored_bytes
from tests.unit.storage.encodings.fsst.columns import WORDS, PackedTexts, Texts, pack, sentences

SIZES = (1, 127, 128, 129, 1023, 1024, 1025, 2100)


def assert_same(packed: PackedTexts, texts: Texts) -> None:
    expected = list(texts)
    assert packed.unpack() == expected
    assert packed.oracle() == expected
    rows = np.flatnonzero(np.random.default_rng(len(texts)).random(len(texts)) < 0.3)
    some = [expected[row] for row in rows]
    assert packed.unpack(rows) == some
    assert packed.take(rows) == some


@st.composite
def columns(draw: st.DrawFn) -> Texts:
    """Any bytes at all, and words that symbols are found for, in any number of vectors."""
    pool = draw(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from(WORDS)), min_size=1, max_size=30))
    rows = draw(st.sampled_from([0, *SIZES]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from([1, 3, 9]))
    nulls = draw(st.sampled_from([0.0, 0.0, 0.02, 0.5, 1.0]))
    return [
        None
        if random.random() < nulls
        else b"".join(pool[i] for i in random.integers(0, len(pool), random.integers(0, most + 1)))
        for _ in range(rows)
    ]


@settings(max_examples=60)
@given(texts=columns())
def test_any_strings(texts: Texts) -> None:
    assert_same(pack(texts), texts)


@settings(max_examples=15)
@given(texts=columns(), others=columns())
def test_symbols_of_other_strings(texts: Texts, others: Texts) -> None:
    assert_same(pack(texts, pack(others).symbols), texts)


@pytest.mark.parametrize(
    "texts",
    [
        [b""] * 1500,
        [None] * 1500,
        [b"\xff"] * 1500,
        [b"\xff" * n for n in range(300)],
        [b"\0" * (n % 9) for n in range(1100)],
        [bytes(range(256)) * 3] * 130,
        [b"a" * 100_000, None, b"", b"xyz" * 50_000],
        [np.random.default_rng(0).bytes(200_000), b"long"],
        [b"x" * (40 if n == 700 else 0) for n in range(1024)],
    ],
    ids=["empty", "null", "ff", "ffs", "zeros", "all bytes", "long", "random", "one"],
)
def test_hard_ones(texts: Texts) -> None:
    assert_same(pack(texts), texts)


def test_a_part_of_32_mib() -> None:
    # Its codes are wider than the narrow ones of 25 bits.
    texts: Texts = [b"y" * (1 << 24), None, b"z", np.random.default_rng(1).bytes(1 << 24)]
    packed = pack(texts)
    assert packed.parameters["bits"].tolist() == [27]
    assert packed.unpack() == list(texts)
    assert packed.take(np.arange(4)) == list(texts)


def test_words_take_a_third_and_noise_what_it_took() -> None:
    words = sentences(5000)
    packed = pack(words)
    size = sum(len(text) for text in words if text is not None)
    assert set(packed.parameters["form"].tolist()) == {SYMBOLS}
    assert packed.parameters["plain_bytes"].sum() == size
    assert 3 * stored_bytes(packed.parameters).sum() < size
    noise = [np.random.default_rng(row).bytes(20) for row in range(1024)]
    both = pack([*words[:1024], *noise], packed.symbols)
    assert both.parameters["form"].tolist() == [SYMBOLS, BYTES]
    assert stored_bytes(both.parameters)[1] == 20 * 1024


def test_equal_strings_find_equal_symbols() -> None:
    assert pack(sentences(3000)).symbols == pack(sentences(3000)).symbols
    assert pack(sentences(3000)).symbols != pack([b"other words"] * 3000).symbols


def test_a_table_that_nobody_trained_is_refused() -> None:
    twice = bytes([2, 3, 3]) + b"abcabc"
    offsets = np.array([0, 3], np.int64)
    with pytest.raises(ValueError, match="told apart"):
        _native.fsst_pack(twice, offsets, 1, b"abc", 0, None)
