"""Codes of keys: one for each key, none for those that are nowhere."""

from __future__ import annotations

import pyarrow as pa

from bamquery.engine.cpu.keys.key_codes import KeyCodes


def _codes(
    held: list[pa.Array], probed: list[pa.Array], *nulls_equal: bool
) -> tuple[list[int], list[int], int]:
    found = KeyCodes.from_rows(held, None, nulls_equal)
    assert found is not None
    return found.encode(held).tolist(), found.encode(probed).tolist(), found.codes


def test_equal_keys_have_equal_codes_and_others_have_none() -> None:
    held = [pa.array([5, 7, 5], pa.int32()), pa.array([-1, 0, 2], pa.int64())]
    probed = [pa.array([5, 7, 6, 8, 5, None], pa.int32()), pa.array([2, 0, 1, 0, 3, 2], pa.int64())]
    mine, theirs, codes = _codes(held, probed, False, False)
    assert len(set(mine)) == 3
    assert theirs[0] == mine[2]
    assert theirs[1] == mine[1]
    assert theirs[2] not in mine  # within the ranges, but no such row
    assert theirs[3:] == [codes] * 3


def test_null_is_a_value_where_nulls_are_equal() -> None:
    held = [pa.array([None, 3, 4], pa.int16())]
    mine, theirs, codes = _codes(held, [pa.array([4, None, 3, 9], pa.int16())], True)
    assert theirs == [mine[2], mine[0], mine[1], codes]
    assert max(mine) < codes


def test_the_ends_of_64_bits() -> None:
    top = pa.array([2**64 - 1, 2**64 - 3], pa.uint64())
    mine, theirs, codes = _codes([top], [pa.array([0, 2**64 - 1, 2**63], pa.uint64())], False)
    assert theirs == [codes, mine[0], codes]
    bottom = pa.array([-(2**63), -(2**63) + 5], pa.int64())
    mine, theirs, codes = _codes([bottom], [pa.array([2**63 - 1, -(2**63), -1], pa.int64())], False)
    assert theirs == [codes, mine[0], codes]


def test_what_has_no_codes() -> None:
    wide = pa.array([-(2**63), 2**63 - 1], pa.int64())
    assert KeyCodes.from_rows([wide], None, [False]) is None
    assert KeyCodes.from_rows([pa.array(["a"], pa.large_string())], None, [False]) is None
    assert KeyCodes.from_rows([pa.array([1.0])], None, [False]) is None


def test_dates() -> None:
    days = [pa.array([10, 12], pa.date32())]
    mine, theirs, _ = _codes(days, [pa.array([12, 11, 10], pa.date32())], False)
    assert theirs[0] == mine[1]
    assert theirs[2] == mine[0]
    assert theirs[1] not in mine
