"""Rows that several threads group are of the groups that one finds, with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.pipeline.instructions import Operation
from bamquery.statement_context.thread_budget import ThreadBudget, working_for

ROWS = 9 * (1 << 15) + 77
THREADS = (2, 3, 7)
Key = tuple[Any, Any, int]


def _alone_and_shared(work: Callable[[], Any]) -> tuple[Any, list[Any]]:
    found = []
    for threads in (1, *THREADS):
        budget = ThreadBudget(threads)
        with working_for(budget):
            found.append(work())
        assert budget.free == threads
    return found[0], found[1:]


def _random() -> np.random.Generator:
    return np.random.default_rng(17)


def _drawn(keys: int, spread: int) -> NDArray[np.int64]:
    return _random().integers(-keys // 2, keys - keys // 2, ROWS) * spread


def _with_nulls(values: NDArray[Any]) -> Key:
    flags = _random().random(ROWS + 3) < 0.7
    return values, np.packbits(flags, bitorder="little"), 3


def _two_words(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([values, values >> 5], 1)


KEYS: dict[str, Callable[[], list[Key]]] = {
    "few": lambda: [(_drawn(7, 1 << 40), None, 0), (_drawn(3, 1).astype(np.int8), None, 0)],
    "few places": lambda: [_with_nulls(_drawn(5, 1).astype(np.int16))],
    "few words": lambda: [(_drawn(5, 1 << 60), None, 0), _with_nulls(_two_words(_drawn(9, 1 << 50)))],
    "one": lambda: [(np.full(ROWS, 5), None, 0)],
    "one, and one late": lambda: [(np.r_[np.full(ROWS - 1, 5), -5], None, 0)],
    "places": lambda: [(_drawn(2 * ROWS, 1), None, 0)],
    "places in order": lambda: [(np.sort(_drawn(ROWS // 4, 3)), None, 0)],
    "places, falling": lambda: [(np.arange(ROWS)[::-1] // 3, None, 0)],
    "places of all threads": lambda: [(np.tile(np.arange(40_000), 8)[:ROWS], None, 0)],
    "places with nulls": lambda: [_with_nulls(_drawn(ROWS, 1).astype(np.uint32)), (_drawn(2, 1), None, 0)],
    "codes": lambda: [(_drawn(ROWS, 1 << 35), None, 0)],
    "all codes": lambda: [(_random().integers(0, 1 << 64, ROWS, np.uint64), None, 0)],
    "codes with nulls": lambda: [_with_nulls(_drawn(40_000, 1 << 30))],
    "one of most rows": lambda: [(np.where(_random().random(ROWS) < 0.9, 7, _drawn(ROWS, 1 << 30)), None, 0)],
    "words": lambda: [(_drawn(90_000, 1 << 46), None, 0), _with_nulls(_drawn(2, 1 << 61))],
    "wide words": lambda: [_with_nulls(_two_words(_drawn(90_000, 1 << 46))), (_drawn(4, 1), None, 0)],
}


@pytest.mark.parametrize("name", KEYS)
def test_groups(name: str) -> None:
    keys = KEYS[name]()
    (codes, leaders), shared = _alone_and_shared(lambda: native.group_rows(keys))
    assert (codes[leaders] == np.arange(len(leaders))).all()
    for own, own_leaders in shared:
        assert np.array_equal(own, codes)
        assert np.array_equal(own_leaders, leaders)


def _program(keys: int) -> native.Program:
    """Of columns: keys, words, doubles and flags."""
    loads = [[Operation.LOAD, i, 0, 0, 0, i, 0] for i in range(keys + 3)]
    words, doubles, flags = keys, keys + 1, keys + 2
    calls = [[0, -1, -1], [0, words, flags], [1, words, -1], [1, words, flags]]
    calls += [[3, words, flags], [4, words, -1], [5, doubles, -1], [6, doubles, flags]]
    kinds = ["int64"] * (keys - 1) + ["bool", "int64", "float64", "bool"]
    return native.Program(np.array(loads), kinds, np.array(calls), list(range(keys)))


def _same(one: Any, other: Any) -> bool:
    """Of arrays in tuples and lists, to the bit."""
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _columns(*keys: NDArray[np.int64]) -> list[Any]:
    random = _random()
    bits = [np.packbits(random.random(ROWS) < 0.6, bitorder="little") for _ in range(4)]
    doubles = random.choice([0.0, -0.0, np.nan, 1.5, -np.inf], ROWS)
    words = random.integers(-(2**62), 2**62, ROWS)
    keyed = [*((key, bits[0], 0) for key in keys), (bits[1], bits[2], 0)]
    return [*keyed, (words, bits[3], 0), (doubles, None, 0), (bits[2], bits[0], 0)]


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("name", ["random", "in order", "falling", "many"])
def test_groups_of_a_program(name: str, *, coded: bool) -> None:
    key = {
        "random": _drawn(40, 3),
        "in order": np.arange(ROWS) // 5_000,
        "falling": np.arange(ROWS)[::-1] // 777,
        "many": _drawn(20_000, 1),
    }[name]
    columns, program = _columns(key), _program(2)

    def group() -> Any:
        codes = np.full(ROWS, -1, np.int32) if coded else None
        return program.group(columns, ROWS, codes), codes

    alone, shared = _alone_and_shared(group)
    assert alone[0][0] == len(alone[0][1][0][0]) > 40
    assert not coded or len(np.unique(alone[1])) == alone[0][0]
    for found in shared:
        assert _same(found, alone)


@pytest.mark.parametrize("row", [0, ROWS // 2, ROWS - 1])
def test_a_key_that_is_far_from_the_others(row: int) -> None:
    """Whichever thread sees it."""
    key = _drawn(40, 1)
    key[row] = 1 << 40
    bits = np.full(ROWS // 8 + 1, 255, np.uint8)
    columns = [(key, None, 0), *_columns(key)[1:]]
    columns[1] = (bits, None, 0)
    program = _program(2)
    alone, shared = _alone_and_shared(lambda: program.group(columns, ROWS, None))
    assert alone is False
    assert shared == [False] * len(THREADS)


def test_a_number_that_does_not_fit() -> None:
    key, ones = _drawn(40, 1), np.ones(ROWS, np.int64)
    ones[ROWS - 9] = 2**62
    steps = [[Operation.LOAD, 0, 0, 0, 0, 0, 0], [Operation.LOAD, 1, 0, 0, 0, 1, 0]]
    steps.append([Operation.ADD, 2, 1, 1, 0, 0, 0])
    program = native.Program(np.array(steps), ["int64", "int64"], np.array([[1, 2, -1]]), [0])
    columns = [(key, None, 0), (ones, None, 0)]
    alone, shared = _alone_and_shared(lambda: program.group(columns, ROWS, None))
    assert alone is None
    assert shared == [None] * len(THREADS)
