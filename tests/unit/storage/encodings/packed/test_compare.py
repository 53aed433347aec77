"""Conditions on codes pass what conditions on values pass, at each step of each form."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from tests.selection.effort import spread
from tests.unit.storage.encodings.packed.columns import (
    FLOATS,
    KINDS,
    Packed,
    all_columns,
    greatest_key,
    order_keys,
    pack,
)

LEVELS = _native.simd_levels()


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each set of instructions in turn."""
    _native.use_simd_level(request.param)
    yield request.param
    _native.use_simd_level(LEVELS[-1])


def within(keys, intervals):
    found = np.zeros(len(keys), bool)
    for low, high in intervals:
        found |= (keys >= low) & (keys <= high)
    return found


def check(packed: Packed, keys, valid, terms, *, nulls_pass: bool = False) -> None:
    expected = valid.copy()
    for intervals, negated in terms:
        expected &= within(keys, intervals) != negated
    expected |= ~valid & nulls_pass
    found = packed.compare(terms, nulls_pass=nulls_pass)
    assert np.array_equal(found, expected), (packed.kind, terms, packed.parameters)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "rows"), spread(product(KINDS, [1, 33, 1024, 1500]), 3))
def test_conditions_pass_what_values_pass(kind: str, rows: int, level: str) -> None:
    random = np.random.default_rng(rows)
    top = greatest_key(kind)
    for name, values in all_columns(kind, rows):
        valid = random.random(rows) >= random.choice([0.0, 0.05, 0.7])
        canonical = np.where(valid, values, np.zeros(1, values.dtype))
        try:
            packed = pack(kind, canonical, valid)
        except ValueError:
            assert kind == "int128", name
            continue
        keys = order_keys(kind, canonical)
        some = [int(key) for key in keys[random.integers(0, rows, 4)]]
        steps = sorted({min(max(key + step, 0), top) for key in some for step in (-1, 0, 1)} | {0, top})
        for key in steps:
            check(packed, keys, valid, [([(0, key)], False)])
            check(packed, keys, valid, [([(key, top)], False)])
            check(packed, keys, valid, [([(key, key)], False)])
            check(packed, keys, valid, [([(key, key)], True)])
        lists = [(key, key) for key in some]
        check(packed, keys, valid, [(lists, False), ([(min(some), top)], False)])
        check(packed, keys, valid, [(lists, True), ([(0, max(some))], False)])
        check(packed, keys, valid, [])
        check(packed, keys, valid, [([], False)])
        check(packed, keys, valid, [([(5, 4)], False)])
        check(packed, keys, valid, [(lists, True)], nulls_pass=True)
        check(packed, keys, valid, [([], False)], nulls_pass=True)
        check(packed, keys, valid, [], nulls_pass=True)
        check(packed, keys, valid, [([(int(key), int(key)) for key in keys[::3]], False)])


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("exponent", range(16))
def test_bounds_beside_every_decimal(kind: str, exponent: int) -> None:
    """n / 10^k and its neighbours among floats, as bounds: one rounding would show."""
    random = np.random.default_rng(exponent)
    largest = 10 ** min(exponent + 2, 15)
    digits = np.unique(random.integers(-largest, largest, 60))
    values = (digits / 10**exponent).astype(kind)
    packed = pack(kind, values, exponents=[exponent])
    keys = order_keys(kind, values)
    everything = np.ones(len(values), bool)
    for key in map(int, keys):
        for ulp in (-2, -1, 0, 1, 2):
            check(packed, keys, everything, [([(0, key + ulp)], False)])
            check(packed, keys, everything, [([(key + ulp, greatest_key(kind))], False)])


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_any_condition_on_scaled_integers(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["int8", "int32", "int64", "uint16", "uint64", "int128"]))
    dtype = np.dtype("int64" if kind == "int128" else kind)
    info = np.iinfo(dtype)
    divisor = data.draw(st.sampled_from([1, 2, 3, 7, 10, 60, 1000, 10**6]))
    origin = data.draw(st.integers(0, min(divisor * 3, int(info.max))))
    least, most = -((origin - int(info.min)) // divisor), (int(info.max) - origin) // divisor
    numbers = data.draw(st.lists(st.integers(least, most), min_size=1, max_size=40))
    near = data.draw(st.integers(least, most))
    numbers += [max(least, min(most, near + step)) for step in range(-20, 20)]
    values = np.array([origin + n * divisor for n in numbers], dtype)
    packed = pack(kind, values, scale=(divisor, origin))
    keys = order_keys(kind, values)
    top = greatest_key(kind)
    bound = int(data.draw(st.sampled_from(list(keys)))) + data.draw(st.integers(-divisor - 1, divisor + 1))
    bound = min(max(bound, 0), top)
    everything = np.ones(len(values), bool)
    for terms in ([([(0, bound)], False)], [([(bound, top)], False)], [([(bound, bound)], True)]):
        check(packed, keys, everything, terms)


@pytest.mark.parametrize("bits", [*range(1, 27), 33])
def test_codes_of_every_width_by_every_kind_of_interval(bits: int, level: str) -> None:
    """One, its complement, a few and very many; dense and far apart; with escapes and nulls."""
    random = np.random.default_rng(bits)
    values = random.integers(-5, (1 << bits) - 5, 2600)
    valid = np.ones(len(values), bool)
    if bits > 3:
        values[random.integers(0, len(values), 9)] = random.choice([2**40, -(2**50), 7], 9)
        valid = random.random(len(values)) < 0.9
    packed = pack("int64", np.where(valid, values, 0), valid)
    keys = order_keys("int64", np.where(valid, values, 0))
    for count in (1, 2, 3, 8, 40, 700):
        some = random.choice(keys, count)
        intervals = [(int(key), int(key) + int(random.integers(0, 3))) for key in some]
        for negated in (False, True):
            check(packed, keys, valid, [(intervals, negated)], nulls_pass=negated)


def test_a_vector_within_or_without_is_not_decoded() -> None:
    """Its payload may be anything: parameters say it all."""
    packed = pack("int32", np.arange(1000, 2000, dtype=np.int32))
    sign = 1 << 31
    packed.data[:] = 0x5A
    assert packed.compare([([(sign + 1000, sign + 3000)], False)]).all()
    assert not packed.compare([([(sign + 5000, sign + 6000)], False)]).any()
