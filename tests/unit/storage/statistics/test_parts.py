"""Parts of vectors have the very bounds and checksums of their rows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.parts import PART_ROWS, PARTS, has_parts
from bamquery.storage.statistics.vectors_file import vectors_file
from tests.unit.storage.random_columns import ALL_TYPES, column, written

PARTED = [kind for kind in ALL_TYPES if has_parts(kind)]


def require_right(fragment: Fragment, name: str, array: Any) -> None:
    """Hold every part against its rows."""
    parts = fragment.parts(name)
    assert parts is not None
    count = fragment.vector_count * PARTS
    assert len(parts.minimum) == len(parts.maximum) == len(parts.checksums) == count
    assert parts.minimum.type == array.type
    stored = fragment.path.read_bytes()
    values = fragment.layout.columns[fragment.column_index(name)].values
    width = array.type.bit_width // 8
    for part in range(count):
        rows = array.slice(part * PART_ROWS, PART_ROWS).drop_null()
        if pa.types.is_floating(array.type):
            rows = rows.filter(pc.invert(pc.is_nan(rows)))
        minimum, maximum = parts.minimum[part], parts.maximum[part]
        assert minimum.is_valid == maximum.is_valid == bool(len(rows)), part
        if len(rows):
            assert pc.equal(minimum, pc.min(rows)).as_py(), part
            assert pc.equal(maximum, pc.max(rows)).as_py(), part
        begin = part * PART_ROWS * width
        end = min(begin + PART_ROWS * width, values.length)
        content = stored[values.offset + begin : values.offset + max(begin, end)]
        assert parts.checksums[part] == (_native.crc32c(content) if content else 0), part


@pytest.mark.parametrize("kind", PARTED, ids=str)
@pytest.mark.parametrize("rows", [0, 1, 127, 128, 129, 1023, 1025, 3000])
def test_bounds_and_checksums(kind: Any, rows: int) -> None:
    for seed in range(4):
        array = column(kind, rows, np.random.default_rng(seed + rows))
        batch = pa.RecordBatch.from_arrays([array], ["c"])
        with written([batch]) as fragment:
            require_right(fragment, "c", array)
            assert fragment.check() == []


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_special_floats(kind: Any) -> None:
    special: list[float | None] = [math.nan, -0.0, 0.0, math.inf, -math.inf, None, 1.5]
    values: list[float | None] = []
    for one in special:
        values += [one] * PART_ROWS
        values += [math.nan, one] * (PART_ROWS // 2)
        values += [None, one] * (PART_ROWS // 2)
    array = pa.array(values, kind)
    with written([pa.RecordBatch.from_arrays([array], ["c"])]) as fragment:
        require_right(fragment, "c", array)


@pytest.mark.parametrize(("kind", "bits"), [("f4", 0xFF84C316), ("f8", 0xFFF084C316000000)])
def test_signalling_nans_hide_no_bounds(kind: str, bits: int) -> None:
    """Wherever one stands, and wherever the bounds do: numpy's fmin loses some on some processors."""
    random = np.random.default_rng(5)
    values = random.normal(size=(400, PART_ROWS)).astype(kind)
    places = random.integers(0, PART_ROWS, len(values))
    values[np.arange(len(values)), places] = np.array([bits], kind.replace("f", "u")).view(kind)
    array = pa.array(values.ravel())
    with written([pa.RecordBatch.from_arrays([array], ["c"])]) as fragment:
        require_right(fragment, "c", array)


def test_long_columns_in_many_pieces() -> None:
    """Written from where they are and from a staging buffer, nulls late."""
    random = np.random.default_rng(3)
    numbers = pa.array(random.random(700_000))
    late = pa.array(random.random(5000), mask=random.random(5000) < 0.3)
    whole = pa.concat_arrays([numbers, late, numbers.slice(17, 200_000)])
    batches = [
        pa.RecordBatch.from_arrays([whole.slice(begin, size)], ["c"])
        for begin, size in ((0, 300), (300, 650_000), (650_300, len(whole)))
    ]
    with written(batches) as fragment:
        parts = fragment.parts("c")
        assert parts is not None
        full = len(whole) // PART_ROWS * PART_ROWS
        cells = whole.slice(0, full).to_numpy(zero_copy_only=False).reshape(-1, PART_ROWS)
        count = len(cells)
        assert np.array_equal(np.nanmin(cells, axis=1), parts.minimum.to_numpy(zero_copy_only=False)[:count])
        assert np.array_equal(np.nanmax(cells, axis=1), parts.maximum.to_numpy(zero_copy_only=False)[:count])
        assert fragment.check() == []


@pytest.mark.parametrize("kind", [kind for kind in ALL_TYPES if not has_parts(kind)], ids=str)
def test_other_columns_have_none(kind: Any) -> None:
    batch = pa.RecordBatch.from_arrays([column(kind, 2000, np.random.default_rng(1))], ["c"])
    with written([batch]) as fragment:
        assert fragment.parts("c") is None


def test_check_compares_parts(tmp_path: Path) -> None:
    """A checksum of a part that is wrong from the start is found, though the vector's is right."""
    batch = pa.record_batch({"c": pa.array(np.arange(3 * VECTOR_ROWS))})
    with written([batch]) as fragment:
        statistics = fragment._statistics._batch.column(0)
        crcs = fragment.parts("c").checksums.copy()
        crcs[PARTS + 3] ^= 1
        names = [child.name for child in statistics.type]
        fields = {name: statistics.field(name) for name in names}
        fields["part_crc"] = pa.FixedSizeListArray.from_arrays(pa.array(crcs), PARTS)
        wrong = pa.StructArray.from_arrays(list(fields.values()), list(fields))
        data = vectors_file(fragment.schema, fragment.layout, [wrong])
        path = fragment.path.with_name(fragment.entry.vectors_name)
        path.write_bytes(view(data.data))
        entry = replace(fragment.entry, **data.entry_members)
        opened = Fragment.open(fragment.path.parent, entry, fragment.schema)
        (error,) = opened.check()
        assert 'column "c", vector 1: part 3 of its values' in str(error)
