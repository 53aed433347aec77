"""Of a packed column that is filtered first only parts of vectors are read, where zone maps tell."""

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
from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.statistics.parts import PART_ROWS, PARTS
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import check, column, compare, run
from tests.packed.steps import has_parts
from tests.stored import stored

ROWS = 40_000
CUTS = (1, 5000, 5100, 20_480)
SPIKE = 900_000
"""Such values are rare, and escapes; those below are ordinary codes."""
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
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
NAMES = (*KINDS, "even", "mixed", "narrow")


def rare(rows: int, seed: int, *, nulls: bool) -> pa.Table:
    """Columns of numbers below 6,000 with a large one in some rows; `narrow` has no parts, `even` no escapes.

    Of `mixed` every third vector is raw. With `nulls` some parts, vectors and rows are null, and floats have
    NaN, infinities and values that are no decimals in some vectors.
    """
    random = np.random.default_rng(seed)
    part, vector = np.arange(rows) // PART_ROWS, np.arange(rows) // VECTOR_ROWS
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        numbers = random.integers(0, 6000, rows)
        at = random.integers(0, rows, max(rows // 1500, 1))
        numbers[at] = SPIKE + random.integers(0, 50, len(at))
        mask = np.zeros(rows, np.bool_)
        if nulls:
            mask = (part % 5 == 3) | (vector % 7 == 2) | (random.random(rows) < 0.05)
        if pa.types.is_floating(kind):
            floats = (numbers / (100 if kind.bit_width == 64 else 1)).astype(f"f{kind.bit_width // 8}")
            floats[floats == 0] *= -1
            if nulls:
                odd = (vector % 4 == 1) & (random.random(rows) < 0.003)
                floats[odd] = random.choice([np.nan, np.inf, -np.inf, -0.0, 1e30, 12.3456], int(odd.sum()))
            found[name] = pa.array(floats, kind, mask=mask)
        else:
            wide = pa.int64() if kind.bit_width == 64 else pa.int32()
            found[name] = pa.array(numbers, wide, mask=mask).cast(kind)
    found["even"] = pa.array(random.integers(0, 1 << 16, rows))
    found["mixed"] = pa.array(
        np.where(vector % 3 == 0, random.random(rows), random.integers(0, 9000, rows) / 8)
    )
    found["narrow"] = pa.array(random.integers(0, 100, rows).astype(np.int16))
    found["number"] = pa.array(np.arange(rows))
    return pa.table(found)


@pytest.fixture(scope="module")
def spikes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = rare(ROWS, 5, nulls=False)
    with stored(tmp_path_factory.mktemp("rare") / "db", table, CUTS, encoding="auto") as snapshot:
        yield snapshot


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = rare(ROWS, 6, nulls=True)
    with stored(tmp_path_factory.mktemp("holes") / "db", table, CUTS, encoding="auto") as snapshot:
        yield snapshot


@pytest.fixture(params=["spikes", "holes"])
def some(request: pytest.FixtureRequest) -> Snapshot:
    found: Snapshot = request.getfixturevalue(request.param)
    return found


def value(snapshot: Snapshot, name: str, number: int) -> Any:
    """The number as a value of the column's type."""
    kind = snapshot.schema.field(name).type
    if pa.types.is_floating(kind):
        return pa.scalar(number / (100 if name == "f64" else 1), kind)
    return pa.scalar(number, pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)


def parts_of_rows(snapshot: Snapshot, name: str, rows: Any, block_size: int) -> tuple[int, int]:
    """Parts that have one of those rows of the table, and the blocks of these and of what is behind codes."""
    count, blocks, first = 0, set(), 0
    for number, fragment in enumerate(snapshot.fragments):
        here = rows[(rows >= first) & (rows < first + fragment.rows)] - first
        first += fragment.rows
        buffers = stored_buffers(fragment, name)
        if buffers.packing is None:  # of one row
            assert not len(here)
            continue
        parameters = buffers.packing.parameters
        starts = [*(16 * parameters["offset"].astype(np.int64)).tolist(), buffers.values.length]
        for vector in np.unique(here // VECTOR_ROWS).tolist():
            parts = np.unique(here[here // VECTOR_ROWS == vector] % VECTOR_ROWS // PART_ROWS).tolist()
            there = -(-min(fragment.rows - vector * VECTOR_ROWS, VECTOR_ROWS) // PART_ROWS)
            size = 16 * int(parameters[vector]["bits"])
            begin, end = starts[vector : vector + 2]
            ranges = [(begin + part * size, begin + (part + 1) * size) for part in parts]
            ranges.append((begin + there * size, end))
            if not has_parts(parameters[vector]) or len(parts) == there:
                parts, ranges = list(range(there)), [(begin, end)]
            count += len(parts)
            for low, high in ranges:
                low, high = low + buffers.values.offset, high + buffers.values.offset  # noqa: PLW2901
                blocks |= {(number, block) for block in range(low // block_size, -(-high // block_size))}
    return count, len(blocks)


def test_columns_have_parts(some: Snapshot) -> None:
    last = some.fragments[-1]
    assert [name for name in NAMES if not last.has_parts(name)] == ["narrow"]
    for name in NAMES:
        assert last.parts(name) is None
    assert all(fragment.check() == [] for fragment in some.fragments)


@pytest.mark.parametrize("name", KINDS)
def test_only_parts_are_read(cuda: Any, spikes: Snapshot, name: str) -> None:
    """Those with rows that pass: spikes are beyond all other values, and so in no other part's bounds."""
    predicate = compare(spikes, name, "greater_equal", value(spikes, name, SPIKE))
    rows = run(cuda, spikes, ("number",), [predicate], zone_maps=False)[0].column("number").to_numpy()
    assert len(rows)
    for block_size in (512, 4096):
        profile = check(cuda, spikes, ("number", name), [predicate], block_size=block_size)
        figures = profile.columns[name]
        left, blocks = parts_of_rows(spikes, name, rows, block_size)
        assert (figures.counters.commands, figures.counters.blocks) == (left, blocks)
        assert figures.counters.bytes == blocks * block_size
        assert figures.parts_pruned + left <= figures.vectors_read * PARTS
        assert figures.parts_pruned > 2 * left
        whole = check(
            cuda, spikes, ("number", name), [predicate], zone_maps=False, block_size=block_size
        ).columns[name]
        assert whole.parts_pruned == 0
        assert figures.counters.bytes < whole.counters.bytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", COMPARISONS)
def test_comparisons_of_parts(cuda: Any, holes: Snapshot, name: str, function: str) -> None:
    for number in (0, 17, 5999, SPIKE, SPIKE + 20):
        if name != "narrow" or number < 1 << 15:
            check(
                cuda, holes, ("number", name), [compare(holes, name, function, literal(holes, name, number))]
            )


def literal(snapshot: Snapshot, name: str, number: int) -> Any:
    """As `value`, of all columns."""
    if name in KINDS:
        return value(snapshot, name, number)
    return pa.scalar(number).cast(snapshot.schema.field(name).type)


def test_conditions_at_steps(cuda: Any, some: Snapshot) -> None:
    """Where one step ends and the next begins, no row is taken for one of the other."""
    parameters = stored_buffers(some.fragments[-1], "even").packing.parameters
    step = 1 << (int(parameters["bits"][0]) - 8)
    base = int(parameters["base"][0])
    for edge in (1, 2, 100, 254, 255, 256):
        for beside in (-1, 0, 1):
            number = base + edge * step + beside
            for function in ("equal", "less", "greater"):
                check(cuda, some, ("number",), [compare(some, "even", function, pa.scalar(number))])


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf"), -0.0, 12.3456, 1e30])
@pytest.mark.parametrize("function", COMPARISONS)
def test_special_floats_of_parts(cuda: Any, holes: Snapshot, special: float, function: str) -> None:
    for name in ("f32", "f64"):
        check(cuda, holes, ("number", name), [compare(holes, name, function, special)])


def test_random_ranges_lose_no_row(cuda: Any, some: Snapshot, scale: float) -> None:
    random = np.random.default_rng(11)
    for _ in range(round(200 * max(scale, 0.1))):
        predicates: list[Expression] = []
        for name in random.choice(NAMES, int(random.integers(1, 4))):
            function = str(random.choice([*COMPARISONS, "in", "is_null", "is_not_null"]))
            if function in {"is_null", "is_not_null"}:
                predicates.append(Call(function, (column(some, name),), pa.bool_()))
                continue
            numbers = [int(n) for n in random.choice([0, 3, 30, 3000, 5999, 6001, SPIKE, SPIKE + 49], 3)]
            if name == "narrow":
                numbers = [n % 100 for n in numbers]
            if function == "in":
                listed = [compare(some, name, "equal", literal(some, name, n)).arguments[1] for n in numbers]
                predicates.append(Call("in", (column(some, name), *listed), pa.bool_()))
            else:
                predicates.append(compare(some, name, function, literal(some, name, numbers[0])))
        outputs = ("number", "f64", "narrow", "mixed")
        check(cuda, some, outputs, predicates, same_order=False)


def test_conditions_on_several_columns_leave_what_all_leave(cuda: Any, spikes: Snapshot) -> None:
    names = ("f64", "i64")
    predicates = [compare(spikes, name, "greater_equal", value(spikes, name, SPIKE)) for name in names]
    both = check(cuda, spikes, ("number",), predicates, same_order=False)
    read = [both.columns[name].counters.bytes for name in names]
    for name, predicate in zip(names, predicates, strict=True):
        alone = check(cuda, spikes, ("number",), [predicate])
        assert sum(read) <= alone.columns[name].counters.bytes


def test_whole_vectors_where_no_part_is_left_out(cuda: Any, spikes: Snapshot) -> None:
    profile = check(cuda, spikes, ("number",), [compare(spikes, "f64", "less", 59.0)])
    figures = profile.columns["f64"]
    assert figures.parts_pruned == 0
    assert figures.vectors_read == figures.vectors_total


def test_parts_are_compared_with_their_checksums(cuda: Any, tmp_path: Path) -> None:
    """A wrong byte is found in a part that is read, and behind the codes; another part's is not read."""
    rows = 20 * VECTOR_ROWS + 200
    numbers = np.random.default_rng(2).integers(0, 4000, rows) / 10
    chosen = (5 * VECTOR_ROWS + 3 * PART_ROWS + 17, 20 * VECTOR_ROWS + 150)  # the last part is short
    for row in chosen:
        numbers[row] = 1e9
    with stored(tmp_path / "db", pa.table({"x": numbers, "y": np.arange(rows)}), encoding="auto") as table:
        predicates = [compare(table, "x", "greater", 1e8)]
        profile = check(cuda, table, ("x", "y"), predicates)
        assert profile.columns["x"].counters.commands == len(chosen)
        fragment = table.fragments[0]
        buffers = stored_buffers(fragment, "x")
        assert buffers.packing is not None
        parameters = buffers.packing.parameters
        starts = buffers.values.offset + 16 * parameters["offset"].astype(np.int64)

        def byte_of(row: int) -> int:
            vector = row // VECTOR_ROWS
            return (
                int(starts[vector])
                + row % VECTOR_ROWS // PART_ROWS * 16 * int(parameters["bits"][vector])
                + 40
            )

        def behind(vector: int, parts: int) -> int:
            assert parameters["escapes_nulls"][vector]
            return int(starts[vector]) + parts * 16 * int(parameters["bits"][vector])

        damaged = [(byte_of(row), row // VECTOR_ROWS, True) for row in chosen]
        damaged += [(behind(5, PARTS), 5, True), (behind(20, 2), 20, True)]
        damaged += [(byte_of(5 * VECTOR_ROWS + part * PART_ROWS), 5, False) for part in (0, 2, 4, 7)]
        for place, vector, is_read in damaged:
            with fragment.path.open("r+b") as file:
                file.seek(place)
                before = file.read(1)
                file.seek(place)
                file.write(bytes([before[0] ^ 1]))
            if is_read:
                with pytest.raises(CorruptionError, match=f'column "x", vector {vector}: its values do not'):
                    run(cuda, table, ("y",), predicates)
                run(cuda, table, ("y",), predicates, verify_checksums=False)
            else:
                found, _ = run(cuda, table, ("y",), predicates)
                assert found["y"].to_pylist() == list(chosen)
                with pytest.raises(CorruptionError, match='column "x", vector 5: its values do not'):
                    run(cuda, table, ("y",), predicates, zone_maps=False)
            with fragment.path.open("r+b") as file:
                file.seek(place)
                file.write(before)
        check(cuda, table, ("x", "y"), predicates)
