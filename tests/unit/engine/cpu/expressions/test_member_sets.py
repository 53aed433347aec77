"""Whether values are among many: by flags and by hashes, the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.member_sets import is_member
from bamquery.plan.expressions import Members

LEAST, GREATEST = -(2**63), 2**63 - 1
NUMBERS = [LEAST, -300, -1, 0, 1, 6, 7, 8, 299, 300, GREATEST, None]


def _answers(values: list[Any], members: list[Any], kind: pa.DataType) -> list[bool | None]:
    column: Any = pa.array(values, pa.int64()).cast(kind)
    wanted: Any = pa.array(members, pa.int64()).cast(kind)
    return is_member(column, Members(wanted)).to_pylist()


@pytest.mark.parametrize("members", [[7], [-300, -1, 7, 300], [LEAST, GREATEST], [GREATEST], [LEAST], []])
def test_numbers(members: list[int]) -> None:
    expected = [None if number is None else number in members for number in NUMBERS]
    assert _answers(NUMBERS, members, pa.int64()) == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64(), pa.date32()])
def test_types(kind: pa.DataType) -> None:
    values = [0, 1, 7, 100, 127, None]
    through = pa.int32() if pa.types.is_date(kind) else kind
    column: Any = pa.array(values, through).cast(kind)
    wanted: Any = pa.array([1, 100], through).cast(kind)
    assert is_member(column, Members(wanted)).to_pylist() == [False, True, False, True, False, None]


def test_texts() -> None:
    wanted: Any = pa.array(["b", ""], pa.large_string())
    column: Any = pa.array(["a", "b", None, ""], pa.large_string())
    assert is_member(column, Members(wanted)).to_pylist() == [False, True, None, True]


def test_slices_and_many() -> None:
    random = np.random.default_rng(3)
    values = random.integers(-5_000, 5_000, 20_000)
    members = np.unique(random.integers(-4_000, 4_000, 900))
    column: Any = pa.array(values).slice(11)
    wanted: Any = pa.array(members)
    found = is_member(column, Members(wanted)).to_numpy(zero_copy_only=False)
    assert (found == np.isin(values[11:], members)).all()


def test_nothing() -> None:
    nothing: Any = pa.array([], pa.int64())
    wanted: Any = pa.array([1, 2], pa.int64())
    assert is_member(nothing, Members(wanted)).to_pylist() == []
