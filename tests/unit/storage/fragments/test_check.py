"""`check` finds a changed bit wherever it is, and says in which file."""

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.fragments.fragment import Fragment
from tests.unit.storage.random_columns import ALL_TYPES, ENCODINGS, column, values, with_nulls, written

ROWS = 2500
GROUPS = 6
"""Fragments that all types are spread over: each bit that is flipped has all of one checked."""


@pytest.fixture(scope="module", params=product(ENCODINGS, range(GROUPS)), ids=lambda p: f"{p[0]}-{p[1]}")
def fragment(request: pytest.FixtureRequest):
    encoding, group = request.param
    random = np.random.default_rng(11)
    mask = random.random(ROWS) < 0.3
    arrays = [with_nulls(values(type_, ROWS, random), mask) for type_ in ALL_TYPES[group::GROUPS]]
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
    with written([batch], encoding=encoding) as opened:
        yield opened


def regions(fragment: Fragment) -> dict[str, Extent]:
    """Every part of file one, padding included, by a name for it."""
    found = {f"metadata {i}": extent for i, (extent, _) in enumerate(fragment.layout.metadata)}
    for field, place in zip(fragment.schema, fragment.layout.columns, strict=True):
        ends = (
            []
            if place.encoding is None
            else [("cells", place.encoding.cells), ("lists", place.encoding.lists)]
        )
        for buffer, extent in [
            *((name, getattr(place, name)) for name in ("validity", "offsets", "values")),
            *ends,
        ]:
            if extent is not None:
                found[f"{field.name} {buffer}"] = extent
        if place.dictionary is not None:
            found[f"{field.name} dictionary"] = place.dictionary.values
            if place.dictionary.offsets is not None:
                found[f"{field.name} dictionary offsets"] = place.dictionary.offsets
    if fragment.layout.lists is not None:
        found["ends of lists"] = fragment.layout.lists
    end = 0
    for extent in sorted(found.values(), key=lambda e: (e.offset, e.end)):
        if extent.offset > end:
            found[f"padding at {end}"] = Extent(end, extent.offset - end)
        end = max(end, extent.end)
    return found


def flip(path: Path, position: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << bit)]))


def test_an_undamaged_fragment_is_fine(fragment: Fragment) -> None:
    assert fragment.check() == []


def test_a_bit_flipped_in_any_region_is_found(fragment: Fragment) -> None:
    random = np.random.default_rng(0)
    parts = regions(fragment)
    assert sum(extent.length for extent in parts.values()) == fragment.data_bytes  # nothing is left out
    for name, extent in parts.items():
        if not extent.length:
            continue
        inside = int(random.integers(0, extent.length))
        for position in {extent.offset, extent.end - 1, extent.offset + inside}:
            bit = int(random.integers(0, 8))
            flip(fragment.path, position, bit)
            errors = fragment.check()
            assert errors, (name, position)
            assert all(error.path == fragment.path for error in errors)
            if name.startswith("c"):
                assert f'column "{name.split()[0]}"' in str(errors[0]), (name, errors)
            if name.split()[1] in {"validity", "values"} and "dictionary" not in name:
                assert "vector " in str(errors[0])
            flip(fragment.path, position, bit)
    assert fragment.check() == []


def test_every_region_of_the_vectors_file(fragment: Fragment) -> None:
    path = fragment.path.with_name(fragment.entry.vectors_name)
    for position in range(0, fragment.entry.vectors_bytes, 997):
        flip(path, position, 3)
        (error,) = fragment.check()
        assert error.path == path
        flip(path, position, 3)


@pytest.mark.parametrize("name", ["data_name", "vectors_name"])
def test_truncated_files_are_found(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([column(pa.int64(), ROWS, np.random.default_rng(0))], ["x"])
    with written([batch]) as fragment:
        path = fragment.path.with_name(getattr(fragment.entry, name))
        contents = path.read_bytes()
        for size in (0, 1, len(contents) // 2, len(contents) - 1):
            path.write_bytes(contents[:size])
            (error,) = fragment.check()
            assert error.path == path
            assert f"{size} bytes instead of {len(contents)}" in str(error)
        path.unlink()
        (error,) = fragment.check()
        assert "missing" in str(error)


def test_every_damaged_vector_is_listed() -> None:
    batch = pa.record_batch(
        {"x": pa.array(np.arange(100 * VECTOR_ROWS)), "y": pa.array(np.arange(100 * VECTOR_ROWS))}
    )
    with written([batch]) as fragment:
        start = fragment.layout.columns[0].values.offset
        for vector in (3, 70, 99):
            flip(fragment.path, start + vector * VECTOR_ROWS * 8, 0)
        found = [str(error) for error in fragment.check()]
        assert [text.split(": ")[1] for text in found] == [
            f'column "x", vector {vector}' for vector in (3, 70, 99)
        ]
        for vector in range(100):
            flip(fragment.path, start + vector * VECTOR_ROWS * 8 + 8, 0)
        found = [str(error) for error in fragment.check()]
        assert len(found) == 21
        assert "more damaged vectors" in found[-1]
