"""Parts of packed vectors: bounds that hold all values and little else, and checksums of their bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from tests.packed.parameters import payload_bytes
from tests.packed.steps import (
    LAST_STEP,
    PART_ROWS,
    PARTS,
    first_special,
    has_parts,
    misplaced_part,
    ordered_codes,
)
from tests.unit.storage.encodings.packed.columns import (
    FLOATS,
    INTEGERS,
    Packed,
    all_columns,
    decoded_type,
    pack,
)

SIZES = (1, 127, 128, 129, 1023, 1024, 1025, 3000)


def find(column: Packed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _native.packed_parts(
        column.kind, column.data, column.starts, column.parameters, column.vector_rows, *column.scale
    )


def require_right(column: Packed) -> int:
    """Hold bounds and checksums against values and bytes; how many vectors have parts."""
    values, valid = column.oracle()
    bounds, crcs, escape_crcs = find(column)
    sizes = payload_bytes(column.parameters, column.vector_rows, column.kind)
    crcs = crcs.reshape(-1, PARTS)
    for number, vector in enumerate(column.parameters):
        rows = int(column.vector_rows[number])
        first = 1024 * number
        here, known = values[first : first + rows], valid[first : first + rows]
        lows, highs = bounds[number]
        assert misplaced_part(vector, bounds[number], here, known, column.scale) is None, vector
        payload = column.data[column.starts[number] :][: sizes[number]].tobytes()
        size = 16 * int(vector["bits"])
        count = -(-rows // PART_ROWS)
        for part in range(PARTS):
            of_part = known[part * PART_ROWS : (part + 1) * PART_ROWS]
            if not has_parts(vector):
                assert crcs[number, part] == 0
                assert (lows[part], highs[part]) == ((0, LAST_STEP) if part < count else (LAST_STEP, 0))
            else:
                content = payload[part * size : (part + 1) * size] if part < count else b""
                assert crcs[number, part] == (_native.crc32c(content) if content else 0)
                assert (lows[part] <= highs[part]) == of_part.any(), part
        behind = payload[count * size :] if has_parts(vector) else b""
        assert escape_crcs[number] == (_native.crc32c(behind) if behind else 0)
    return sum(map(has_parts, column.parameters))


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("rows", SIZES)
def test_bounds_and_checksums(kind: str, rows: int) -> None:
    random = np.random.default_rng(rows)
    dtype = decoded_type(kind)
    wide = 0
    for _, values in all_columns(kind, rows, 1):
        part = np.arange(rows) // PART_ROWS
        for valid in (None, random.random(rows) < 0.7, (part % 3 != 1) & (part // PARTS % 2 != 1)):
            wide += require_right(pack(kind, values, valid))
    if dtype.kind in "iu":
        values = (random.integers(0, 100, rows) * 3 + 7).astype(dtype)
        wide += require_right(pack(kind, values, scale=(3, 7)))
    assert wide > 0 or rows == 1 or dtype.itemsize == 1


@pytest.mark.parametrize("level", _native.simd_levels())
def test_all_levels_agree(level: str) -> None:
    column = pack("float64", np.random.default_rng(1).integers(0, 90_000, 5000) / 100)
    expected = find(column)
    _native.use_simd_level(level)
    try:
        found = find(column)
    finally:
        _native.use_simd_level(_native.simd_levels()[-1])
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def escaped(random: np.random.Generator, rows: int) -> np.ndarray:
    """Prices, and some values below, among and above them that are none."""
    values = random.integers(0, 200_000, rows) / 100
    for count, many in ((3, (-7.5e9, -1e300, -np.inf)), (4, (1.001, 7.77777, 1000.0001, -0.0))):
        values[random.integers(0, rows, count)] = random.choice(many, count)
    values[random.integers(0, rows, 3)] = random.choice([1e300, np.inf, np.nan, 5e9], 3)
    return values


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 2048), nulls=st.booleans())
def test_escapes_are_where_their_values_are(seed: int, rows: int, nulls: bool) -> None:
    random = np.random.default_rng(seed)
    valid = random.random(rows) < 0.8 if nulls else None
    require_right(pack("float64", escaped(random, rows), valid, exponents=(2,)))


def test_bounds_hold_little_else() -> None:
    """Without escapes they are the steps of the least and the greatest code; with some, hardly wider."""
    random = np.random.default_rng(4)
    numbers = random.integers(0, 1 << 13, 1024)
    numbers[:2] = 0, (1 << 13) - 1
    column = pack("int64", numbers)
    (vector,) = column.parameters
    assert vector["bits"] == 13
    (lows, highs), *_ = find(column)[0]
    parts = numbers.reshape(PARTS, -1)
    assert lows.tolist() == (parts.min(axis=1) >> 5).tolist()
    assert highs.tolist() == (parts.max(axis=1) >> 5).tolist()
    prices = numbers / 100
    prices[300], prices[700] = np.nan, -1e300
    column = pack("float64", prices, exponents=(2,))
    (vector,) = column.parameters
    assert first_special(vector) < 1 << int(vector["bits"])
    (found_lows, found_highs), *_ = find(column)[0]
    steps = np.delete(numbers - int(vector["base"]), [300, 700])
    shift = int(vector["bits"]) - 8
    for part in range(PARTS):
        here = (np.delete(np.arange(1024), [300, 700]) // PART_ROWS) == part
        assert found_lows[part] == (0 if part == 5 else steps[here].min() >> shift)
        assert found_highs[part] == (LAST_STEP if part == 2 else steps[here].max() >> shift)


@pytest.mark.parametrize("kind", ["int64", "float64", "uint32"])
def test_a_bound_too_narrow_by_one_step_is_found(kind: str) -> None:
    """Whatever uses this file's comparison would see it."""
    values = np.random.default_rng(3).integers(0, 60_000, 3000).astype(kind)
    column = pack(kind, values, exponents=(0,))
    bounds = find(column)[0]
    found, valid = column.oracle()
    narrowed = 0
    for number, vector in enumerate(column.parameters):
        rows = slice(1024 * number, 1024 * number + int(column.vector_rows[number]))
        for part in range(-(-int(column.vector_rows[number]) // PART_ROWS)):
            for side, by in ((0, 1), (1, -1)):
                wrong: Any = bounds[number].astype(np.int64)
                wrong[side, part] += by
                assert misplaced_part(vector, wrong, found[rows], valid[rows], column.scale) == part
                narrowed += 1
    assert narrowed == 2 * -(-3000 // PART_ROWS)


def test_codes_that_would_wrap_bound_nothing() -> None:
    """The greatest values of a type: codes above them would be small ones."""
    for kind in ("int16", "int32", "int64", "uint16", "uint64"):
        info = np.iinfo(kind)
        values = np.dtype(kind).type(info.max) - (np.arange(1024) % 300).astype(kind)
        scale = (1, 2**63) if kind == "uint64" else (1, 0)
        column = pack(kind, values, scale=scale)
        (vector,) = column.parameters
        assert ordered_codes(vector, kind, scale) < 1 << int(vector["bits"])
        assert require_right(column) == 1


@pytest.mark.parametrize("kind", ["int64", "float64", "float32", "uint8"])
@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_have_bounds_or_are_an_error(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    column = pack(kind, random.integers(0, 200, 3000).astype(decoded_type(kind)))
    column = replace(column, data=random.integers(0, 256, len(column.data)).astype(np.uint8))
    wild = column.parameters.view(np.uint8)
    wild[random.integers(0, len(wild), 3)] = random.integers(0, 256, 3)
    try:
        bounds, crcs, behind = find(column)
    except ValueError as error:
        assert "packed vector" in str(error)  # noqa: PT017 - either is right
        return
    assert (bounds.shape, crcs.shape, behind.shape) == ((3, 2, PARTS), (3 * PARTS,), (3,))
