"""Calls over windows against what a person would count: rows by rows, in partitions of few."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.windows.rows import CpuWindowRows
from bamquery.engine.windows.calls import call_values
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.plans import window_of

SCHEMA = pa.schema([("p", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("n", pa.int64())])
BOUNDS = [
    *("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW"),
    *("1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING"),
]
EXCLUDED = ["NO OTHERS", "CURRENT ROW", "GROUP", "TIES"]


@dataclass(frozen=True)
class _Partition:
    """Rows of one partition in order."""

    keys: list[int]
    values: list[int | None]
    offsets: list[int | None]

    def group(self, row: int) -> int:
        """Number of its group of peers."""
        return sorted(set(self.keys)).index(self.keys[row])

    def frame(self, row: int, unit: str, start: str, end: str, exclude: str) -> list[int]:
        """The rows of a row's frame."""
        place: dict[str, Callable[[int], int]] = {
            "ROWS": lambda other: other,
            "GROUPS": self.group,
            "RANGE": lambda other: self.keys[other],
        }
        low, high = (place[unit](row) + _away(bound) for bound in (start, end))
        inside = [other for other in range(len(self.keys)) if low <= place[unit](other) <= high]
        return [other for other in inside if not self._is_excluded(row, other, exclude)]

    def _is_excluded(self, row: int, other: int, exclude: str) -> bool:
        peers = self.keys[row] == self.keys[other]
        return {"CURRENT ROW": row == other, "GROUP": peers, "TIES": peers and row != other}.get(
            exclude, False
        )

    def neighbour(self, row: int, offset: int | None, *, ignore_nulls: bool) -> int | None:
        """The value so many rows ahead."""
        if offset is None:
            return None
        rows = [r for r, value in enumerate(self.values) if not ignore_nulls or value is not None or r == row]
        place = rows.index(row) + offset
        return self.values[rows[place]] if 0 <= place < len(rows) else -1


def _away(bound: str) -> float:
    words = bound.split()
    distance = {"UNBOUNDED": float("inf"), "CURRENT": 0.0}.get(words[0])
    distance = float(words[0]) if distance is None else distance
    return -distance if bound.endswith("PRECEDING") else distance


def _picked(values: Sequence[int | None], place: int) -> int | None:
    return values[place] if -len(values) <= place < len(values) else None


def _frames(draw: random.Random) -> Iterator[tuple[str, str, str, str]]:
    for unit, exclude in product(["ROWS", "GROUPS", "RANGE"], EXCLUDED):
        first, last = sorted(draw.choices(range(len(BOUNDS)), k=2))
        if first != len(BOUNDS) - 1 and last:
            yield unit, BOUNDS[first], BOUNDS[last], exclude


def _partitions(draw: random.Random) -> list[_Partition]:
    found = []
    for _ in range(draw.randint(1, 4)):
        rows = range(draw.choice([1, 2, 2, 5, 8]))
        keys = sorted(draw.choice([1, 2, 3, 5, 9]) for _ in rows)
        some = draw.choice([0.2, 0.7])
        values = [draw.randint(0, 99) if draw.random() < some else None for _ in rows]
        found.append(_Partition(keys, values, [draw.choice([None, -2, -1, 0, 1, 2, 90, -90]) for _ in rows]))
    return found


def _batch(partitions: Sequence[_Partition]) -> pa.RecordBatch:
    rows = [
        (number, *row)
        for number, one in enumerate(partitions)
        for row in zip(one.keys, one.values, one.offsets, strict=True)
    ]
    return pa.record_batch(list(zip(*rows, strict=True)), schema=SCHEMA)


def _check(calls: str, batch: pa.RecordBatch, expected: list[Any]) -> None:
    window = window_of(calls, SCHEMA)
    found = CpuDevice().window(window, batch)
    for name, column, wanted in zip(window.names, found.columns, expected, strict=True):
        assert column.to_pylist() == wanted, name


