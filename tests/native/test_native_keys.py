"""Keys in C++, held to dictionaries and lists of Python: groups, tables of keys, sets, sums, partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery import _native as native
from bamquery.statement_context.thread_budget import ThreadBudget, working_for

KINDS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
Column = list[int | None]


def _bounds(kind: str) -> tuple[int, int]:
    if kind == "wide":
        return -(2**127), 2**127 - 1
    limits = np.iinfo(kind)
    return int(limits.min), int(limits.max)


def _words(values: Sequence[int | None], kind: str, shift: int = 0) -> tuple[Any, ...]:
    """A key column; its bitmap begins `shift` bits on."""
    numbers = [0x5A if value is None else value for value in values]
    if kind == "wide":
        raw = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
        stored = np.frombuffer(raw, np.int64).reshape(-1, 2)
    else:
        stored = np.array(numbers, kind)
    if None not in values:
        return stored, None, 0
    flags = [False] * shift + [value is not None for value in values]
    return stored, np.packbits(np.array(flags, np.bool_), bitorder="little"), shift


def _values(kind: str) -> st.SearchStrategy[int | None]:
    least, most = _bounds(kind)
    near = st.integers(max(least, -3), 3)
    return st.one_of(near, st.none(), st.sampled_from([least, most]), st.integers(least, most))


@st.composite
def _columns(draw: st.DrawFn, sides: int = 1) -> tuple[list[str], list[list[Column]]]:
    """Kinds of key columns, and for each side columns of equal length."""
    kinds = draw(st.lists(st.sampled_from([*KINDS, "wide"]), min_size=1, max_size=3))
    rows = [draw(st.integers(0, 20)) for _ in range(sides)]
    return kinds, [
        [draw(st.lists(_values(kind), min_size=count, max_size=count)) for kind in kinds] for count in rows
    ]


def _held(kinds: list[str], columns: list[Column], shift: int) -> list[tuple[Any, ...]]:
    return [_words(column, kind, shift) for kind, column in zip(kinds, columns, strict=True)]


def _check_groups(keys: list[tuple[Any, ...]], rows: list[Any]) -> None:
    numbers: dict[Any, int] = {}
    expected = [numbers.setdefault(row, len(numbers)) for row in rows]
    codes, leaders = native.group_rows(keys)
    assert codes.tolist() == expected
    assert leaders.tolist() == [expected.index(number) for number in range(len(numbers))]


@given(_columns(), st.integers(0, 9))
def test_groups(drawn: tuple[list[str], list[list[Column]]], shift: int) -> None:
    kinds, (columns,) = drawn
    _check_groups(_held(kinds, columns, shift), list(zip(*columns, strict=True)))


def _numbers(rows: int, distinct: int, spread: int) -> np.ndarray:
    """That many different numbers at most, so far from each other."""
    return np.random.default_rng(rows + distinct).integers(0, distinct, rows) * spread - 5 * spread


@pytest.mark.parametrize("rows", [1023, 1024, 1025, 70_000])
@pytest.mark.parametrize("distinct", [1, 1000, 60_000])
@pytest.mark.parametrize("spread", [1, 1 << 20, 1 << 45], ids=["by place", "by code", "by words"])
def test_tables_that_grow(rows: int, distinct: int, spread: int) -> None:
    """In one pass over many blocks; two columns, of which the second repeats what the first one says."""
    first = _numbers(rows, distinct, spread)
    second = first[::-1].copy()
    codes, leaders = native.group_rows([(first, None, 0), (second, None, 0)])
    pairs = np.stack([first, second], 1)
    assert (pairs[leaders][codes] == pairs).all()
    assert len(np.unique(pairs, axis=0)) == len(leaders)
    assert (np.maximum.accumulate(codes)[leaders] == np.arange(len(leaders))).all()
    assert (codes[leaders] == np.arange(len(leaders))).all()
    assert (np.diff(leaders) > 0).all()


def _pairs(table: native.KeyTable, keys: Any, rows: int, portion: int) -> list[tuple[int, int]]:
    """All pairs, portion by portion; each is as full as may be."""
    pairs: list[tuple[int, int]] = []
    start = 0
    counts = np.zeros(rows + 1, np.int64)
    while start < rows:
        stop, positions, found = table.find_pairs(keys, start, rows - start, portion)
        assert start < stop <= rows
        assert positions.dtype == found.dtype == np.int64
        assert all(start <= position < stop for position in positions.tolist())
        assert len(positions) <= portion or stop == start + 1
        np.add.at(counts, positions, 1)
        if stop < rows:
            more = table.find_pairs(keys, stop, 1, portion)
            assert len(positions) + len(more[1]) > portion
        pairs += zip(positions.tolist(), found.tolist(), strict=True)
        start = stop
    return pairs


@given(_columns(sides=2), st.integers(0, 9), st.integers(0, 7), st.integers(0, 7))
def test_pairs(
    drawn: tuple[list[str], list[list[Column]]], portion: int, equal_bits: int, shift: int
) -> None:
    kinds, (build, probe) = drawn
    nulls_equal = [bool(equal_bits >> i & 1) for i in range(len(kinds))]
    table = native.key_table(_held(kinds, build, shift), nulls_equal)
    if table is None:  # only where 62 bits do not number the keys
        assert len(kinds) > 1 or nulls_equal[0] or kinds == ["wide"]
        return
    expected = [
        (i, j)
        for i, mine in enumerate(zip(*probe, strict=True))
        for j, other in enumerate(zip(*build, strict=True))
        if all(
            (a == b) if a is not None and b is not None else (a is None and b is None and equal)
            for a, b, equal in zip(mine, other, nulls_equal, strict=True)
        )
    ]
    assert _pairs(table, _held(kinds, probe, 3 - shift % 4), len(probe[0]), portion) == expected


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("spread", [1, 1 << 30], ids=["places", "slots"])
def test_tables_of_many_keys(repeats: int, spread: int) -> None:
    build = np.repeat(np.arange(50_000), repeats) * spread
    build = np.random.default_rng(1).permutation(build)
    table = native.key_table([(build, None, 0)], [False])
    assert table is not None
    probe = np.arange(-100, 50_100) * spread
    stop, positions, found = table.find_pairs([(probe, None, 0)], 0, len(probe), 1 << 40)
    assert stop == len(probe)
    assert (probe[positions] == build[found]).all()
    assert len(positions) == len(build)
    steps = np.diff(positions) * len(build) + np.diff(found)
    assert (steps > 0).all(), "by ascending row of both sides"


def _in_threads(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, range(8)))


def test_threads_at_once() -> None:
    """Each with its own part of the rows, of tables that all share."""
    random = np.random.default_rng(9)
    build, probe = random.integers(0, 1 << 40, 5_000), random.integers(0, 1 << 40, 40_000)
    probe[::3] = random.choice(build, len(probe[::3]))
    table = native.key_table([(build, None, 0)], [False])
    assert table is not None
    members = native.NumberSet(build)

    def work(part: int) -> tuple[Any, ...]:
        own = probe[part * 5_000 : (part + 1) * 5_000].copy()
        return (
            *table.find_pairs([(own, None, 0)], 0, len(own), 1 << 40)[1:],
            members.contains(own),
            *native.group_rows([(own, None, 0)]),
        )

    alone = [work(part) for part in range(8)]
    for mine, other in zip(alone, _in_threads(work), strict=True):
        assert all((a == b).all() for a, b in zip(mine, other, strict=True))


@given(st.data(), st.sampled_from(KINDS))
def test_members(data: st.DataObject, kind: str) -> None:
    numbers = _values(kind).filter(lambda value: value is not None)
    members, values = (np.array(data.draw(st.lists(numbers, max_size=20)), kind) for _ in range(2))
    bits = native.NumberSet(members).contains(values)
    found = np.unpackbits(bits, count=len(values), bitorder="little").astype(bool)
    assert found.tolist() == [value in members.tolist() for value in values.tolist()]


@pytest.mark.parametrize("spread", [1, 100, 1 << 12, 1 << 45])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("repeated", [1, 3])
@pytest.mark.parametrize("nulls", [False, True])
def test_tables_of_all_forms(spread: int, ordered: bool, repeated: int, nulls: bool) -> None:
    """A bit for each code, or hashes; rows by their place, or in the order of their keys as they are."""
    random = np.random.default_rng(repeated)
    keys = np.repeat(random.permutation(7_000)[:4_000], repeated) * spread - 99
    keys = np.sort(keys) if ordered else random.permutation(keys)
    present = random.random(len(keys)) < 0.9 if nulls else np.ones(len(keys), np.bool_)
    bits = np.packbits(present, bitorder="little") if nulls else None
    table = native.key_table([(keys, bits, 0)], [False])
    assert table is not None
    asked = random.integers(-3, 7_100, 5_000) * spread - 99 + random.integers(0, 2, 5_000)
    rows: dict[int, list[int]] = {}
    for row in np.flatnonzero(present).tolist():
        rows.setdefault(int(keys[row]), []).append(row)
    expected = [(i, row) for i, key in enumerate(asked.tolist()) for row in rows.get(key, [])]
    stop, positions, found = table.find_pairs([(asked, None, 0)], 0, len(asked), 1 << 20)
    assert stop == len(asked)
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == expected


@pytest.mark.parametrize("members", [10, 511, 5_000])
@pytest.mark.parametrize("spread", [1, 64, 1 << 20, 1 << 43])
@pytest.mark.parametrize("rows", [63, 64, 65, 3_000])
def test_sets_of_all_forms(members: int, spread: int, rows: int) -> None:
    random = np.random.default_rng(rows)
    wanted = random.integers(-members, members, members) * spread
    values = random.integers(-2 * members, 2 * members, rows) * spread + random.integers(0, 2, rows)
    bits = native.NumberSet(wanted).contains(values)
    found = np.unpackbits(bits, count=rows, bitorder="little").astype(bool)
    assert (found == np.isin(values, wanted)).all()


@given(st.data(), st.sampled_from(KINDS), st.booleans())
def test_numbers_of_several_columns_are_summarized(data: st.DataObject, kind: str, wanted: bool) -> None:
    columns = data.draw(st.lists(st.lists(_values(kind), max_size=20), min_size=1, max_size=3))
    count, bounds, found = native.summarize_numbers([_words(values, kind) for values in columns], wanted)
    present = sorted(value for values in columns for value in values if value is not None)
    assert count == len(present)
    assert bounds.dtype == np.dtype(kind)
    assert bounds.tolist() == ([present[0], present[-1]] if present else [])
    if found is None:
        assert not wanted or present[-1] - present[0] >= 1 << 16
    else:
        assert found.dtype == np.dtype(kind)
        assert found.tolist() == sorted(set(present))


def test_numbers_behind_many_nulls_are_summarized() -> None:
    values: list[int | None] = [None] * 130
    values[70], values[129], values[64] = 9, -4, 9
    count, bounds, found = native.summarize_numbers([_words(values, "i4")], True)
    assert found is not None
    assert (count, bounds.tolist(), found.tolist()) == (3, [-4, 9], [-4, 9])


@pytest.mark.parametrize("kind", ["i4", "u8"])
@pytest.mark.parametrize("span", [1 << 12, 1 << 24, 1 << 31])
def test_many_numbers_are_summarized_by_threads(kind: str, span: int) -> None:
    random = np.random.default_rng(span)
    columns = [random.integers(7, span, rows).astype(kind) for rows in (300_000, 0, 130_001, 270_000)]
    flags = random.integers(0, 2, 130_010).astype(bool)
    bits = np.packbits(flags, bitorder="little")
    words = [(values, bits if len(values) == 130_001 else None, 9) for values in columns]
    present = np.concatenate([columns[0], columns[2][flags[9:]], columns[3]])
    with working_for(ThreadBudget(3)):
        count, bounds, found = native.summarize_numbers(words, True)
    assert (count, bounds.tolist()) == (len(present), [present.min(), present.max()])
    assert (found is None) == (span > 1 << 24)
    assert found is None or np.array_equal(found, np.unique(present))


GROUPS = [1, 3, 256, 257, 5_000]
"""Sums of few groups are taken in several lanes."""


def _codes(rows: int, groups: int, kind: type[Any]) -> np.ndarray:
    return np.random.default_rng(groups).integers(0, groups, rows).astype(kind)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_counts_and_sums(groups: int, kind: type[Any]) -> None:
    codes = _codes(3_001, groups, kind)
    random = np.random.default_rng(2)
    assert (native.count_groups(codes, 3_001, groups) == np.bincount(codes, minlength=groups)).all()
    flags = random.integers(0, 2, 3_010).astype(bool)
    bits = np.packbits(flags, bitorder="little")
    counts = native.count_groups(codes, 3_001, groups, bits, 5)
    assert (counts == np.bincount(codes[flags[5:3_006]], minlength=groups)).all()
    numbers = random.integers(-(2**63), 2**63 - 1, 3_001)
    wrapped = np.zeros(groups, np.int64)
    np.add.at(wrapped, codes, numbers)
    assert (native.sum_whole(codes, numbers, groups) == wrapped).all()
    doubles = random.normal(size=3_001) * 10.0 ** random.integers(-20, 20, 3_001)
    in_order = np.bincount(codes, doubles, groups)
    assert native.sum_doubles(codes, doubles, groups).tobytes() == in_order.tobytes()


@pytest.mark.parametrize("groups", GROUPS)
def test_moments_of_pairs(groups: int) -> None:
    """Far from zero, too, and of one value over and over."""
    codes = _codes(3_001, groups, np.int32)
    random = np.random.default_rng(3)
    y, x = 1e9 + random.normal(size=3_001), np.where(codes == 0, 0.1, random.normal(size=3_001))
    counts, mean_y, mean_x, yy, xx, xy = native.sum_pairs(codes, y, x, groups)
    for group in range(groups):
        ys, xs = y[codes == group], x[codes == group]
        assert counts[group] == len(ys)
        if len(ys):
            from_y, from_x = ys - ys.mean(), xs - xs.mean()
            wanted = [ys.mean(), xs.mean(), (from_y**2).sum(), (from_x**2).sum(), (from_y * from_x).sum()]
            found = [mean_y[group], mean_x[group], yy[group], xx[group], xy[group]]
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    assert not counts[0] or (mean_x[0], xx[0]) == (0.1, 0)
    everything = native.sum_pairs(None, y, x, 1)
    assert everything[1][0] == pytest.approx(y.mean())
    endless = np.array([1.0, np.inf, 2.0])
    infinite = native.sum_pairs(None, endless, endless, 1)
    assert infinite[1][0] == np.inf
    assert np.isnan(infinite[3][0])


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=20), st.sampled_from([1, 300])
)
def test_sums_that_must_not_wrap(values: list[int], groups: int) -> None:
    codes = np.arange(len(values), dtype=np.int32) % min(groups, 3)
    totals, wraps = [0] * groups, False
    for code, value in zip(codes.tolist(), values, strict=True):
        totals[code] += value
        wraps |= not -(2**63) <= totals[code] < 2**63
    sums = native.sum_checked(codes, np.array(values, np.int64), groups)
    assert sums is None if wraps else sums is not None and sums.tolist() == totals


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**64), 2**64), max_size=5))
def test_sums_of_two_words_in_one(numbers: list[int]) -> None:
    stored, _, _ = _words(numbers, "wide")
    sums = native.narrow_sums(stored)
    fit = all(-(2**63) <= number < 2**63 for number in numbers)
    assert sums is not None and sums.tolist() == numbers if fit else sums is None
    if sums is not None:
        assert native.join_limbs([sums])[0].tolist() == stored.tolist()


def test_one_group_needs_no_codes() -> None:
    numbers = np.arange(-5, 100)
    bits = np.packbits(np.arange(105) % 2 == 0, bitorder="little")
    assert native.count_groups(None, 105, 1).tolist() == [105]
    assert native.count_groups(None, 105, 1, bits).tolist() == [53]
    assert native.sum_whole(None, numbers, 1).tolist() == [numbers.sum()]
    assert native.sum_doubles(None, np.array([1e16, 1.0, -1e16]), 1).tolist() == [0.0]
    assert native.sum_limbs(None, numbers, None, 0, 1)[0].tolist() == [numbers.sum()]


def _joined(limbs: Sequence[np.ndarray], group: int) -> int:
    return sum(int(limb[group]) << (32 * i) for i, limb in enumerate(limbs))


@given(st.data(), st.sampled_from([*KINDS, "wide"]), st.sampled_from([1, 2, 64, 65, 300]), st.integers(0, 9))
def test_limbs(data: st.DataObject, kind: str, groups: int, shift: int) -> None:
    values = data.draw(st.lists(_values(kind), max_size=25))
    codes = np.array([data.draw(st.integers(0, min(groups, 3) - 1)) for _ in values], np.int32)
    stored, bits, first_bit = _words(values, kind, shift)
    limbs = native.sum_limbs(codes, stored, bits, first_bit, groups)
    assert len(limbs) == {"i8": 3, "u8": 3, "wide": 5}.get(kind, 2)
    sums = [0] * groups
    for code, value in zip(codes.tolist(), values, strict=True):
        sums[code] += value or 0
    assert [_joined(limbs, group) for group in range(groups)] == sums
    assert all(0 <= low < 2**32 for limb in limbs[:-1] for low in limb.tolist())
    again = native.merge_limbs(np.array([1] * groups, np.int64), limbs, 2)
    assert [_joined(again, group) for group in range(2)] == [0, sum(sums)]
    assert all(0 <= low < 2**32 for limb in again[:-1] for low in limb.tolist())


@pytest.mark.parametrize("bits", [51, 52, 53, 63, 127])
@pytest.mark.parametrize("groups", [1, 64, 65])
def test_many_wide_numbers_of_few_groups(bits: int, groups: int) -> None:
    """Blocks of small numbers, and one with a number of so many bits, of either sign."""
    random = np.random.default_rng(bits)
    values = random.integers(-(2**51), 2**51, 5_000).tolist()
    values[1_500], values[1_501], values[3_000] = 2**bits - 1, -(2**bits), 2**bits - 1
    values[4_000:] = [2**52 - 1] * 500 + [-(2**52)] * 500
    codes = _codes(5_000, groups, np.int32)
    stored, bitmap, first_bit = _words([*values[:-1], None], "wide", 3)
    sums = [0] * groups
    for code, value in zip(codes.tolist(), values[:-1], strict=False):
        sums[code] += value
    limbs = native.sum_limbs(codes, stored, bitmap, first_bit, groups)
    assert [_joined(limbs, group) for group in range(groups)] == sums


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_more_limbs_than_are_needed(values: list[int]) -> None:
    limbs = native.sum_limbs(None, np.array(values, np.int64), None, 0, 1, 5)
    assert len(limbs) == 5
    assert _joined(limbs, 0) == sum(values)
    assert all(0 <= int(limb[0]) < 2**32 for limb in limbs[:-1])


@given(st.lists(st.integers(-(10**39), 10**39) | st.sampled_from([10**38, 10**38 - 1]), max_size=6))
def test_limbs_are_joined(numbers: list[int]) -> None:
    limbs = [np.array([number >> 32 * i & 0xFFFFFFFF for number in numbers], np.int64) for i in range(4)]
    limbs.append(np.array([number >> 128 for number in numbers], np.int64))
    limbs[1] -= 3 * 2**32  # differences of sums may have such limbs
    limbs[2] += 3
    words, fits = native.join_limbs(limbs)
    assert fits == all(abs(number) < 10**38 for number in numbers)
    if fits:
        assert words.astype(object)[:, 1].tolist() == [number >> 64 for number in numbers]
        assert words.view(np.uint64)[:, 0].tolist() == [number & (2**64 - 1) for number in numbers]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=60), st.integers(0, 63), st.sampled_from([1, 2, 10, 256]))
def test_partitions(hashes: list[int], shift: int, count: int) -> None:
    order, ends = native.partition_rows(np.array(hashes, np.uint64), shift, count)
    places = [hash_ >> shift & (count - 1) for hash_ in hashes]
    assert order.tolist() == sorted(range(len(hashes)), key=lambda row: places[row])
    assert ends.tolist() == [sum(place <= end for place in places) for end in range(count)]


@pytest.mark.parametrize("kind", ["?", "u1", "i2", "f4", "i8", "f8"])
def test_gathers(kind: str) -> None:
    values = np.random.default_rng(1).integers(0, 2, 100).astype(kind)
    places = np.random.default_rng(2).integers(0, 100, 333)
    found = native.gather_values(values, places)
    assert found.dtype == values.dtype
    assert (found == values[places]).all()


I64 = np.arange(4)
I32 = np.zeros(4, np.int32)
TWO_PARTS: Any = (I64, None)
BITS = np.zeros(1, np.uint8)
TABLE = native.key_table([(I64, None, 0)], [False])
assert TABLE is not None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: native.group_rows([]), "no key columns"),
        (lambda: native.group_rows([TWO_PARTS]), "validity"),
        (lambda: native.group_rows([(I64, None, 0), (np.arange(3), None, 0)]), "equally long"),
        (lambda: native.group_rows([(np.arange(8.0), None, 0)]), "whole numbers"),
        (lambda: native.group_rows([(np.arange(8)[::2], None, 0)]), "gaps"),
        (lambda: native.group_rows([(np.arange(8).astype(">i8"), None, 0)]), "order"),
        (lambda: native.group_rows([(np.zeros((2, 3), np.int64), None, 0)]), "one value a row"),
        (lambda: native.group_rows([(np.zeros((2, 2), np.int32), None, 0)]), "one value a row"),
        (lambda: native.group_rows([(I64, BITS, 5)]), "bitmap"),
        (lambda: native.group_rows([(I64, BITS, -1)]), "bitmap"),
        (lambda: native.group_rows([(I64, BITS, 2**63 - 1)]), "bitmap"),
        (lambda: native.key_table([(I64, None, 0)], []), "nulls"),
        (lambda: TABLE.find_pairs([(I64, None, 0)], 1, 4, 9), "such rows"),
        (lambda: TABLE.find_pairs([(I64, None, 0)], -1, 1, 9), "such rows"),
        (lambda: TABLE.find_pairs([(I64, None, 0)], 2**63 - 1, 1, 9), "such rows"),
        (lambda: TABLE.find_pairs([(I64, None, 0)] * 2, 0, 4, 9), "number of keys"),
        (lambda: native.NumberSet(np.zeros((3, 2), np.int64)), "64 bits"),
        (lambda: native.NumberSet(I64).contains(np.zeros((3, 2), np.int64)), "64 bits"),
        (lambda: native.summarize_numbers([(np.zeros((3, 2), np.int64), None, 0)], True), "64 bits"),
        (lambda: native.summarize_numbers([], True), "no columns"),
        (lambda: native.summarize_numbers([(I64, None, 0), (I32, None, 0)], True), "several types"),
        (lambda: native.count_groups(I32, 5, 1), "one code a row"),
        (lambda: native.count_groups(I32, 4, 0), "no group"),
        (lambda: native.count_groups(I32 - 1, 4, 2), "no group"),
        (lambda: native.count_groups(None, 4, 2), "codes"),
        (lambda: native.count_groups(None, -4, 1), "such rows"),
        (lambda: native.count_groups(I32, 4, -1), "number of groups"),
        (lambda: native.count_groups(I32, 4, 2**62), "number of groups"),
        (lambda: native.count_groups(I32, 4, 1, BITS, 5), "bitmap"),
        (lambda: native.count_groups(np.zeros(4, np.int16), 4, 1), "32 or 64 bits"),
        (lambda: native.sum_whole(I32 + 3, I64, 3), "no group"),
        (lambda: native.sum_whole(I64, np.arange(5), 9), "one code a row"),
        (lambda: native.sum_checked(I64, I64, 3), "no group"),
        (lambda: native.narrow_sums(np.zeros((3, 3), np.int64)), "two words"),
        (lambda: native.sum_doubles(I64, np.zeros(4), 3), "no group"),
        (lambda: native.sum_limbs(I64, I64, None, 0, 3), "no group"),
        (lambda: native.sum_limbs(I64, I64, None, 0, 4, 2), "number of limbs"),
        (lambda: native.sum_limbs(I64, I64, None, 0, 4, 6), "number of limbs"),
        (lambda: native.merge_limbs(I64, [I64, np.arange(3)], 9), "equally long"),
        (lambda: native.merge_limbs(I64, [], 9), "no limbs"),
        (lambda: native.merge_limbs(I64, [I64], 3), "no group"),
        (lambda: native.join_limbs([]), "number of limbs"),
        (lambda: native.join_limbs([I64] * 6), "number of limbs"),
        (lambda: native.hash_strings(np.array([0, 3, 5]), b"four"), "outside"),
        (lambda: native.hash_strings(np.array([2, 1]), b"four"), "outside"),
        (lambda: native.hash_strings(np.array([-1, 1]), b"four"), "outside"),
        (lambda: native.hash_strings(np.array([], np.int64), b"four"), "offset"),
        (lambda: native.partition_rows(np.zeros(3, np.uint64), 64, 2), "such bits"),
        (lambda: native.partition_rows(np.zeros(3, np.uint64), 0, 0), "partitions"),
        (lambda: native.gather_values(I64, np.array([4])), "such value"),
        (lambda: native.gather_values(I64, np.array([-1])), "such value"),
        (lambda: native.gather_values(np.zeros(4, "c16"), I64), "width"),
        (lambda: native.gather_values(np.zeros(4, object), I64), "numbers"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()


def test_a_column_of_arrow_is_read_where_it_lies() -> None:
    column: Any = pa.array([7, None, 7, 9, None], pa.int64()).slice(1)
    values = np.frombuffer(column.buffers()[1], np.int64)[1:5]
    codes, leaders = native.group_rows([(values, column.buffers()[0], column.offset)])
    assert codes.tolist() == [0, 1, 2, 0]
    assert leaders.tolist() == [0, 1, 2]


def test_limbs_with_gaps_are_read_rightly() -> None:
    """As programs make them: columns of a table."""
    words = np.arange(12).reshape(6, 2)
    limbs = native.merge_limbs(np.array([0, 1, 0, 1, 0, 1]), [words[:, 0], words[:, 1]], 2)
    assert [limb.tolist() for limb in limbs] == [[0 + 4 + 8, 2 + 6 + 10], [1 + 5 + 9, 3 + 7 + 11]]
    joined, fits = native.join_limbs([words[:, 0], words[:, 1]])
    assert fits
    assert joined[:, 0].tolist() == [low + (high << 32) for low, high in words.tolist()]
