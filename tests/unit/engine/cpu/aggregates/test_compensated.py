"""fsum and favg: nothing is lost, however rows are cut into states."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates import compensated
from bamquery.engine.cpu.aggregates.accumulator import concatenate_state_columns
from bamquery.engine.cpu.aggregates.compensated import CompensatedSum


def _merged(accumulator: CompensatedSum, values: list[Any], codes: list[int], cuts: list[int]) -> list[Any]:
    """The answer of two groups, from the states of the pieces between the cuts."""
    column: Any = pa.array(values, pa.float64())
    bounds = [0, *sorted(cuts), len(values)]
    states = [
        accumulator.partial(column.slice(start, end - start), np.array(codes[start:end], np.int64), 2)
        for start, end in pairwise(bounds)
    ]
    parts = tuple(concatenate_state_columns(own) for own in zip(*states, strict=True))
    return accumulator.final(accumulator.merge(parts, np.tile([0, 1], len(states)), 2)).to_pylist()


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_exact_however_rows_are_cut(seed: int) -> None:
    choose = random.Random(seed)
    values = [
        choose.choice((1.0, -1.0)) * 10.0 ** choose.randrange(17) for _ in range(choose.randrange(1, 40))
    ]
    values += [-value for value in values] + [0.1]
    choose.shuffle(values)
    codes = [choose.randrange(2) for _ in values]
    cuts = [choose.randrange(len(values)) for _ in range(3)]
    for mean in (False, True):
        found = _merged(CompensatedSum(mean=mean), values, codes, cuts)
        for group, answer in enumerate(found):
            own = [value for value, code in zip(values, codes, strict=True) if code == group]
            if not own:
                assert answer is None
                continue
            wanted = math.fsum(own) / (len(own) if mean else 1)
            assert answer == pytest.approx(wanted, rel=1e-15, abs=1e-16)


def test_infinities_and_nan_stay() -> None:
    found = _merged(CompensatedSum(mean=False), [math.inf, 1.0, None, math.nan, 1.0], [0, 0, 0, 1, 1], [2])
    assert found[0] == math.inf
    assert math.isnan(found[1])
    assert _merged(CompensatedSum(mean=True), [None, 3.0], [0, 1], [1]) == [None, 3.0]


@pytest.mark.parametrize("seed", range(5))
def test_a_sum_is_rounded_and_what_that_leaves(seed: int) -> None:
    """Which is so little that it does not change the sum, though it is not lost."""
    choose = random.Random(seed)
    values = [choose.uniform(-1, 1) * 10.0 ** choose.randrange(20) for _ in range(63)]
    values += [-value for value in values[:40]]
    codes = np.array([choose.randrange(3) for _ in values])
    high, low, _ = CompensatedSum(mean=False).partial(pa.array(values), codes, 3)
    rounded, rest = np.asarray(high), np.asarray(low)
    assert (rounded + rest == rounded).all()
    assert rest.any()


@pytest.mark.parametrize(("rows", "steps"), [(1, 0), (2, 1), (3, 2), (64, 6), (65, 7)])
def test_a_cancel_is_asked_for_before_each_halving(
    monkeypatch: pytest.MonkeyPatch, rows: int, steps: int
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(compensated, "check_cancelled", lambda: asked.append(True))
    accumulator = CompensatedSum(mean=False)
    accumulator.partial(pa.array([0.1] * rows), np.zeros(rows, np.int64), 1)
    assert len(asked) in {steps, steps + 1}
    assert len(asked) >= steps