@pytest.mark.parametrize("seed", range(10))
def test_frames(seed: int) -> None:
    draw = random.Random(seed)
    partitions = _partitions(draw)
    calls: list[str] = []
    expected: list[Any] = []
    for unit, start, end, exclude in _frames(draw):
        over = f"OVER (PARTITION BY p ORDER BY k {unit} BETWEEN {start} AND {end} EXCLUDE {exclude})"
        frames = [
            [one.values[row] for row in one.frame(own, unit, start, end, exclude)]
            for one in partitions
            for own in range(len(one.keys))
        ]
        known = [[value for value in frame if value is not None] for frame in frames]
        place = draw.randint(1, 3)
        for call, values in (
            ("count(*)", [len(frame) for frame in frames]),
            ("max(v)", [max(frame, default=None) for frame in known]),
            ("first_value(v)", [_picked(frame, 0) for frame in frames]),
            ("last_value(v)", [_picked(frame, -1) for frame in frames]),
            ("first_value(v IGNORE NULLS)", [_picked(frame, 0) for frame in known]),
            (f"nth_value(v, {place})", [_picked(frame, place - 1) for frame in frames]),
            (f"nth_value(v, {place} IGNORE NULLS)", [_picked(frame, place - 1) for frame in known]),
        ):
            calls.append(f"{call} {over}")
            expected.append(values)
    _check(", ".join(calls), _batch(partitions), expected)


@pytest.mark.parametrize("seed", range(8))
def test_places(seed: int) -> None:
    partitions = _partitions(random.Random(seed))

    def each(value: Callable[[_Partition, int], Any]) -> list[Any]:
        return [value(one, row) for one in partitions for row in range(len(one.keys))]

    def neighbours(toward: int, *, ignore_nulls: bool) -> list[Any]:
        return each(
            lambda one, row: one.neighbour(
                row,
                None if (offset := one.offsets[row]) is None else toward * offset,
                ignore_nulls=ignore_nulls,
            )
        )

    def tile(one: _Partition, row: int) -> int:
        """Of three: the first ones have a row more where rows are left."""
        size, left = divmod(len(one.keys), 3)
        ends = [size * (i + 1) + min(i + 1, left) for i in range(3)]
        return 1 + sum(row >= end for end in ends)

    expected: dict[str, list[Any]] = {
        "row_number()": each(lambda one, row: row + 1),
        "rank()": each(lambda one, row: one.keys.index(one.keys[row]) + 1),
        "dense_rank()": each(lambda one, row: one.group(row) + 1),
        "percent_rank()": each(lambda one, row: one.keys.index(one.keys[row]) / max(len(one.keys) - 1, 1)),
        "cume_dist()": each(lambda one, row: sum(k <= one.keys[row] for k in one.keys) / len(one.keys)),
        "ntile(3)": each(tile),
        "lead(v, n, -1)": neighbours(1, ignore_nulls=False),
        "lag(v, n, -1)": neighbours(-1, ignore_nulls=False),
        "lead(v, n, -1 IGNORE NULLS)": neighbours(1, ignore_nulls=True),
        "lag(v, n, -1 IGNORE NULLS)": neighbours(-1, ignore_nulls=True),
    }
    calls = ", ".join(f"{call} OVER (PARTITION BY p ORDER BY k)" for call in expected)
    _check(calls, _batch(partitions), list(expected.values()))


def test_one_value_that_is_not_null() -> None:
    """Of rows that find none another one is looked at, and there is no other."""
    batch = _batch([_Partition([1, 2, 3], [None, 7, None], [1, 1, 1])])
    frame = "ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING"
    _check(
        "lead(v IGNORE NULLS) OVER (ORDER BY k), lag(v IGNORE NULLS) OVER (ORDER BY k), "
        f"first_value(v IGNORE NULLS) OVER (ORDER BY k {frame})".replace(
            "(ORDER BY k)", f"(ORDER BY k {frame})"
        ),
        batch,
        [[7, None, None], [None, None, 7], [7, 7, None]],
    )


def test_each_call_asks_whether_to_go_on() -> None:
    batch = _batch([_Partition([1, 2, 3], [1, 2, 3], [1, 1, 1])])

    window = window_of("row_number() OVER (ORDER BY k)", SCHEMA)

    def asked(calls: int) -> int:
        count = 0

        def check() -> None:
            nonlocal count
            count += 1

        with use_cancellation_check(check):
            call_values(CpuWindowRows(batch), replace(window, calls=window.calls * calls))
        return count

    assert asked(3) - asked(2) == asked(2) - asked(1) == 1
