"""Packed columns of every form give on a GPU what they give on a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import CorruptionError
from bamquery.plan.expressions import Call
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import STRATEGIES, check, column, compare, require_same, run
from tests.stored import require_direct_reads, stored

ROWS = 200_000
CUTS = (1, 5000, 5100, 102_400)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def packable(rows: int, seed: int = 0) -> pa.Table:
    """Columns that are packed in each of the forms, some with nulls, one of which cannot be packed."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 3000, rows)
    cents = numbers / 100
    far = cents.copy()
    outliers = random.random(rows) < 0.01
    far[outliers] = random.choice([np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324], int(outliers.sum()))
    mixed = np.where(np.arange(rows) // VECTOR_ROWS % 3 == 0, random.random(rows), cents)
    turns = np.where(np.arange(rows) < 3000, random.random(rows), cents)  # fragments differ
    some = random.random(rows) < 0.1
    blocks = np.arange(rows) // VECTOR_ROWS % 5 == 2
    words = np.array(["red", "green", "", "blue"])
    apart = np.where(some, numbers, random.integers(-(10**18) + 1, 10**18, rows))
    return pa.table(
        {
            "cents": pa.array(cents, mask=some),
            "far": pa.array(far, mask=some | blocks),
            "mixed": pa.array(mixed, mask=some),
            "single": pa.array(random.random(rows).astype(np.float32).astype(np.float64)),
            "f32": pa.array((numbers / 10).astype(np.float32), mask=blocks),
            "i64": pa.array(numbers * 1_000_000 - 10**15),
            "wide": pa.array(random.integers(0, 1 << 45, rows), mask=some),
            "u64": pa.array(numbers.astype(np.uint64) + np.uint64(2**63)),
            "i8": pa.array((numbers % 100 - 50).astype(np.int8), mask=blocks),
            "stamp": pa.array(numbers * 1_000_000, pa.timestamp("us")),
            "dec": pa.array([Decimal(int(n)).scaleb(-2) for n in numbers], pa.decimal128(12, 2)),
            "far_dec": pa.array(
                [Decimal(int(n)).scaleb(-2) for n in apart], pa.decimal128(18, 2), mask=blocks
            ),
            "flag": pa.array(numbers % 3 == 0, mask=some),
            "same": pa.array(np.full(rows, 7.25)),
            "none": pa.array(np.zeros(rows), mask=np.ones(rows, bool)),
            "word": pa.array(words[numbers % 4], pa.large_string()).dictionary_encode(),
            "city": pa.array(words[numbers % 3], pa.large_string(), mask=some),
            "turns": pa.array(turns),
            "noise": pa.array(random.random(rows)),
        }
    )


NAMES = tuple(packable(1).schema.names)
NUMBERS = tuple(name for name in NAMES if name not in ("word", "city", "none"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with stored(tmp_path_factory.mktemp("packed") / "db", packable(ROWS), CUTS, encoding="auto") as snapshot:
        yield snapshot


def agree(device: Any, snapshot: Snapshot, columns: Any, predicates: Any = (), **settings: Any) -> Any:
    """Have both devices scan, and hold their answers and needs against each other."""
    expected, theirs = run(CpuDevice(), snapshot, columns, predicates, strategy="stream")
    found, ours = run(device, snapshot, columns, predicates, **settings)
    require_same(found, expected)
    for name, want in theirs.columns.items():
        got = ours.columns[name]
        assert got.rows_needed == want.rows_needed, name
        # Chunks are not cut alike: of each piece, the bits of nulls are rounded up to a byte.
        assert abs(got.bytes_needed - want.bytes_needed) <= len(CUTS) + 1, name
    return ours


def test_columns_are_packed(table: Snapshot) -> None:
    packed = {name for name in NAMES if stored_buffers(table.fragments[-1], name).packing is not None}
    assert packed >= {"cents", "far", "i64", "i8", "stamp", "dec", "far_dec", "same", "word", "city"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", [0, 0.3, 3.0, 30.0])
def test_each_strategy(cuda: Any, table: Snapshot, strategy: str, selectivity: float) -> None:
    """Of blocks a GPU reads those that hold codes, a CPU those that hold 8 bytes from each code on."""
    scan = check if strategy in ("stream", "vectors") else agree
    for zone_maps in (True, False):
        predicates = [compare(table, "cents", "less", selectivity)]
        scan(cuda, table, NAMES, predicates, strategy=strategy, zone_maps=zone_maps)


@pytest.mark.parametrize("name", NUMBERS)
def test_comparisons(cuda: Any, table: Snapshot, name: str) -> None:
    """Values that there are, and those next to them."""
    values = run(CpuDevice(), table, (name,))[0].column(0).drop_null()
    for function in COMPARISONS:
        for row in (0, len(values) // 2):
            predicates = [compare(table, name, function, values[row].as_py())]
            agree(cuda, table, tuple({name, "i64"}), predicates, zone_maps=False)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 12.345, np.nextafter(12.34, 13)]
)
@pytest.mark.parametrize("function", COMPARISONS)
def test_special_floats(cuda: Any, table: Snapshot, value: float, function: str) -> None:
    for name in ("far", "mixed", "single"):
        agree(cuda, table, (name,), [compare(table, name, function, value)], zone_maps=False)


def test_nulls_and_lists(cuda: Any, table: Snapshot) -> None:
    for name in ("cents", "far", "mixed", "none", "i8", "flag", "same"):
        for function in ("is_null", "is_not_null"):
            agree(cuda, table, (name, "i64"), [Call(function, (column(table, name),), pa.bool_())])
    literals = [compare(table, "cents", "equal", v).arguments[1] for v in (0.5, 7.0, 7.001, 12.34)]
    agree(cuda, table, NAMES, [Call("in", (column(table, "cents"), *literals), pa.bool_())])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_filters(cuda: Any, table: Snapshot, strategy: str) -> None:
    predicates = [
        compare(table, "cents", "less", 20.0),
        compare(table, "far", "greater", 3.0),
        compare(table, "i8", "less", 20),
    ]
    expected, _ = run(CpuDevice(), table, NAMES, predicates, strategy="stream")
    found, _ = run(cuda, table, NAMES, predicates, strategy=strategy)
    require_same(found, expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strings_that_are_stored_with_a_dictionary(cuda: Any, table: Snapshot, strategy: str) -> None:
    cases = [
        [compare(table, "cents", "less", 3.0)],
        [compare(table, "city", "equal", "red"), compare(table, "cents", "less", 10.0)],
        [compare(table, "cents", "less", 20.0), compare(table, "city", "not_equal", "")],
    ]
    for predicates in cases[:2]:
        agree(cuda, table, ("city", "word", "i64"), predicates, strategy=strategy)
    # Either condition may be looked at first, and the other one then needs fewer rows.
    check(cuda, table, ("city", "word", "i64"), cases[2], same_order=False, strategy=strategy)


def test_everything(cuda: Any, table: Snapshot) -> None:
    agree(cuda, table, NAMES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_direct_reads(cuda: Any, table: Snapshot, strategy: str) -> None:
    require_direct_reads(table.fragments[0].path.parent)
    predicates = [compare(table, "cents", "less", 0.5)]
    agree(cuda, table, NAMES, predicates, strategy=strategy, reader="direct")


def test_a_scan_reads_less_than_it_needs(cuda: Any, table: Snapshot) -> None:
    profile = agree(cuda, table, ("i64",), [compare(table, "cents", "less", 0.5)], strategy="stream")
    read = profile.columns["cents"]
    assert 0 < read.counters.bytes < 0.4 * read.bytes_needed


def test_changed_bytes_are_found(cuda: Any, tmp_path: Path) -> None:
    with stored(tmp_path / "db", packable(5000), encoding="auto") as snapshot:
        fragment = snapshot.fragments[0]
        place = stored_buffers(fragment, "cents").values.offset
        with fragment.path.open("r+b") as file:
            file.seek(place + 3000)
            before = file.read(1)[0]
            file.seek(place + 3000)
            file.write(bytes([before ^ 1]))
        predicates = [compare(snapshot, "cents", "less", 5.0)]
        with pytest.raises(CorruptionError, match='column "cents", vector'):
            run(cuda, snapshot, ("i64",), predicates)
