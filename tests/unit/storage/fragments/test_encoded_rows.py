"""Rows that are encoded heap by heap make the file that they make all at once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from bamquery.errors import CancelledError, StorageError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments import string_dictionary
from bamquery.storage.fragments.check import check_fragment
from bamquery.storage.fragments.choose_packing import FORCED
from bamquery.storage.fragments.encoded_columns import EncodedRows
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.rows import FragmentRows
from bamquery.storage.fragments.string_dictionary import StringDictionary
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from tests.unit.storage.random_columns import Sample, assert_same, samples


def heap_by_heap(batches: Sequence[pa.RecordBatch]) -> EncodedRows:
    rows = EncodedRows(batches[0].schema)
    for batch in batches:
        rows.add(BatchRows([batch]), lambda: False)
    return rows


@pytest.mark.parametrize("forced", [False, True])
@settings(max_examples=60, deadline=None)
@given(sample=samples())
def test_values_are_those_that_came(sample: Sample, forced: bool) -> None:
    schema = sample.whole.schema
    if not sample.whole.num_rows:
        return
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setitem(FORCED, "pack", forced)
        rows = heap_by_heap(sample.batches)
        assert rows.rows == sample.whole.num_rows
        entry = write_fragment(POSIX, Path(name), "f", schema, rows)
        fragment = Fragment.open(Path(name), entry, schema)
        assert not check_fragment(fragment)
        for index, column in enumerate(sample.whole.columns):
            chunks = [*FragmentRows(fragment).column(index)]
            assert_same(pa.chunked_array(chunks).unify_dictionaries().combine_chunks(), column)


@settings(max_examples=40, deadline=None)
@given(sample=samples())
def test_one_heap_makes_the_file_that_it_makes_otherwise(sample: Sample) -> None:
    schema = sample.whole.schema
    if not sample.whole.num_rows:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = BatchRows(sample.batches)
        rows = EncodedRows(schema)
        rows.add(source, lambda: False)
        heap = write_fragment(POSIX, folder, "heap", schema, rows)
        once = write_fragment(POSIX, folder, "once", schema, source, encoding="auto")
        assert (folder / "heap.arrow").read_bytes() == (folder / "once.arrow").read_bytes()
        assert (heap.data_bytes, heap.vectors_crc) == (once.data_bytes, once.vectors_crc)


def test_strings_that_become_many_are_no_dictionary_any_more(tmp_path: Path) -> None:
    few = pa.array(["a", "b", None] * 30_000, pa.large_string())
    many = pa.array([f"{n} {n * 7919}" for n in range(90_000)], pa.large_string())
    batches = [pa.record_batch([strings], names=["s"]) for strings in (few, many, few)]
    rows = EncodedRows(batches[0].schema)
    rows.add(BatchRows(batches[:1]), lambda: False)
    before = rows.held_bytes
    assert 0 < before < 200_000
    for batch in batches[1:]:
        rows.add(BatchRows([batch]), lambda: False)
    assert rows.held_bytes > before
    entry = write_fragment(POSIX, tmp_path, "f", batches[0].schema, rows)
    fragment = Fragment.open(tmp_path, entry, batches[0].schema)
    assert fragment.layout.columns[0].dictionary is None
    assert pa.concat_arrays(FragmentRows(fragment).column(0)).equals(pa.concat_arrays([few, many, few]))


@pytest.mark.parametrize("in_one_chunk", [False, True])
def test_distinct_strings_of_many_bytes_are_no_dictionary(
    in_one_chunk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few rows have been looked at: they would be held several times."""
    monkeypatch.setattr(string_dictionary, "_MOST_BYTES", 32_000)
    monkeypatch.setattr(string_dictionary, "_SLICE_BYTES", 8_000)
    strings = [f"{number:03d}" * 333 for number in range(1000)]
    whole = pa.array(strings, pa.large_string())
    chunks = [whole] if in_one_chunk else [whole.slice(start, 10) for start in range(0, 1000, 10)]
    few = StringDictionary(pa.large_string())
    taken = [few.add(chunk) for chunk in chunks[:1]]
    while taken[-1] and len(taken) < len(chunks):
        taken.append(few.add(chunks[len(taken)]))
        assert few.held_bytes < 40_000
    assert not taken[-1]
    assert len(taken) == (1 if in_one_chunk else 4)
    assert 24_000 < few.held_bytes < 40_000  # also of one chunk a part was looked at, not all
    left = [row for part in few.strings() for row in part.to_pylist()]
    assert left == strings[: len(left)]
    assert len(left) == sum(len(chunk) for chunk in chunks[: len(taken)])


def test_few_strings_of_many_bytes_are_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_dictionary, "_MOST_BYTES", 32_000)
    monkeypatch.setattr(string_dictionary, "_SLICE_BYTES", 8_000)
    strings = [f"{number % 30:03d}" * 333 for number in range(1000)]
    few = StringDictionary(pa.large_string())
    assert few.add(pa.array(strings, pa.large_string()))
    assert few.is_worth
    assert [row for part in few.strings() for row in part.to_pylist()] == strings


def test_what_is_held_is_about_what_the_file_takes(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    rows = EncodedRows(pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.bool_())]))
    count = 1 << 19  # what is staged is full then, and empty
    for _ in range(2):
        batch = pa.record_batch(
            [
                pa.array(random.integers(0, 1000, count)),
                pa.array(random.random(count), mask=random.random(count) < 0.1),
                pa.array(random.random(count) < 0.5),
            ],
            names=["a", "b", "c"],
        )
        rows.add(BatchRows([batch]), lambda: False)
    held = rows.held_bytes
    entry = write_fragment(POSIX, tmp_path, "f", batch.schema, rows)
    assert abs(held - entry.data_bytes) < 0.1 * entry.data_bytes


def test_a_column_that_does_not_fit_is_named() -> None:
    rows = EncodedRows(pa.schema([("fits", pa.int32()), ("bad", pa.int32())]))
    batch = pa.record_batch([pa.array([1], pa.int32()), pa.array([1.5])], names=["fits", "bad"])
    with pytest.raises(StorageError, match='column "bad" cannot be written: 1 rows of double in a column of'):
        rows.add(BatchRows([batch]), lambda: False)


def test_more_rows_than_were_said_are_an_error() -> None:
    class Liar(BatchRows):
        @property
        def rows(self) -> int:
            return 2

    batch = pa.record_batch([pa.array([1, 2, 3])], names=["a"])
    with pytest.raises(StorageError, match='column "a" cannot be written: 3 rows instead of 2'):
        EncodedRows(batch.schema).add(Liar([batch]), lambda: False)


def test_it_stops_when_it_is_cancelled() -> None:
    batch = pa.record_batch([pa.array([1, 2, 3])], names=["a"])
    with pytest.raises(CancelledError):
        EncodedRows(batch.schema).add(BatchRows([batch]), lambda: True)
