"""Sums: how limbs stand for a number, what an average shares with them, and their order."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.accumulator import Gathered
from bamquery.engine.cpu.aggregates.counts import Count
from bamquery.engine.cpu.aggregates.sums import (
    ExactAverage,
    ExactSum,
    FloatAverage,
    FloatSum,
    limb_count,
)
from bamquery.errors import ExecutionError

TOTAL = pa.decimal128(38, 0)
HALF = 2**62
KINDS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint32(),
    pa.uint64(),
    pa.decimal128(38, 0),
]


def _column(values: list[int], kind: pa.DataType) -> Any:
    decimals = pa.types.is_decimal(kind)
    return pa.array([Decimal(value) if decimals else value for value in values], kind)


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(38, 0)])
@pytest.mark.parametrize(
    "values",
    [[], [2**63 - 1], [-(2**63)], [HALF, HALF], [2**63 - 1] * 3, [-(2**63)] * 5, [1 - HALF, 5, -(2**63)]],
)
def test_sums_beyond_64_bits(kind: pa.DataType, values: list[int]) -> None:
    column = _column(values, kind)
    accumulator = ExactSum(TOTAL)
    state = accumulator.partial(column, np.zeros(len(values), np.int64), 1)
    assert accumulator.final(state).to_pylist() == [Decimal(sum(values)) if values else None]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_states_of_large_and_of_small_sums_are_alike(kind: pa.DataType) -> None:
    bits = 120 if pa.types.is_decimal(kind) else kind.bit_width
    signed = pa.types.is_decimal(kind) or pa.types.is_signed_integer(kind)
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [least, most, 0, 1, most - 1]
    codes = np.array([0, 1, 0, 1, 1])
    accumulator = ExactSum(TOTAL)
    wide, narrow = (accumulator.partial(_column(own, kind), codes[: len(own)], 2) for own in (values, [1, 0]))
    assert len(wide) == len(narrow)
    for state, sums in ((wide, [least, 2 * most]), (narrow, [1, 0])):
        limbs = zip(*(np.asarray(limb).tolist() for limb in state[:-1]), strict=True)
        assert [sum(limb << (32 * i) for i, limb in enumerate(row)) for row in limbs] == sums
        assert all(0 <= low < 2**32 for limb in state[:-2] for low in np.asarray(limb).tolist())
    joined = [np.concatenate([np.asarray(a), np.asarray(b)]) for a, b in zip(wide, narrow, strict=True)]
    answer = accumulator.final(accumulator.merge(tuple(joined), np.array([0, 1, 0, 1]), 2))
    assert answer.to_pylist() == [Decimal(least + 0 + 1), Decimal(most + 1 + most - 1 + 0)]


def _gathered(sums: list[int]) -> Gathered:
    words = np.array([[(n & (2**64 - 1)) - (n >> 63 & 1) * 2**64, n >> 64] for n in sums], np.int64)
    return Gathered(np.ones(len(sums), np.int64), np.zeros(0, np.int64), words.reshape(-1, 2))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("sums", [[5, -7], [2**63 - 1, 1], [2**63, -(2**63) - 1], [2**70, -(2**70)]], ids=str)
def test_states_of_programs_are_as_others(kind: pa.DataType, sums: list[int]) -> None:
    """In 64 bits where all fit; merged with others, and as files have them, in limbs."""
    if kind.bit_width < 64 and max(sums) >= 2**64:
        return  # so many rows there are not
    for accumulator in (ExactSum(TOTAL, limb_count(kind)), ExactAverage(0, limb_count(kind))):
        own = accumulator.from_program(kind, _gathered(sums))
        assert (len(own) == 2) == all(-(2**63) <= total < 2**63 for total in sums)
        other = accumulator.partial(_column([1, 0, 3], kind), np.array([0, 1, 1]), 2)
        assert len(accumulator.unfold(own)) == len(other)
        assert accumulator.unfold(other) == other
        for states in ([own, other], [other, own], [own, own]):
            aligned = accumulator.align(states)
            assert len({len(state) for state in aligned}) == 1
            joined = tuple(np.concatenate([*map(np.asarray, parts)]) for parts in zip(*aligned, strict=True))
            merged = accumulator.merge(joined, np.array([0, 1, 0, 1]), 2)
            totals = [sum(part) for part in zip(*(sums if s is own else [1, 3] for s in states), strict=True)]
            if isinstance(accumulator, ExactSum):
                assert accumulator.final(merged).to_pylist() == [*map(Decimal, totals)]
            else:
                counts = np.asarray(merged[-1]).tolist()
                means = [total / count for total, count in zip(totals, counts, strict=True)]
                assert accumulator.final(merged).to_pylist() == pytest.approx(means)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_have_38_digits_at_most(sign: int) -> None:
    accumulator = ExactSum(TOTAL)

    def total(values: list[int]) -> list[Any]:
        column = _column([sign * value for value in values], TOTAL)
        return accumulator.final(accumulator.partial(column, np.zeros(len(values), np.int64), 1)).to_pylist()

    assert total([10**38 - 2, 1]) == [Decimal(sign * (10**38 - 1))]
    for values in ([10**38 - 1, 1], [10**38 - 1] * 3, [10**38 - 1] * 5):
        with pytest.raises(ExecutionError, match="38 digits"):
            total(values)


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(12, 2)], ids=str)
def test_sum_and_count_are_parts_of_an_average(kind: pa.DataType) -> None:
    """Also where a group has no value."""
    floating = pa.types.is_floating(kind)
    column = pa.array([1.5, None, 2.25], kind) if floating else _column_with_null(kind)
    codes = np.array([0, 1, 0])
    average = FloatAverage() if floating else ExactAverage(2)
    state = average.partial(column, codes, 2)
    for accumulator in (FloatSum() if floating else ExactSum(TOTAL), Count()):
        own = accumulator.partial(column, codes, 2)
        shared = accumulator.from_average(state)
        assert shared is not None
        assert [np.asarray(part).tolist() for part in shared] == [np.asarray(part).tolist() for part in own]


def _column_with_null(kind: pa.DataType) -> Any:
    return pa.array([15, None, 7], kind)


@pytest.mark.parametrize("groups", [1, 2])
def test_floats_are_added_row_by_row(groups: int) -> None:
    """Added in pairs, what is lost on the way would be another part; of nothing it is a double, too."""
    random = np.random.default_rng(3)
    values = random.normal(size=1000) * 10.0 ** random.integers(0, 16, 1000)
    codes = np.arange(1000) % groups
    for accumulator in (FloatSum(), FloatAverage()):
        sums, *_ = accumulator.partial(pa.array(values), codes, groups)
        wanted = []
        for group in range(groups):
            total = 0.0
            for value in values[codes == group].tolist():
                total += value
            wanted.append(total)
        assert np.asarray(sums).tolist() == wanted
        nothing, *_ = accumulator.partial(pa.array([], pa.float64()), codes[:0], groups)
        assert (np.asarray(nothing).dtype, np.asarray(nothing).tolist()) == (np.float64, [0.0] * groups)
