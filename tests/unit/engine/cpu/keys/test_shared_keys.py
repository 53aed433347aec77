"""Rows that several threads hash, deal out and copy, and sums of theirs, are those of one thread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bamquery import _native as native
from bamquery.engine.cpu.keys.hashing import hash_rows, partition_rows
from bamquery.statement_context.thread_budget import ThreadBudget, working_for
from tests.unit.shared_threads import THREADS, by_each

ROWS = 300_011


def _random() -> np.random.Generator:
    return np.random.default_rng(11)


def test_hashes_and_parts() -> None:
    """Parts have their rows in order, whichever thread has dealt them out."""
    numbers = _random().integers(0, 50_000, ROWS)
    columns = [
        pa.array(numbers, mask=numbers % 7 == 0),
        pa.array(numbers.astype(np.int32)),
        pa.array(numbers).cast(pa.decimal128(38, 0)),
    ]
    hashes = by_each(lambda: hash_rows(columns, ROWS))
    small = np.concatenate(
        [hash_rows([c.slice(i, 1000) for c in columns], 1000) for i in range(0, 9000, 1000)]
    )
    assert np.array_equal(hashes[0][:9000], small)
    for found in hashes[1:]:
        assert np.array_equal(found, hashes[0])
    parts = hashes[0] >> np.uint64(56) & np.uint64(63)
    for order, ends in by_each(lambda: partition_rows(columns, ROWS, 64, 0)):
        assert np.array_equal(order, np.argsort(parts, kind="stable"))
        assert ends == np.cumsum(np.bincount(parts.astype(int), minlength=64)).tolist()


@pytest.mark.parametrize("kind", ["bool", "int16", "int32", "float64"])
def test_values_at_places(kind: str) -> None:
    values = _random().integers(0, 100, 70_000).astype(kind)
    places = _random().integers(0, len(values), ROWS)
    for found in by_each(lambda: native.gather_values(values, places)):
        assert np.array_equal(found, values[places])
    for place in (-1, len(values)):
        outside = places.copy()
        outside[-5] = place
        for threads in THREADS:
            with working_for(ThreadBudget(threads)), pytest.raises(ValueError, match="no such value"):
                native.gather_values(values, outside)


@pytest.mark.parametrize(
    ("change", "order"), [(None, 2), ("gap", 1), ("twice", 0), ("back", 0), ("last", 0), ("second", 0)]
)
def test_orders_of_places(change: str | None, order: int) -> None:
    """Also where what is out of order is where the rows of one thread end."""
    for rows in (1, 2, 4096, 4097, ROWS) if change is None else (ROWS,):
        for at in [ROWS // threads for threads in THREADS[1:]] if change in ("twice", "back") else [5000]:
            places = np.arange(rows) + 7
            if change == "gap":
                places[at:] += 1
            elif change == "twice":
                places[at] = places[at - 1]
            elif change == "back":
                places[at:] -= 2
            elif change is not None:
                places[-1 if change == "last" else 1] = 0
            for found in by_each(lambda places=places: native.order_of_places(places)):
                assert found == order
    assert native.order_of_places(np.zeros(0, np.int64)) == 2


def test_flags_are_set_together() -> None:
    places = _random().integers(0, 100_000, ROWS)
    wanted = np.zeros(100_000, np.bool_)
    wanted[places] = True

    def set_flags(places: np.ndarray) -> np.ndarray:
        flags = np.zeros(len(wanted), np.bool_)
        native.set_flags(places, flags)
        return flags

    for found in by_each(lambda: set_flags(places)):
        assert np.array_equal(found, wanted)
    for place in (-1, len(wanted)):
        outside = np.append(places, place)
        for threads in THREADS:
            with working_for(ThreadBudget(threads)), pytest.raises(ValueError, match="no such flag"):
                set_flags(outside)


@pytest.mark.parametrize("limbs", [1, 2, 5])
def test_limbs(limbs: int) -> None:
    """A sum that does not fit is seen by whichever thread has it."""
    parts = [_random().integers(0, 2**32, ROWS) for _ in range(limbs)]
    parts[-1] = parts[-1] % 100 if limbs < 5 else np.zeros(ROWS, np.int64)
    if limbs == 5:
        parts[3] %= 10**6
    alone, *shared = by_each(lambda: native.join_limbs(parts))
    assert alone[1]
    for row in (0, 77, ROWS - 1):
        low, high = (int(word) for word in alone[0].reshape(-1, 2)[row])
        expected = sum(int(part[row]) << 32 * i for i, part in enumerate(parts))
        assert high * 2**64 + low % 2**64 == expected
    for words, fits in shared:
        assert fits
        assert np.array_equal(words, alone[0])
    if limbs == 5:
        parts[4][ROWS - 2] = 1
        assert [fits for _, fits in by_each(lambda: native.join_limbs(parts))] == [False] * len(THREADS)
