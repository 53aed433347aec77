"""The GPU's scan gives what the CPU's gives, and reads and needs the same."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.profiling.vector_map import VectorState
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import Call
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import (
    FIXED,
    KEYS,
    SELECTIVITIES,
    STRATEGIES,
    check,
    column,
    compare,
    require_same,
    run,
)
from tests.stored import require_direct_reads, scan_of, stored

OUTPUTS = tuple(FIXED)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", SELECTIVITIES)
@pytest.mark.parametrize("block_size", [512, 4096])
def test_each_strategy(
    cuda: Any, snapshot: Snapshot, strategy: str, selectivity: float, block_size: int
) -> None:
    predicate = compare(snapshot, "pick", "less", selectivity)
    profile = check(cuda, snapshot, OUTPUTS, [predicate], strategy=strategy, block_size=block_size)
    assert bool(profile.columns["pick"].paths) == (selectivity > 0)  # else zone maps leave nothing


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("selectivity", SELECTIVITIES)
def test_vector_maps(cuda: Any, snapshot: Snapshot, strategy: str, selectivity: float) -> None:
    """They say of each vector what counts say of all; chunks aside, what those of a CPU say."""
    predicate = compare(snapshot, "pick", "less", selectivity)
    asked = (
        (snapshot, ("f64", "text", "pick"), [predicate]),
        {"strategy": strategy, "profile_vectors": True},
    )
    _, ours = run(cuda, *asked[0], **asked[1])
    _, theirs = run(CpuDevice(), *asked[0], **asked[1])
    for profile in (ours, theirs):
        assert profile.vector_map is not None
        for name, figures in profile.columns.items():
            states = profile.vector_map.states(name)
            assert len(states) == figures.vectors_total
            assert (states == VectorState.PRUNED).sum() == figures.vectors_pruned
            assert (states >= VectorState.BLOCKS).sum() == figures.vectors_read
    if strategy in ("vectors", "blocks") and selectivity < 1:  # a CPU streams where every row is alive
        assert ours.to_dict()["vector_map"] == theirs.to_dict()["vector_map"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_direct_reads(cuda: Any, snapshot: Snapshot, strategy: str) -> None:
    require_direct_reads(snapshot.fragments[0].path.parent)
    predicate = compare(snapshot, "pick", "less", 0.05)
    profile = check(cuda, snapshot, OUTPUTS, [predicate], strategy=strategy, reader="direct")
    assert profile.queues is not None
    assert profile.queues.commands


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("function", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons(cuda: Any, whole: Snapshot, name: str, function: str) -> None:
    kind = FIXED[name]
    value: Any = 1 if pa.types.is_integer(kind) else 1.5 if pa.types.is_floating(kind) else None
    if pa.types.is_boolean(kind):
        value = True
    if value is None:
        value = pa.scalar(1, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    check(cuda, whole, tuple(dict.fromkeys(("dec", name))), [compare(whole, name, function, value)])


@pytest.mark.parametrize("value", [0.0, -0.0, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("function", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_special_floats(cuda: Any, whole: Snapshot, value: float, function: str) -> None:
    for name in ("f32", "f64"):
        check(cuda, whole, (name,), [compare(whole, name, function, value)], zone_maps=False)


@pytest.mark.parametrize("function", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_wide_decimals(cuda: Any, tmp_path: Path, function: str) -> None:
    """Both halves of 128 bits count, and so does the sign."""
    digits = [0, 1, -1, 2**63, 2**64 - 1, 2**64, -(2**64), -(2**64) - 1, 10**38 - 1, 1 - 10**38]
    numbers = [None if i % 23 == 22 else Decimal(digits[i % 10] + i % 3 - 1) for i in range(5000)]
    numbers = [None if n is None or abs(n) >= 10**38 else n for n in numbers]
    table = pa.table({"pick": [i % 2 for i in range(5000)], "d": pa.array(numbers, pa.decimal128(38, 0))})
    with stored(tmp_path / "db", table) as snapshot:
        for value in (0, -1, 2**64, -(2**64), 10**38 - 2):
            predicates = [compare(snapshot, "d", function, Decimal(value))]
            check(cuda, snapshot, ("d",), predicates, zone_maps=False)
            check(cuda, snapshot, ("d",), [compare(snapshot, "pick", "equal", 1), *predicates])


def test_lists_ranges_and_nulls(cuda: Any, snapshot: Snapshot) -> None:
    i32 = column(snapshot, "i32")
    literals = [compare(snapshot, "i32", "equal", v).arguments[1] for v in (3, 7, -50, 49)]
    cases = [
        [Call("in", (i32, *literals), pa.bool_())],
        [compare(snapshot, "i32", "greater", -3), compare(snapshot, "i32", "less_equal", 9)],
        [compare(snapshot, "i32", "greater", 3), compare(snapshot, "i32", "less", 3)],
        [compare(snapshot, "i32", "not_equal", 3), compare(snapshot, "i32", "not_equal", 4)],
        [Call("is_null", (i32,), pa.bool_())],
        [Call("is_not_null", (i32,), pa.bool_())],
    ]
    for predicates in cases:
        check(cuda, snapshot, ("i32", "f64", "flag"), predicates)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_filters(cuda: Any, snapshot: Snapshot, strategy: str) -> None:
    """One after the other: comparisons in kernels, then what libcudf computes."""
    either = Call("or", (column(snapshot, "flag"), compare(snapshot, "u8", "less", 20)), pa.bool_())
    predicates = [
        compare(snapshot, "pick", "less", 0.2),
        compare(snapshot, "f64", "greater", 2.0),
        either,
    ]
    outputs = ("i8", "f64", "dec", "stamp")
    # Devices have reasons of their own for an order.
    check(cuda, snapshot, outputs, predicates, same_order=False, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("predicates", [False, True])
def test_strings_and_dictionaries(cuda: Any, snapshot: Snapshot, predicates: bool, strategy: str) -> None:
    chosen = [compare(snapshot, "pick", "less", 0.05)] if predicates else []
    profile = check(cuda, snapshot, ("word", "i64", "text"), chosen, strategy=strategy)
    assert profile.columns["text"].paths
    assert profile.columns["word"].paths


def test_without_filters_and_without_columns(cuda: Any, snapshot: Snapshot) -> None:
    check(cuda, snapshot, OUTPUTS)
    check(cuda, snapshot, (), [compare(snapshot, "pick", "less", 0.5)])


def test_zone_maps_prune(cuda: Any, snapshot: Snapshot) -> None:
    on = check(cuda, snapshot, ("f64",), [compare(snapshot, "pick", "less", 0.0003)])
    off = check(cuda, snapshot, ("f64",), [compare(snapshot, "pick", "less", 0.0003)], zone_maps=False)
    assert on.counters.bytes < off.counters.bytes


def test_the_profile_says_what_the_queue_pairs_did(cuda: Any, whole: Snapshot) -> None:
    predicates = [compare(whole, "pick", "less", 0.001)]
    profile = check(cuda, whole, ("f64", "i32"), predicates, strategy="blocks", reader="queues")
    queues = profile.queues
    assert queues is not None
    assert queues.commands == sum(profile.columns[name].counters.commands for name in ("f64", "i32"))
    assert queues.kernel_seconds > 0
    assert queues.mean_depth
    assert queues.waited_share
    assert profile.verified == "partly"


def test_many_scans_at_once_and_after_one_another(cuda: Any, whole: Snapshot) -> None:
    failures: list[BaseException] = []
    predicates = [compare(whole, "pick", "less", 0.01)]
    expected, _ = run(CpuDevice(), whole, ("f64", "i32"), predicates)

    def work() -> None:
        try:
            for _ in range(20):
                found, _ = run(cuda, whole, ("f64", "i32"), predicates, strategy="blocks")
                require_same(found, expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_a_cancelled_scan_stops_and_the_next_one_answers(cuda: Any, whole: Snapshot) -> None:
    scan = scan_of(whole, ("f64",), [compare(whole, "pick", "less", 0.5)])
    with ExecutionContext(cuda, Settings()) as context:
        frames = scan.frames(context)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            next(frames)
    check(cuda, whole, ("f64",), [compare(whole, "pick", "less", 0.5)])


def test_queries_in_a_loop_keep_nothing(cuda: Any, whole: Snapshot, scale: float) -> None:
    """Pinned memory, queue pairs and streams are those of the first query."""
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    predicates = [compare(whole, "pick", "less", 0.01)]

    def held() -> tuple[int, ...]:
        found = resources_of(cuda.session)
        blocks = found.blocks.unused_bytes
        streams = sum(map(len, found._streams.values()))
        return blocks, streams, found.maps.bytes, len(found._rings), len(found.runs._known)

    def queries(count: int) -> None:
        for _ in range(count):
            run(cuda, whole, ("f64", "i32", "word", "text"), predicates, strategy="blocks", reader="queues")
            run(cuda, whole, ("text",), predicates, strategy="vectors")

    queries(3)
    before = held()
    queries(round(200 * scale))
    assert held() == before
