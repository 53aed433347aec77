"""Of a column that is filtered first only parts of vectors are read, where zone maps tell; no row is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.plan.expressions import Call, Expression
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.statistics.parts import PART_ROWS, PARTS
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import check, column, compare, run
from tests.stored import stored

ROWS = 40_000
CUTS = (1, 5000, 5100, 20_480)
KINDS = {
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "date": pa.date32(),
    "stamp": pa.timestamp("us"),
}
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def spiky(rows: int, seed: int, *, nulls: bool) -> pa.Table:
    """Columns of small numbers, each with a large one in some rows; `narrow` has no parts.

    With `nulls` some parts, vectors and rows are null, and floats have NaN in some vectors.
    """
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        numbers = random.integers(0, 50, rows)
        numbers[random.integers(0, rows, max(rows // 1500, 1))] += 1000
        mask = np.zeros(rows, np.bool_)
        if nulls:
            part, vector = np.arange(rows) // PART_ROWS, np.arange(rows) // VECTOR_ROWS
            mask = (part % 5 == 3) | (vector % 7 == 2) | (random.random(rows) < 0.05)
        if pa.types.is_floating(kind):
            floats = numbers.astype(f"f{kind.bit_width // 8}")
            floats[floats == 0] *= -1
            if nulls:
                floats[(np.arange(rows) // VECTOR_ROWS % 4 == 1) & (random.random(rows) < 0.01)] = np.nan
            found[name] = pa.array(floats, kind, mask=mask)
        else:
            wide = pa.int64() if kind.bit_width == 64 else pa.int32()
            found[name] = pa.array(numbers, wide, mask=mask).cast(kind)
    found["narrow"] = pa.array(random.integers(0, 100, rows).astype(np.int8))
    found["number"] = pa.array(np.arange(rows))
    return pa.table(found)


@pytest.fixture(scope="module")
def spikes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = spiky(ROWS, 5, nulls=False)
    with stored(tmp_path_factory.mktemp("spikes") / "db", table, CUTS) as snapshot:
        yield snapshot


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = spiky(ROWS, 6, nulls=True)
    with stored(tmp_path_factory.mktemp("holes") / "db", table, CUTS) as snapshot:
        yield snapshot


@pytest.fixture(params=["spikes", "holes"])
def some(request: pytest.FixtureRequest) -> Snapshot:
    found: Snapshot = request.getfixturevalue(request.param)
    return found


def value(snapshot: Snapshot, name: str, number: int) -> Any:
    """The number as a value of the column's type."""
    kind = snapshot.schema.field(name).type
    return pa.scalar(number, pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)


