"""Joins on the CPU: keys of every type, portions, and what dense keys are found by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.keys import join_table
from bamquery.engine.cpu.keys.join_table import CpuJoinTable, are_dense_keys
from bamquery.statement_context.thread_budget import ThreadBudget, working_for
from tests.devices.joins import check_join_keys, check_partition, check_take_or_null


def _batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), [str(i) for i in range(len(columns))])


def test_keys() -> None:
    check_join_keys(CpuDevice())


def test_keys_in_small_portions(monkeypatch) -> None:
    monkeypatch.setattr(join_table, "_PORTION", 5)
    check_join_keys(CpuDevice(), (0, 1, 31, 64))


def test_take_or_null() -> None:
    check_take_or_null(CpuDevice())


def test_partition() -> None:
    check_partition(CpuDevice())


def test_one_row_with_more_pairs_than_a_portion(monkeypatch) -> None:
    monkeypatch.setattr(join_table, "_PORTION", 10)
    held = _batch(pa.array([7] * 25 + [8]))
    portions = list(CpuJoinTable(held, [False]).matches(_batch(pa.array([8, 7, 9, 7]))))
    assert [(stop, len(positions)) for stop, positions, _ in portions] == [(1, 1), (2, 25), (3, 0), (4, 25)]
    assert np.concatenate([found for _, _, found in portions]).tolist() == [25, *range(25), *range(25)]


@pytest.mark.parametrize(
    ("counts", "portion", "stops"),
    [([5, 5, 5], 10, [2, 3]), ([5, 6, 4], 10, [1, 3]), ([11, 1], 10, [1, 2]), ([0, 0], 10, [2])],
)
def test_portions_are_as_full_as_may_be(
    counts: list[int], portion: int, stops: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_table, "_PORTION", portion)
    held = _batch(pa.array(np.repeat(np.arange(len(counts)), counts)))
    probe = _batch(pa.array(np.arange(len(counts))))
    portions = list(CpuJoinTable(held, [False]).matches(probe))
    assert [stop for stop, _, _ in portions] == stops
    assert (
        np.concatenate([positions for _, positions, _ in portions]).tolist()
        == np.repeat(np.arange(len(counts)), counts).tolist()
    )


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("threads", [1, 4])
def test_rows_with_few_partners_are_one_portion(repeats: int, share: float, threads: int) -> None:
    """However many they are: each portion has pairs enough, or it is the last one; none has too many."""
    random = np.random.default_rng(3)
    keys = np.arange(1 << 17)
    held = _batch(pa.array(np.repeat(keys, repeats)))
    rows = (1 << 20) + 77
    wanted = np.where(random.random(rows) < share, random.choice(keys, rows), -5)
    wanted[: 1 << 18] = np.where(np.arange(1 << 18) < 10, 1, -5)  # the first ones say nothing of the others
    with working_for(ThreadBudget(threads)):
        table = CpuJoinTable(held, [False])
        portions = list(table.matches(_batch(pa.array(wanted))))
    assert [stop for stop, _, _ in portions][-1] == rows
    most, step = join_table._PORTION, 1 << 18
    start = 0
    for stop, positions, _ in portions:
        assert len(positions) <= most
        # What might come of another step would have been too much.
        dense = repeats * max(np.mean(wanted[start : stop + step] >= 0), 0.0)
        assert stop == rows or len(positions) + 2 * step * dense > most
        start = stop
    positions = np.concatenate([positions for _, positions, _ in portions])
    found = np.concatenate([found for _, _, found in portions])
    partners = np.flatnonzero(wanted >= 0)
    assert np.array_equal(positions, np.repeat(partners, repeats))
    firsts = np.repeat(wanted[partners] * repeats, repeats)
    assert np.array_equal(found, firsts + np.tile(np.arange(repeats), len(partners)))


@pytest.mark.parametrize("held", [[], [1, 2], [1, 1]])
def test_no_keys_have_one_portion_of_no_pairs(held: list[int]) -> None:
    table = CpuJoinTable(_batch(pa.array(held, pa.int64())), [False])
    ((stop, positions, found),) = table.matches(_batch(pa.array([], pa.int64())))
    assert (stop, len(positions), len(found)) == (0, 0, 0)


def test_integers_at_the_ends_of_their_types() -> None:
    for kind in (pa.int8(), pa.uint8(), pa.int64(), pa.uint64()):
        low, high = (
            (0, 2**kind.bit_width - 1)
            if pa.types.is_unsigned_integer(kind)
            else (
                -(2 ** (kind.bit_width - 1)),
                2 ** (kind.bit_width - 1) - 1,
            )
        )
        held = _batch(pa.array([high, low, high - 1], kind))
        probe = _batch(pa.array([low, high, low + 1, high - 1, None], kind))
        ((_, positions, found),) = CpuJoinTable(held, [False]).matches(probe)
        assert list(zip(positions.tolist(), found.tolist(), strict=True)) == [(0, 1), (1, 0), (3, 2)], kind


def test_keys_of_one_hash_are_told_apart(monkeypatch) -> None:
    def alike(columns: list[pa.Array], rows: int) -> np.ndarray:
        return np.zeros(rows, np.uint64)

    monkeypatch.setattr(join_table, "hash_rows", alike)
    check_join_keys(CpuDevice(), (0, 1, 31))
    values = [[1.5, None, 2.5, None], ["a", "b", None, None]]
    keys = _batch(pa.array(values[0]), pa.array(values[1], pa.large_string()))
    ((_, positions, found),) = CpuJoinTable(keys, [True, True]).matches(keys)
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == [(i, i) for i in range(4)]


def test_nulls_without_a_type() -> None:
    keys = _batch(pa.array([1.5, 2.5]), pa.nulls(2))
    ((_, positions, found),) = CpuJoinTable(keys, [False, True]).matches(keys)
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == [(0, 0), (1, 1)]
    ((_, positions, _),) = CpuJoinTable(keys, [False, False]).matches(keys)
    assert not len(positions)


def test_memory_of_tables() -> None:
    few = CpuJoinTable(_batch(pa.array(np.arange(1 << 10))), [False])
    assert few.nbytes == 4 << 10, "a row for each number"
    rows = 1 << 15
    numbers = np.arange(rows)
    bits = 16 * rows // 64
    unique = CpuJoinTable(_batch(pa.array(numbers)), [False])
    assert unique.nbytes == bits, "a bit for each number, and how many are before it"
    turned = CpuJoinTable(_batch(pa.array(numbers[::-1])), [False])
    assert turned.nbytes == bits + 4 * rows, "and its row"
    repeated = CpuJoinTable(_batch(pa.array(numbers // 2)), [False])
    assert repeated.nbytes == bits // 2 + 4 * (rows // 2 + 1), "and where its rows begin"
    lists = CpuJoinTable(_batch(pa.array(numbers[::-1] // 2)), [False])
    assert lists.nbytes <= bits // 2 + 4 * rows + 4 * (rows // 2 + 3), "and lists"
    hashed = CpuJoinTable(_batch(pa.array(numbers * 1.5)), [False])
    assert hashed.nbytes <= 16 * 2 * rows, "two slots a row"
    lists = CpuJoinTable(_batch(pa.array(numbers // 2 * 1.5)), [False])
    assert lists.nbytes <= 16 * 2 * rows + 4 * rows, "and lists"


@pytest.mark.parametrize(("rows", "slots"), [(2, 16), (7, 16), (8, 16), (9, 32), (16, 32), (17, 64)])
def test_there_are_two_slots_a_row_at_least(rows: int, slots: int) -> None:
    """As many as a power of two."""
    keys = _batch(pa.array((np.arange(rows) + 0.5) * 1000), pa.array(np.arange(rows) + 1e9))
    table = CpuJoinTable(keys, [False, False])
    assert table.nbytes == 16 * slots
    assert [len(found) for _, _, found in table.matches(keys)] == [rows]


def test_slices() -> None:
    whole = pa.array(["a", "b", "c", None, "d"], pa.large_string())
    held, probe = _batch(whole.slice(1)), _batch(whole.slice(2, 3))
    ((_, positions, found),) = CpuJoinTable(held, [False]).matches(probe)
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("rows", "span", "dense"),
    [
        (2, (1 << 18) - 1, True),
        (2, 1 << 18, False),
        (8192, (1 << 20) - 1, True),
        (8192, 1 << 20, False),
        (2, 1 << 40, False),
    ],
)
def test_numbers_close_to_each_other_have_a_bit_each(rows: int, span: int, dense: bool) -> None:
    keys = np.append(np.arange(rows - 1), span)
    table = CpuJoinTable(_batch(pa.array(keys)), [False])
    assert table.nbytes == ((span + 1) // 4 if dense else 16 * max(2 * rows, 16))
    ((_, positions, found),) = table.matches(_batch(pa.array([span, -1, 0, span - 1])))
    assert list(zip(positions.tolist(), found.tolist(), strict=True)) == [(0, rows - 1), (2, 0)]


def _made_by(threads: int, keys: pa.RecordBatch, *, nulls_equal: bool = False) -> CpuJoinTable:
    with working_for(ThreadBudget(threads)):
        return CpuJoinTable(keys, [nulls_equal])


@pytest.mark.parametrize("order", ["sorted", "mixed", "repeated", "repeated, sorted"])
@pytest.mark.parametrize("nulls_equal", [False, True])
@pytest.mark.parametrize("some_null", [False, True])
def test_a_table_that_several_threads_have_made(order: str, *, nulls_equal: bool, some_null: bool) -> None:
    """Finds the same rows in the same order as one of one thread."""
    rows, random = 700_001, np.random.default_rng(5)
    values = np.arange(rows) * 3
    if order == "mixed":
        random.shuffle(values)
    elif order != "sorted":
        values = random.integers(0, rows // 2, rows)
        values = np.sort(values) if order.endswith("sorted") else values
    absent = random.random(rows) < 0.01 if some_null else None
    held = _batch(pa.array(values, mask=absent))
    probe = _batch(pa.array([*range(0, 3 * rows, 1000), *values[:5].tolist(), None]))
    alone, shared = (_made_by(threads, held, nulls_equal=nulls_equal) for threads in (1, 5))
    for mine, others in zip(alone.matches(probe), shared.matches(probe), strict=True):
        assert mine[0] == others[0]
        assert len(mine[1])
        assert (mine[1] == others[1]).all()
        assert (mine[2] == others[2]).all()


def test_dense_keys() -> None:
    """Those of all frames together, of whole numbers."""
    near, far = pa.array([1, 2, None]), pa.array([10_000, 10_001])
    assert are_dense_keys([_batch(near), _batch(near)])
    assert not are_dense_keys([_batch(near), _batch(far)])
    assert are_dense_keys([_batch(near, near)])
    assert not are_dense_keys([_batch(near, pa.array([1, 100, 200]))])
    assert not are_dense_keys([_batch(pa.array(["a"]))])


@pytest.mark.parametrize("keys", ["unique", "repeated", "in_order", "sparse"])
def test_threads_make_the_same_table(keys: str) -> None:
    random = np.random.default_rng(3)
    rows = 600_000
    numbers = {
        "unique": random.permutation(rows),
        "repeated": random.integers(-50, rows // 3, rows),
        "in_order": np.sort(random.integers(0, rows // 3, rows)),
        "sparse": random.integers(-(2**62), 2**62, rows),
    }[keys]
    held = _batch(pa.array(numbers, mask=random.random(rows) < 0.01))
    probe = _batch(
        pa.array(numbers[:5_000] + 1),
    )
    alone, shared = (list(_made_by(threads, held).matches(probe)) for threads in (1, 4))
    for mine, other in zip(alone, shared, strict=True):
        assert mine[0] == other[0]
        assert np.array_equal(mine[1], other[1])
        assert np.array_equal(mine[2], other[2])
