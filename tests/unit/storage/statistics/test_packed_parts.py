"""Which packed columns have parts, and that what a vectors file says of them is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.files.buffers import view
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.packed_parts import packed_part_types
from bamquery.storage.statistics.parts import PART_ROWS, PARTS
from bamquery.storage.statistics.vectors_file import vectors_file
from tests.packed.steps import misplaced_part
from tests.unit.storage.random_columns import written

ROWS = 20 * 1024 + 300


def batch() -> pa.RecordBatch:
    random = np.random.default_rng(5)
    prices = random.integers(0, 8000, ROWS) / 100
    prices[random.integers(0, ROWS, 30)] = -1e9
    vector = np.arange(ROWS) // 1024
    return pa.record_batch(
        {
            "price": pa.array(prices, mask=random.random(ROWS) < 0.1),
            "wide": pa.array(random.integers(0, 1 << 40, ROWS)),
            "day": pa.array(random.integers(0, 9000, ROWS).astype(np.int32), pa.date32()),
            "narrow": pa.array(random.integers(0, 100, ROWS)),
            "mostly": pa.array(np.where(vector < 8, random.integers(0, 4000, ROWS), vector % 3)),
            "word": pa.array([f"w{n}" for n in random.integers(0, 600, ROWS)], pa.large_string()),
            "noise": pa.array(random.random(ROWS)),
        }
    )


@pytest.fixture(scope="module")
def fragment() -> Iterator[Fragment]:
    with written([batch()], encoding="auto") as opened:
        yield opened


def test_where_parts_are(fragment: Fragment) -> None:
    names = batch().schema.names
    packed = [fragment.layout.columns[fragment.column_index(name)].encoding is not None for name in names]
    assert packed == [True] * 6 + [False]
    assert [name for name in names if fragment.packed_parts(name) is not None] == ["price", "wide", "day"]
    assert [name for name in names if fragment.parts(name) is not None] == ["noise"]
    assert [name for name in names if fragment.has_parts(name)] == ["price", "wide", "day", "noise"]
    assert fragment.check() == []


def test_statistics_stay_small(fragment: Fragment) -> None:
    """Bits a value of all that the vectors file has of a column, decode parameters included."""
    for name, most in (("price", 0.8), ("wide", 0.8), ("day", 0.8), ("narrow", 0.35), ("mostly", 0.35)):
        size = fragment.statistics_bytes(name) + 16 * fragment.vector_count
        padding = 8 * 64  # of buffers, however few vectors there are
        assert 8 * (size - padding) < most * fragment.rows, name


def test_values_are_within_bounds(fragment: Fragment) -> None:
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))
    for name in ("price", "wide", "day"):
        parts = fragment.packed_parts(name)
        assert parts is not None
        stored: Any = fragment.column(name)
        array = reader.stream(name, np.arange(fragment.vector_count), ReadCounters())
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        kind = pa.int32() if pa.types.is_date(array.type) else array.type
        values = array.view(kind).fill_null(0).to_numpy(zero_copy_only=False)
        encoding = fragment.layout.columns[fragment.column_index(name)].encoding
        assert encoding is not None
        scale = encoding.divisor, encoding.origin
        for vector, parameters in enumerate(stored.parameters):
            rows = slice(1024 * vector, 1024 * (vector + 1))
            bounds = parts.lows[vector], parts.highs[vector]
            assert misplaced_part(parameters, bounds, values[rows], valid[rows], scale) is None


@contextmanager
def forged(change: Callable[[dict[str, Any]], None]) -> Iterator[Fragment]:
    """A fragment of `price`, whose vectors file says what `change` makes of it; its checksums are right."""
    with written([batch().select(["price"])], encoding="auto") as fragment:
        statistics = fragment._statistics._batch.column(0)
        fragment._statistics.require_all()
        fields = {child.name: statistics.field(child.name) for child in statistics.type}
        change(fields)
        wrong = pa.StructArray.from_arrays(list(fields.values()), list(fields))
        data = vectors_file(fragment.schema, fragment.layout, [wrong])
        path = fragment.path.with_name(fragment.entry.vectors_name)
        path.write_bytes(view(data.data))
        yield Fragment.open(
            fragment.path.parent, replace(fragment.entry, **data.entry_members), fragment.schema
        )


def changed(name: str, vector: int, part: int, by: int) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        column = fields[name]
        lists = pa.types.is_fixed_size_list(column.type)
        values = (column.flatten() if lists else column).to_numpy().copy()
        at = vector * (PARTS if lists else 1) + part
        values[at : at + 1] += values.dtype.type(by % 256)  # an array's numbers wrap
        array = pa.array(values)
        fields[name] = pa.FixedSizeListArray.from_arrays(array, PARTS) if lists else array

    return change


@pytest.mark.parametrize(
    ("name", "part", "by", "what"),
    [
        ("part_low", 3, 1, "part 3 has values outside of its bounds"),
        ("part_high", 6, -1, "part 6 has values outside of its bounds"),
        ("part_crc", 7, 1, "part 7 of its codes does not match its checksum"),
        ("escapes_crc", 0, 1, "what is behind its codes does not match its checksum"),
    ],
)
def test_check_finds_what_is_forged(name: str, part: int, by: int, what: str) -> None:
    """A bound that is too narrow by one step would hide a row."""
    with forged(changed(name, 9, part, by)) as fragment:
        (error,) = fragment.check()
        assert f'column "price", vector 9: {what}' in str(error)


def test_wider_bounds_are_right() -> None:
    def widen(fields: dict[str, Any]) -> None:
        for name, bound in (("part_low", 0), ("part_high", 255)):
            values = np.full(len(fields[name]) * PARTS, bound, np.uint8)
            fields[name] = pa.FixedSizeListArray.from_arrays(pa.array(values), PARTS)

    with forged(widen) as fragment:
        assert fragment.check() == []


def test_files_without_parts_are_read() -> None:
    """Those that were written before packed columns had any."""

    def forget(fields: dict[str, Any]) -> None:
        for name in packed_part_types():
            del fields[name]

    with forged(forget) as fragment:
        assert not fragment.has_parts("price")
        assert fragment.packed_parts("price") is None
        assert fragment.check() == []


@pytest.mark.parametrize("name", sorted(packed_part_types()))
def test_some_of_them_are_not_enough(name: str) -> None:
    def forget(fields: dict[str, Any]) -> None:
        del fields[name]

    message = 'column "price" are not as they should be'
    with forged(forget) as fragment:
        for ask in (fragment.has_parts, fragment.column, fragment.packed_parts):
            with pytest.raises(CorruptionError, match=message):
                ask("price")
        assert message in str(fragment.check()[0])


def test_missing_ones_are_found() -> None:
    def blank(fields: dict[str, Any]) -> None:
        values = fields["part_low"].flatten().to_pylist()
        values[PARTS * 2 + 1] = None
        fields["part_low"] = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.uint8()), PARTS)

    message = 'column "price" are not as they should be'
    with forged(blank) as fragment, pytest.raises(CorruptionError, match=message):
        fragment.packed_parts("price")


def test_parts_of_nulls_alone_hold_nothing() -> None:
    nulls = np.arange(2048) // PART_ROWS % 2 == 0
    array = pa.array(np.random.default_rng(1).integers(0, 5000, 2048), mask=nulls)
    with written([pa.record_batch({"c": array})], encoding="auto") as fragment:
        parts = fragment.packed_parts("c")
        assert parts is not None
        assert ((parts.lows > parts.highs).reshape(-1) == nulls[::PART_ROWS]).all()
