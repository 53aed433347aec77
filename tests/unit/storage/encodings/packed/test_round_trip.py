"""Packed columns give every bit back: whole, by row, and by the decoder that docs show."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import DECIMAL, exponents, forms
from tests.selection.effort import effort, spread
from tests.unit.storage.encodings.packed.columns import (
    KINDS,
    SIZES,
    all_columns,
    assert_same,
    decoded_type,
    pack,
)

LEVELS = _native.simd_levels()


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each set of instructions in turn."""
    _native.use_simd_level(request.param)
    yield request.param
    _native.use_simd_level(LEVELS[-1])


@pytest.mark.long
@pytest.mark.parametrize(("kind", "rows"), spread(product(KINDS, [*SIZES, 3000]), 3))
def test_every_bit_comes_back(kind: str, rows: int, level: str) -> None:
    random = np.random.default_rng(rows)
    for name, values in all_columns(kind, rows):
        for share in (None, 0.0, 0.03, 0.5, 1.0):
            valid = np.ones(rows, bool) if share is None else random.random(rows) >= share
            try:
                packed = pack(kind, values, None if share is None else valid)
            except ValueError:
                assert kind == "int128", (name, share)
                continue
            assert_same(name, packed.unpack(), values, valid)
            assert_same(name, packed.oracle(), values, valid)
            taken = np.flatnonzero(random.random(rows) < 0.2)
            assert_same(name, packed.take(taken), values[taken], valid[taken])


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, np.ndarray, np.ndarray, tuple[int, int], list[int]]:
    """Any values at all of any kind, near each other or far apart."""
    kind = draw(st.sampled_from(KINDS))
    dtype = decoded_type(kind)
    rows = draw(st.sampled_from([0, *SIZES, 2050]))
    bits = 8 * dtype.itemsize
    pool = draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=8))
    spread = draw(st.integers(0, bits))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    base = np.array(pool, np.uint64)[random.integers(0, len(pool), rows)]
    noise = random.integers(0, 2**spread, rows, np.uint64, endpoint=False) if spread < 64 else base
    with np.errstate(over="ignore"):
        values = (base + noise).astype(f"u{dtype.itemsize}").view(dtype)
    if kind == "bool":
        values = values & 1
    if kind == "int128":
        values >>= 10
    valid = random.random(rows) >= draw(st.sampled_from([0.0, 0.1, 0.9]))
    divisor = draw(st.sampled_from([1, 2, 3, 10, 1000, 10**6, 2**32, 2**63, 2**64 - 1]))
    origin = draw(st.sampled_from([0, 1, 2**63, 2**64 - 5, int(base[0]) if rows else 0]))
    tried = draw(st.lists(st.integers(0, 15), max_size=3, unique=True).map(sorted))
    return kind, values, valid, (divisor, origin), tried


@pytest.mark.long
@settings(deadline=None, max_examples=effort(60, 3000))
@given(columns(), st.sampled_from(LEVELS), st.integers(0, 2**32))
def test_any_column_comes_back(column, level: str, seed: int) -> None:
    kind, values, valid, scale, tried = column
    _native.use_simd_level(level)
    try:
        packed = pack(kind, values, valid, scale=scale, exponents=tried)
        assert_same(kind, packed.unpack(), values, valid)
        assert_same(kind, packed.oracle(), values, valid)
        taken = np.flatnonzero(np.random.default_rng(seed).random(len(values)) < 0.3)
        assert_same(kind, packed.take(taken), values[taken], valid[taken])
    finally:
        _native.use_simd_level(LEVELS[-1])


@pytest.mark.parametrize("exponent", range(16))
def test_decimals_are_packed_as_decimals(exponent: int, level: str) -> None:
    """What divides wrongly would still give every value back, as an escape or raw."""
    digits = np.random.default_rng(exponent).integers(-400_000, 600_000, 3000)
    values = np.array([float(f"{n}e-{exponent}") for n in digits])
    vectors = pack("float64", values, np.ones(3000, bool)).parameters
    assert (forms(vectors) == DECIMAL).all()
    assert (exponents(vectors) == exponent).all()
    assert (vectors["bits"] <= 20).all()
    assert (vectors["escapes_nulls"] <= 2).all()


@pytest.mark.parametrize("rows", [100, 700, 1000, 1024])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("shift", [0, 3, 7, 8, 9, 40, 58])
def test_values_of_many_bits_with_nulls(rows: int, share: float, shift: int) -> None:
    """No window is ever wider than its codes."""
    random = np.random.default_rng(rows)
    values = random.integers(-(2**63), 2**63 - 1, rows) >> shift
    valid = random.random(rows) >= share
    for kind in ("int64", "uint64", "float64"):
        packed = pack(kind, values.view(kind), valid)
        assert_same(kind, packed.unpack(), values.view(kind), valid)
