"""Vectors that kernels leave out are those that zone maps on the host leave out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.parts import PART_ROWS, has_parts
from bamquery.storage.statistics.predicate import RangePredicate
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import stored
from tests.unit.storage.statistics.test_zone_map import is_true

VECTORS = 24
KINDS = (
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "date32",
    "timestamp[us]",
)
_ARROW = {"date32": pa.date32(), "timestamp[us]": pa.timestamp("us")}


def kind_of(name: str) -> Any:
    return _ARROW.get(name) or getattr(pa, name)()


def column(kind: Any, random: np.random.Generator) -> pa.Array[Any]:
    """Vectors of one value, of few, of nulls, of NaN."""
    wide = kind.bit_width == 64
    numbers = random.integers(0 if pa.types.is_unsigned_integer(kind) else -6, 7, VECTORS * VECTOR_ROWS - 100)
    centre = np.repeat(random.integers(-1, 2, VECTORS), VECTOR_ROWS)[: len(numbers)] * 5
    if pa.types.is_unsigned_integer(kind):
        centre = np.abs(centre)
    # Every fourth vector is constant.
    vector = np.arange(len(numbers)) // VECTOR_ROWS
    numbers = np.where(vector % 4 == 0, numbers[vector * VECTOR_ROWS], numbers) + centre
    nulls = (vector % 6 == 1) | ((vector % 6 == 2) & (numbers % 2 == 0))
    if pa.types.is_floating(kind):
        floats = numbers.astype(f"f{kind.bit_width // 8}")
        floats[floats == 0] *= -1
        floats[(vector % 5 == 3) & ((vector % 2 == 0) | (numbers % 3 == 0))] = np.nan
        return pa.array(floats, kind, mask=nulls)
    return pa.array(numbers, pa.int64() if wide else pa.int32(), mask=nulls).cast(kind)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    random = np.random.default_rng(7)
    table = pa.table({name: column(kind_of(name), random) for name in KINDS})
    with stored(tmp_path_factory.mktemp("zones") / "db", table, (5 * VECTOR_ROWS + 3,)) as found:
        yield found


@st.composite
def predicates(draw: st.DrawFn) -> list[RangePredicate]:
    name = draw(st.sampled_from(KINDS))
    kind = kind_of(name)
    values = st.integers(0 if pa.types.is_unsigned_integer(kind) else -12, 12)
    scalar = values.map(lambda v: pa.scalar(v, pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind))
    if pa.types.is_floating(kind):
        floats = st.one_of(values.map(float), st.sampled_from([float("nan"), float("inf"), -0.0]))
        scalar = floats.map(lambda v: pa.scalar(v, kind))
    found = []
    for _ in range(draw(st.integers(1, 2))):
        operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "is_null", "is_not_null"]))
        count = {"in": draw(st.integers(0, 4)), "is_null": 0, "is_not_null": 0}.get(operator, 1)
        found.append(RangePredicate(name, operator, tuple(draw(scalar) for _ in range(count))))
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ranges=predicates())
def test_kernels_prune_as_the_host_does(
    scan_modules: None, emulator: Any, snapshot: Snapshot, ranges: list[RangePredicate]
) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, fuse_ranges, value_c_type
    from bamquery.engine.cuda.scan.kernel_tables.zones import zones_of

    name = ranges[0].column
    kind = snapshot.schema.field(name).type
    c_type = value_c_type(kind)
    assert c_type is not None
    fused = fuse_ranges(ranges, kind, c_type)
    assert isinstance(fused, FusedPredicate)
    kernel = emulator.kernel("scan_prune", "scan_prune", ())
    nan = (1 << (64 if kind.bit_width > 32 else 32)) - 1
    for fragment in snapshot.fragments:
        zones = zones_of(fragment, name)
        wanted = np.full(len(zones), 7, np.uint32)
        arguments = (zones.ctypes.data, 0, len(zones), nan, fused.pack(), 1, wanted.ctypes.data, 0)
        kernel.run([_packed(a, size) for a, size in zip(arguments, kernel.sizes, strict=True)], 1, 256)
        expected = fragment.zone_map.possible(ranges)
        # Conditions that contradict each other are seen through here only.
        assert not (wanted.astype(bool) & ~expected).any()
        if len(ranges) == 1:
            assert wanted.tolist() == expected.astype(int).tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ranges=predicates())
def test_parts_with_rows_that_pass_are_left(
    scan_modules: None, emulator: Any, snapshot: Snapshot, ranges: list[RangePredicate]
) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, fuse_ranges, value_c_type
    from bamquery.engine.cuda.scan.kernel_tables.zones import part_zones_of, zones_of

    name = ranges[0].column
    kind = snapshot.schema.field(name).type
    if not has_parts(kind):
        return
    c_type = value_c_type(kind)
    assert c_type is not None
    fused = fuse_ranges(ranges, kind, c_type)
    assert isinstance(fused, FusedPredicate)
    kernel = emulator.kernel("scan_prune", "scan_prune", ())
    nan = (1 << (64 if kind.bit_width > 32 else 32)) - 1
    for fragment in snapshot.fragments:
        zones, parts = zones_of(fragment, name), part_zones_of(fragment, name)
        wanted, masks = np.full(len(zones), 7, np.uint32), np.full(len(zones), 0xFF, np.uint8)
        arguments = (
            *(zones.ctypes.data, parts.ctypes.data, len(zones), nan, fused.pack(), 1),
            *(wanted.ctypes.data, masks.ctypes.data),
        )
        kernel.run([_packed(a, size) for a, size in zip(arguments, kernel.sizes, strict=True)], 1, 256)
        reader = MappedReader(fragment.path, fragment.data_bytes)
        every = np.arange(fragment.vector_count)
        values = FragmentReader(fragment, reader).stream(name, every, ReadCounters())
        reader.close()
        passes = np.zeros(len(zones) * VECTOR_ROWS, np.bool_)
        passes[: fragment.rows] = np.logical_and.reduce([is_true(values, found) for found in ranges])
        left = np.unpackbits(masks[:, None], axis=1, bitorder="little").astype(bool) & (wanted != 0)[:, None]
        assert not (passes.reshape(-1, PART_ROWS).any(axis=1) & ~left.reshape(-1)).any()
        assert (wanted != 0).tolist() == left.any(axis=1).tolist()


def test_order_keys_are_those_of_constants(scan_modules: None) -> None:
    from bamquery.engine.cuda.scan.kernel_tables.predicates import order_key
    from bamquery.engine.cuda.scan.kernel_tables.zones import order_keys

    for name in KINDS:
        kind = kind_of(name)
        low = 0 if pa.types.is_unsigned_integer(kind) else -100
        values = pa.array([low, 0, 1, 99], pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)
        if pa.types.is_floating(kind):
            values = pa.array([-1e30, -1.5, -0.0, 0.0, 2.5, float("inf")], kind)
        keys = order_keys(values).tolist()
        assert keys == [order_key(value) for value in values]
        assert keys == sorted(keys)


def _packed(argument: int | bytes, size: int) -> bytes:
    return argument if isinstance(argument, bytes) else argument.to_bytes(size, "little")
