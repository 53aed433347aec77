"""The GPU's own tests of scans, kernels and queue pairs included, over small tables on a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.plan.expressions import Call, Expression
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import KEYS, check, compare, every_type, require_same, run
from tests.gpu.scan.test_scan import (  # noqa: F401 - run here as well
    test_a_cancelled_scan_stops_and_the_next_one_answers,
    test_direct_reads,
    test_lists_ranges_and_nulls,
    test_queries_in_a_loop_keep_nothing,
    test_several_filters,
    test_special_floats,
    test_strings_and_dictionaries,
    test_the_profile_says_what_the_queue_pairs_did,
    test_vector_maps,
    test_wide_decimals,
    test_without_filters_and_without_columns,
    test_zone_maps_prune,
)
from tests.gpu.scan.test_scan_faults import (  # noqa: F401 - run here as well
    test_a_truncated_file,
    test_an_error_in_the_middle_of_a_scan,
    test_bytes_that_are_not_those_that_were_written,
)
from tests.stored import stored
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu

OUTPUTS = ("f64", "i8", "flag", "dec")


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with stored(tmp_path_factory.mktemp("whole") / "db", every_type(9000, nulls="pick")) as snapshot:
        yield snapshot


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = every_type(9000)
    with stored(tmp_path_factory.mktemp("pieces") / "db", table, (1, 3000, 3100)) as snapshot:
        yield snapshot


@pytest.fixture(params=["whole", "pieces"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    found: Snapshot = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def scale() -> float:
    return 0.03


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Snapshot]:
    with stored(tmp_path / "db", every_type(9000, nulls="none")) as snapshot:
        yield snapshot


@pytest.mark.parametrize("strategy", ["stream", "vectors", "blocks", "auto"])
@pytest.mark.parametrize("selectivity", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("block_size", [512, 4096])
def test_each_strategy(
    device: Any, pieces: Snapshot, strategy: str, selectivity: float, block_size: int
) -> None:
    predicate = compare(pieces, "pick", "less", selectivity)
    check(device, pieces, OUTPUTS, [predicate], strategy=strategy, block_size=block_size)


@pytest.mark.parametrize("name", KEYS)
def test_comparisons(device: Any, whole: Snapshot, name: str) -> None:
    value = _one_of(whole.schema.field(name).type)
    outputs = tuple(dict.fromkeys(("dec", name)))
    for function in ("equal", "not_equal", "less", "greater_equal"):
        check(device, whole, outputs, [compare(whole, name, function, value)])


def test_streams_go_through_queue_pairs_where_files_cannot_be_pinned(
    device: Any, gpu: FakeGpu, table: Snapshot
) -> None:
    gpu.refuses_pins = True
    try:
        profile = check(device, table, ("f64",), [compare(table, "pick", "less", 0.5)], strategy="stream")
    finally:
        gpu.refuses_pins = False
    assert profile.columns["pick"].paths == {"queue pairs": 1}
    assert any("cannot pin" in note for note in profile.notes)


@pytest.mark.parametrize("strategy", ["auto", "blocks"])
def test_nothing_that_cannot_be_compared(device: Any, pieces: Snapshot, strategy: str) -> None:
    predicate = compare(pieces, "pick", "less", 0.001)
    settings = {"strategy": strategy, "verify_checksums": "all"}
    assert check(device, pieces, OUTPUTS, [predicate], **settings).verified == "yes"


@pytest.mark.parametrize("strategy", ["stream", "vectors"])
def test_strings_go_through_queue_pairs_where_files_cannot_be_pinned(
    device: Any, gpu: FakeGpu, table: Snapshot, strategy: str
) -> None:
    gpu.refuses_pins = True
    try:
        predicates = [compare(table, "pick", "less", 0.3)]
        found, profile = run(device, table, ("text",), predicates, strategy=strategy)
    finally:
        gpu.refuses_pins = False
    require_same(found, run(CpuDevice(), table, ("text",), predicates)[0])
    assert profile.columns["text"].paths == {"queue pairs": 1}
    assert profile.queues is not None
    assert profile.queues.bytes == sum(column.counters.bytes for column in profile.columns.values())
    (drive,) = profile.queues.drives
    assert (drive.bytes, drive.errors) == (profile.queues.bytes, 0)


@pytest.mark.parametrize("outputs", [("f64", "text"), ("i8",)])
@pytest.mark.parametrize("first", [0.9, 0.01])
def test_conditions_that_are_taken_together(
    device: Any, snapshot: Snapshot, outputs: tuple[str, ...], first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Expression] = []
    plain = device.matching_positions

    def note(predicate: Expression, frame: Any) -> Any:
        asked.append(predicate)
        return plain(predicate, frame)

    monkeypatch.setattr(device, "matching_positions", note)
    conditions = [("pick", "less", first), ("i8", "greater", -20), ("word", "not_equal", "red")]
    predicates = [compare(snapshot, *condition) for condition in conditions]
    expected, _ = run(CpuDevice(), snapshot, outputs, predicates)
    for together in (True, False):
        asked.clear()
        monkeypatch.setattr(device, "takes_together", together)
        found, _ = run(device, snapshot, outputs, predicates)
        require_same(found, expected)
        joined = [one for one in asked if isinstance(one, Call) and one.function == "and"]
        assert bool(joined) == together


def test_conditions_are_asked_one_by_one_where_reading_takes_long(
    device: Any, table: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan import chunk_run

    monkeypatch.setattr(device, "takes_together", True)
    monkeypatch.setattr(chunk_run, "_STEP_S", 0.0)
    predicates = [compare(table, name, "greater", -20) for name in ("i8", "i16", "i32")]
    check(device, table, ("f64",), predicates)


@pytest.mark.parametrize("name", KEYS)
def test_kernels_compare(device: Any, table: Snapshot, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else does, neither while a column streams nor behind another filter."""
    monkeypatch.setattr(device, "matching_positions", None)
    predicates = [compare(table, name, "equal", _one_of(table.schema.field(name).type))]
    run(device, table, ("i64",), predicates)
    run(device, table, ("i64",), [compare(table, "pick", "less", 0.2), *predicates])


def test_later_queries_find_files_pinned(device: Any, gpu: FakeGpu, table: Snapshot) -> None:
    predicates = [compare(table, "pick", "less", 0.5)]
    check(device, table, ("f64",), predicates, strategy="stream")
    pins = gpu.pins
    check(device, table, ("f64",), predicates, strategy="stream")
    assert gpu.pins == pins


def _one_of(kind: Any) -> Any:

    if pa.types.is_floating(kind):
        return 1.5
    return pa.scalar(7, pa.int32() if kind.bit_width <= 32 else pa.int64()).cast(kind)