def parts_left(snapshot: Snapshot, name: str, least: float, block_size: int) -> tuple[int, int]:
    """Parts in which a value is at least that, and their blocks: of columns without nulls or NaN."""
    count, blocks = 0, set()
    for number, fragment in enumerate(snapshot.fragments):
        parts = fragment.parts(name)
        assert parts is not None
        values = fragment.layout.columns[fragment.column_index(name)].values
        size = PART_ROWS * snapshot.schema.field(name).type.bit_width // 8
        keys = order_of(parts.maximum)
        for part in np.flatnonzero(keys >= least).tolist():
            count += 1
            begin = values.offset + part * size
            end = min(begin + size, values.end)
            blocks |= {(number, block) for block in range(begin // block_size, -(-end // block_size))}
    return count, len(blocks)


def order_of(values: Any) -> Any:
    """As floats; -1 where there is none."""
    if not pa.types.is_floating(values.type):
        values = values.cast(pa.int64() if values.type.bit_width == 64 else pa.int32())
    return values.cast(pa.float64()).fill_null(-1.0).to_numpy(zero_copy_only=False)


@pytest.mark.parametrize("name", KINDS)
def test_only_parts_are_read(cuda: Any, spikes: Snapshot, name: str) -> None:
    predicate = compare(spikes, name, "greater_equal", value(spikes, name, 1000))
    for block_size in (512, 4096):
        profile = check(cuda, spikes, ("number", name), [predicate], block_size=block_size)
        figures = profile.columns[name]
        left, blocks = parts_left(spikes, name, 1000.0, block_size)
        assert (figures.counters.commands, figures.counters.blocks) == (left, blocks)
        assert figures.counters.bytes == blocks * block_size
        assert figures.parts_pruned + left <= figures.vectors_read * PARTS
        assert figures.parts_pruned > 2 * left
        whole = check(
            cuda, spikes, ("number", name), [predicate], zone_maps=False, block_size=block_size
        ).columns[name]
        assert whole.parts_pruned == 0
        assert figures.counters.bytes < whole.counters.bytes


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("function", COMPARISONS)
def test_comparisons_of_parts(cuda: Any, holes: Snapshot, name: str, function: str) -> None:
    for number in (0, 49, 1000, 1020):
        check(cuda, holes, ("number", name), [compare(holes, name, function, value(holes, name, number))])


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf"), -0.0])
@pytest.mark.parametrize("function", COMPARISONS)
def test_special_floats_of_parts(cuda: Any, holes: Snapshot, special: float, function: str) -> None:
    for name in ("f32", "f64"):
        check(cuda, holes, ("number", name), [compare(holes, name, function, special)])


def test_random_ranges_lose_no_row(cuda: Any, some: Snapshot, scale: float) -> None:
    random = np.random.default_rng(11)
    for _ in range(round(200 * max(scale, 0.1))):
        predicates: list[Expression] = []
        for name in random.choice([*KINDS, "narrow"], int(random.integers(1, 4))):
            function = str(random.choice([*COMPARISONS, "in", "is_null", "is_not_null"]))
            if function in {"is_null", "is_not_null"}:
                predicates.append(Call(function, (column(some, name),), pa.bool_()))
                continue
            numbers = [int(n) for n in random.choice([0, 3, 30, 49, 60, 1000, 1010, 1049], 3)]
            if name == "narrow":
                numbers = [n % 100 for n in numbers]
            if function == "in":
                listed = [compare(some, name, "equal", value(some, name, n)).arguments[1] for n in numbers]
                predicates.append(Call("in", (column(some, name), *listed), pa.bool_()))
            else:
                predicates.append(compare(some, name, function, value(some, name, numbers[0])))
        outputs = ("number", "f64", "narrow")
        check(cuda, some, outputs, predicates, same_order=False)


def test_conditions_on_several_columns_leave_what_all_leave(cuda: Any, spikes: Snapshot) -> None:
    names = ("f64", "i64")
    predicates = [compare(spikes, name, "greater_equal", value(spikes, name, 1000)) for name in names]
    both = check(cuda, spikes, ("number",), predicates, same_order=False)
    read = [both.columns[name].counters.bytes for name in names]
    for name, predicate in zip(names, predicates, strict=True):
        alone = check(cuda, spikes, ("number",), [predicate])
        assert sum(read) <= alone.columns[name].counters.bytes


def test_whole_vectors_where_no_part_is_left_out(cuda: Any, spikes: Snapshot) -> None:
    profile = check(cuda, spikes, ("number",), [compare(spikes, "f64", "less", 49.0)])
    figures = profile.columns["f64"]
    assert figures.parts_pruned == 0
    assert figures.vectors_read == figures.vectors_total


def test_parts_are_compared_with_their_checksums(cuda: Any, tmp_path: Path) -> None:
    """A wrong byte is found in a part that is read; one in another part of the vector is not read."""
    rows = 20 * VECTOR_ROWS + 200
    numbers = np.arange(rows) % 7 + 0.5
    chosen = (5 * VECTOR_ROWS + 3 * PART_ROWS + 17, 20 * VECTOR_ROWS + 150)  # the last part is short
    for row in chosen:
        numbers[row] = 100.0
    with stored(tmp_path / "db", pa.table({"x": numbers, "y": np.arange(rows)})) as table:
        predicates = [compare(table, "x", "greater", 50.0)]
        profile = check(cuda, table, ("x", "y"), predicates)
        assert profile.columns["x"].counters.commands == len(chosen)
        fragment = table.fragments[0]
        start = fragment.layout.columns[0].values.offset
        damaged = [(row // PART_ROWS * PART_ROWS + 40, True) for row in chosen]
        damaged += [(5 * VECTOR_ROWS + part * PART_ROWS + 5, False) for part in (0, 2, 4, 7)]
        for row, is_read in damaged:
            with fragment.path.open("r+b") as file:
                file.seek(start + 8 * row)
                before = file.read(1)
                file.seek(start + 8 * row)
                file.write(bytes([before[0] ^ 1]))
            if is_read:
                vector = row // VECTOR_ROWS
                with pytest.raises(CorruptionError, match=f'column "x", vector {vector}: its values do not'):
                    run(cuda, table, ("y",), predicates)
                run(cuda, table, ("y",), predicates, verify_checksums=False)
            else:
                found, _ = run(cuda, table, ("y",), predicates)
                assert found["y"].to_pylist() == list(chosen)
                with pytest.raises(CorruptionError, match='column "x", vector 5: its values do not'):
                    run(cuda, table, ("y",), predicates, zone_maps=False)
            with fragment.path.open("r+b") as file:
                file.seek(start + 8 * row)
                file.write(before)
        check(cuda, table, ("x", "y"), predicates)
