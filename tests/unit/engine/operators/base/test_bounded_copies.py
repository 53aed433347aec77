"""Copies of rows, cut so that each portion's bytes are bounded."""

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within


def rows_of(*texts, **columns):
    columns = {"x": pa.array(texts, pa.large_string())} | columns
    return CopiedRows(CpuDevice(), pa.record_batch(columns))


def test_few_bytes_are_one_portion():
    rows = rows_of("a", "bb", "ccc")
    assert list(portions_within([(rows, np.array([2, 2, 0, 1]))], 1000)) == [slice(0, 4)]


def test_portions_cover_all_rows_and_fit():
    random = np.random.default_rng(5)
    texts = ["x" * int(n) for n in random.integers(0, 500, 100)]
    left, right = rows_of(*texts), rows_of(*texts[::-1], y=pa.array(range(100)))
    positions, found = random.integers(0, 100, 5000), random.integers(-1, 100, 5000)
    portions = list(portions_within([(left, positions), (right, found)], 10_000))
    assert [p.start for p in portions] == [0, *(p.stop for p in portions[:-1])]
    assert portions[-1].stop == 5000
    device = CpuDevice()
    for some in portions:
        size = device.take(left.frame, positions[some]).nbytes
        size += device.take_or_null(right.frame, found[some]).nbytes
        assert size < 11_000  # and what bits of nulls and a last offset take


def test_a_row_that_is_too_large_is_a_portion_of_its_own():
    rows = rows_of("x" * 100, "y")
    portions = list(portions_within([(rows, np.array([1, 0, 0, 1, 1]))], 60))
    assert portions == [slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 5)]


@pytest.mark.parametrize("count", [0, 1])
def test_no_row_and_one_row_are_one_portion(count):
    rows = rows_of("x" * 100)
    assert list(portions_within([(rows, np.zeros(count, np.int64))], 10)) == [slice(0, count)]


def test_nulls_and_rows_without_texts_count():
    sliced = pa.record_batch({"x": pa.array(["aaa", None, "b"], pa.large_string())}).slice(1)
    assert CopiedRows(CpuDevice(), sliced).copy_sizes(np.array([0, 1, -1])).tolist() == [8, 9, 8]
    numbers = pa.record_batch({"n": pa.array([1, 2], pa.int32())})
    assert CopiedRows(CpuDevice(), numbers).copy_sizes(np.array([0, -1])).tolist() == [4, 4]


def test_values_of_other_types_count_by_their_mean():
    lists = pa.record_batch({"x": pa.array([[1, 2], [3]], pa.list_(pa.int64())), "n": pa.nulls(2)})
    assert CopiedRows(CpuDevice(), lists).upper_bytes(1) == -(-lists.column(0).nbytes // 2)


def test_texts_in_a_dictionary_are_not_copied():
    encoded = pa.record_batch({"x": pa.array(["a" * 1000] * 3).dictionary_encode()})
    assert CopiedRows(CpuDevice(), encoded).upper_bytes(2) == 8
