"""The planner takes the cheapest way by the device's numbers, and counts what the readers then do."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.storage.encodings.encoding import BufferShape, ColumnShape
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.read_planner.column_demands import (
    ReaderShape,
    expected_demands,
    shape_demands,
    stored_demands,
)
from bamquery.storage.read_planner.cost_model import (
    CostModel,
    Path,
    PathRates,
    ProcessorRates,
    ReadDemand,
    Resource,
)
from bamquery.storage.read_planner.device_profile import ASSUMED, DeviceProfile
from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid
from bamquery.storage.read_planner.planner import Choice, Demands, Strategy, plan_reads, total_seconds
from bamquery.storage.read_planner.processor_profile import ASSUMED_PROCESSOR
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.readers.queue_reader import QueueReader
from tests.unit.storage.random_columns import written

VECTORS = 400
ROWS = VECTORS * VECTOR_ROWS

NO_CHECKS = ProcessorRates(checksum=1e15)
FAST_DRIVE = DeviceProfile(bandwidth=5e9, iops=5e6, latency=1e-5)
SLOW_DRIVE = DeviceProfile(bandwidth=5e9, iops=5e4, latency=1e-4)


@pytest.fixture(scope="module")
def fragment():
    random = np.random.default_rng(0)
    mask = random.random(ROWS) < 0.1
    words = pa.array(["twelve bytes"] * ROWS, pa.large_string())
    batch = pa.record_batch(
        {
            "x": pa.array(random.random(ROWS)),
            "n": pa.array(random.random(ROWS), mask=mask),
            "s": words,
            "b": pa.array(random.random(ROWS) < 0.5),
        }
    )
    with written([batch]) as opened:
        yield opened


def rows_at(count: int, seed: int = 0) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(ROWS, count, replace=False))


def everything() -> np.ndarray:
    return np.arange(VECTORS, dtype=np.int64)


def choose(  # noqa: PLR0917 - as tests ask
    fragment: Fragment,
    column: str,
    rows: np.ndarray | HitPyramid,
    candidates: np.ndarray,
    profile: DeviceProfile,
    block: int,
    kind: str,
    forced: Strategy | None = None,
    processor: ProcessorRates = ASSUMED_PROCESSOR,
) -> Choice:
    reader = ReaderShape(block, profile.request_bytes if kind == "direct" else None)
    strategies = tuple(Strategy) if forced is None else (forced,)
    stored = fragment.column(column)
    if isinstance(rows, HitPyramid):
        demands = expected_demands(stored, rows, candidates, reader, strategies)
    else:
        demands = stored_demands(stored, rows, candidates, reader, strategies)
    (choice,) = plan_reads([demands], profile.model(processor, kind))
    return choice


def strategy(
    fragment: Fragment, rows: np.ndarray | HitPyramid, profile: DeviceProfile, block: int = 512
) -> Strategy:
    return choose(fragment, "x", rows, everything(), profile, block, "direct").strategy


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("profile", "count", "wanted"),
    [
        # Blocks, so long as commands are cheap: 512 bytes each instead of 8 KiB.
        (FAST_DRIVE, 10, Strategy.FETCH_BLOCKS),
        (FAST_DRIVE, 1000, Strategy.FETCH_BLOCKS),
        # One row in ten: every block is hit.
        (FAST_DRIVE, ROWS // 10, Strategy.STREAM),
        (FAST_DRIVE, ROWS, Strategy.STREAM),
        # A command costs as much as 100 kB: vectors take as many commands as blocks, and can be verified.
        (SLOW_DRIVE, 5, Strategy.FETCH_VECTORS),
        (SLOW_DRIVE, 400, Strategy.STREAM),
    ],
)
def test_crossover_points(
    fragment: Fragment, profile: DeviceProfile, count: int, wanted: Strategy, exact: bool
) -> None:
    rows = rows_at(count)
    assert strategy(fragment, rows if exact else HitPyramid.count(rows), profile) is wanted


def test_rows_side_by_side_are_few_vectors(fragment: Fragment) -> None:
    """As many rows as in a scattered selection that is worth a stream."""
    clustered = np.arange(50_000, 50_000 + ROWS // 10)
    choice = choose(fragment, "x", clustered, everything(), FAST_DRIVE, 512, "direct")
    assert choice.strategy is Strategy.FETCH_VECTORS
    assert choice.bytes < 2 * 8 * len(clustered)


def test_pruned_vectors_make_streams_cheaper(fragment: Fragment) -> None:
    rows = rows_at(3000)
    rows = rows[rows < 20 * VECTOR_ROWS]
    full = choose(fragment, "x", rows, everything(), SLOW_DRIVE, 512, "direct", Strategy.STREAM)
    pruned = choose(fragment, "x", rows, everything()[:20], SLOW_DRIVE, 512, "direct", Strategy.STREAM)
    assert pruned.bytes == 20 * 8192
    assert pruned.cost_seconds < full.cost_seconds


def test_larger_blocks_make_blocks_dearer(fragment: Fragment) -> None:
    small, large = (
        choose(fragment, "x", rows_at(50), everything(), FAST_DRIVE, block, "direct", Strategy.FETCH_BLOCKS)
        for block in (512, 4096)
    )
    assert 7 * small.bytes < large.bytes <= 8 * small.bytes


def test_the_cost_is_latency_and_the_scarcer_of_bytes_and_commands(fragment: Fragment) -> None:
    choice = choose(
        fragment, "x", rows_at(10), everything(), SLOW_DRIVE, 512, "direct", Strategy.FETCH_BLOCKS
    )
    assert choice.cost_seconds == pytest.approx(1e-4 + 10 / 5e4)
    stream = choose(fragment, "x", rows_at(10), everything(), SLOW_DRIVE, 512, "direct", Strategy.STREAM)
    assert stream.cost_seconds == pytest.approx(1e-4 + max(8 * ROWS / 5e9, stream.commands / 5e4))


def test_in_a_page_cache_one_processor_does_one_after_the_other(fragment: Fragment) -> None:
    memory = ASSUMED["mapped"]
    stream = choose(fragment, "x", rows_at(10), everything(), memory, 512, "mapped", Strategy.STREAM)
    copied, checked = 8 * ROWS / memory.bandwidth, 8 * ROWS / ASSUMED_PROCESSOR.checksum
    assert stream.cost_seconds == pytest.approx(memory.latency + copied + checked + 1 / memory.iops)


def test_reads_together_add_up_by_resource() -> None:
    """The scarcest decides where they go on at the same time; rounds are shared where all begin at once."""
    costs = [(1.0, 2.0, 4.0, 8.0, 16.0), (3.0, 32.0, 64.0, 128.0, 256.0)]
    model = CostModel({}, NO_CHECKS)
    assert model.seconds(costs) == 4 + 272
    assert replace(model, together=True).seconds(costs) == 3 + 272
    assert replace(model, overlaps=False).seconds(costs) == 4 + 34 + 68 + 136 + 272
    for place, resource in list(enumerate(Resource))[1:]:
        one = tuple(5.0 if number == place else 1.0 for number in range(5))
        assert model.seconds([one, one]) == 12
        assert model.scarcest(one) is resource
    assert model.seconds([]) == 0


def test_what_one_read_takes_of_each_resource() -> None:
    """Forms that were not measured cost nothing to decode, nor does a read without commands anything."""
    rates = PathRates(bandwidth=100.0, commands=8.0, latency=0.5, core_seconds=0.25)
    processor = ProcessorRates(checksum=50.0, decode={"packed": 10.0})
    model = CostModel({Path.VECTORS: rates}, processor, io_cores=4.0)
    packed = ReadDemand(Path.VECTORS, bytes=400, commands=16, rounds=3, checked=300, values=70, form="packed")
    assert model.cost(packed) == (3 * 0.5, 4.0, 2.0, 6.0 + 7.0, 400 * 0.25 / 4)
    assert model.cost(replace(packed, form="plain")) == (1.5, 4.0, 2.0, 6.0, 25.0)
    assert model.cost(replace(packed, commands=0)) == (0.0, 0.0, 0.0, 0.0, 0.0)


def test_values_that_are_looked_at_one_by_one_add_to_commands() -> None:
    """Of the same path only, and beside its bytes: these go on coming."""
    rates = {Path.ROWS: PathRates(100.0, 8.0, 0.5, values=10.0), Path.VECTORS: PathRates(100.0, 8.0, 0.5)}
    model = CostModel(rates, ProcessorRates(checksum=1.0))
    rows = ReadDemand(Path.ROWS, bytes=400, commands=16, values=70)
    assert model.cost(rows) == (0.5, 4.0, 2.0 + 7.0, 0.0, 0.0)
    assert model.seconds([model.cost(rows)]) == 0.5 + 9.0
    assert model.cost(replace(rows, path=Path.VECTORS)) == (0.5, 4.0, 2.0, 0.0, 0.0)


def test_what_starting_a_read_takes_adds_to_what_it_takes() -> None:
    """Whichever resource is the scarcest, and for each column, also where these share a round."""
    slow, quick = PathRates(1.0, 1.0, 1.0, host_seconds=3.0), PathRates(0.9, 0.9, 1.0)
    model = CostModel({Path.VECTORS: slow, Path.BLOCKS: quick}, ProcessorRates(checksum=1.0), together=True)
    for size, commands in ((20, 1), (1, 20)):
        demands: Demands = {
            Strategy.FETCH_VECTORS: ReadDemand(Path.VECTORS, size, commands),
            Strategy.FETCH_BLOCKS: ReadDemand(Path.BLOCKS, size, commands),
        }
        chosen = plan_reads([demands] * 2, model, verified_first=False)
        assert [choice.strategy for choice in chosen] == [Strategy.FETCH_BLOCKS] * 2
        long = {strategy: replace(demand, bytes=60) for strategy, demand in demands.items()}
        chosen = plan_reads([long] * 2, model, verified_first=False)
        assert [choice.strategy for choice in chosen] == [Strategy.FETCH_VECTORS] * 2
        assert chosen[0].cost_seconds == model.seconds([model.cost(chosen[0].demand)])
    nothing: Demands = {Strategy.FETCH_VECTORS: ReadDemand(Path.VECTORS, 0, 0)}
    assert plan_reads([nothing], model)[0].host_seconds == 0


UNITS = CostModel(dict.fromkeys(Path, PathRates(1.0, 1.0, 1.0)), ProcessorRates(checksum=1.0))
"""A byte, a command, a round and a byte's checksum take a second each."""


def ways(*costs: tuple[int, int, int, int]) -> Demands:
    """Of rounds, bytes, commands and bytes that are checked, each a strategy's."""
    return {
        strategy: ReadDemand(Path.VECTORS, size, commands, rounds, checked)
        for strategy, (rounds, size, commands, checked) in zip(
            (Strategy.STREAM, Strategy.FETCH_BLOCKS), costs, strict=False
        )
    }


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("overlaps", [True, False])
def test_no_other_ways_cost_less_together(overlaps: bool, together: bool) -> None:
    model = replace(UNITS, overlaps=overlaps, together=together)
    draw = random.Random(5)
    for _ in range(40):
        columns = [ways(*(tuple(draw.randint(1, 9) for _ in range(4)) for _ in range(2))) for _ in range(3)]
        chosen = plan_reads(columns, model, verified_first=False)
        found = total_seconds(chosen, model)
        every = product(*([model.cost(demand) for demand in demands.values()] for demands in columns))
        assert found == min(model.seconds(costs) for costs in every)
        assert found == model.seconds(choice.cost for choice in chosen)


def test_up_to_eight_columns_are_tried_in_all_combinations() -> None:
    """Two that save something only if both are read otherwise: of more columns, one at a time is changed."""
    two = [ways((0, 3, 2, 5), (0, 6, 2, 1)), ways((0, 5, 1, 5), (0, 1, 1, 6))]
    nothing = ways((0, 0, 0, 0))
    for others, seconds in ((0, 7), (6, 7), (7, 10)):
        chosen = plan_reads([*two, *[nothing] * others], UNITS, verified_first=False)
        assert total_seconds(chosen, UNITS) == seconds
    assert plan_reads([], UNITS) == []


@pytest.mark.parametrize("verifies", [True, False])
def test_demands_of_a_gpu(verifies: bool) -> None:
    """Each block is a command; a stream is a copy for each run, whole vectors are one each."""
    hits = HitPyramid.count(np.arange(6) * 10 * VECTOR_ROWS)
    shape = ColumnShape((BufferShape(64), BufferShape(16, share=0.5)), rounds=2, form="packed")
    reader = ReaderShape(512, verifies=verifies)
    size = VECTOR_ROWS * (8 + 1)

    def demands(vectors: int, runs: int) -> dict[Strategy, ReadDemand]:
        return shape_demands(shape, hits, vectors, runs, reader)

    def whole(path: Path, vectors: int, commands: int) -> ReadDemand:
        checked = vectors * size if verifies else 0
        return ReadDemand(path, vectors * size, commands, 2, checked, vectors * VECTOR_ROWS, "packed")

    assert demands(100, 3) == {
        Strategy.STREAM: whole(Path.SEQUENTIAL, 100, 3),
        Strategy.FETCH_VECTORS: whole(Path.VECTORS, 6, 9),
        Strategy.FETCH_BLOCKS: ReadDemand(Path.BLOCKS, 9 * 512, 9, 2),
    }
    # Copies of less than 256 KiB are not worth being started by the host.
    assert demands(100, 4)[Strategy.STREAM] == whole(Path.VECTORS, 100, 4)
    wide = ColumnShape((BufferShape(64),))
    for runs, path in ((1, Path.SEQUENTIAL), (2, Path.VECTORS)):
        assert shape_demands(wide, hits, 32, runs, reader)[Strategy.STREAM].path is path
    few = shape_demands(wide, HitPyramid((0.3,) * LEVELS), 100, 3, reader)
    assert few[Strategy.FETCH_VECTORS].commands == 1, "less than one is expected"


def test_checksums_are_part_of_the_cost(fragment: Fragment) -> None:
    asked = (fragment, "x", rows_at(10), everything(), FAST_DRIVE, 512, "direct", Strategy.STREAM)
    slow = choose(*asked, ProcessorRates(checksum=1e9))
    assert slow.cost_seconds == pytest.approx(1e-5 + 8 * ROWS / 1e9)
    assert choose(*asked, NO_CHECKS).cost_seconds < slow.cost_seconds / 4


def test_nothing_to_read_costs_nothing(fragment: Fragment) -> None:
    choice = choose(fragment, "x", np.empty(0, np.int64), everything()[:0], FAST_DRIVE, 512, "direct")
    assert (choice.cost_seconds, choice.bytes, choice.commands) == (0.0, 0, 0)


def test_page_caches_are_memory(fragment: Fragment) -> None:
    choice = choose(fragment, "x", rows_at(100), everything(), ASSUMED["mapped"], 512, "mapped")
    assert choice.strategy is Strategy.FETCH_BLOCKS
    choice = choose(fragment, "x", rows_at(ROWS // 3), everything(), ASSUMED["mapped"], 512, "mapped")
    assert choice.strategy is Strategy.STREAM


@pytest.mark.parametrize("kind", ["mapped", "direct"])
@settings(deadline=None, max_examples=40)
@given(
    column=st.sampled_from(["x", "n", "b", "s"]),
    count=st.integers(1, 5000),
    seed=st.integers(0, 100),
    kept=st.integers(1, VECTORS),
)
def test_counts_are_those_of_the_readers(
    fragment: Fragment, kind: str, *, column: str, count: int, seed: int, kept: int
) -> None:
    candidates = np.sort(np.random.default_rng(seed).choice(VECTORS, kept, replace=False))
    rows = rows_at(count, seed)
    rows = rows[np.isin(rows // VECTOR_ROWS, candidates)]
    if kind == "direct":
        blocks = QueueReader(fragment.path, fragment.data_bytes, 512)
    else:
        blocks = MappedReader(fragment.path, fragment.data_bytes)
    reader = FragmentReader(fragment, blocks)
    for forced in Strategy:
        choice = choose(fragment, column, rows, candidates, FAST_DRIVE, 512, kind, forced)
        counters = ReadCounters()
        if forced is Strategy.STREAM:
            reader.stream(column, candidates, counters)
        elif forced is Strategy.FETCH_VECTORS:
            reader.fetch_vectors(column, rows, counters)
        else:
            reader.fetch_blocks(column, rows, counters)
        if column == "s":  # where strings lie is known only once their offsets are read
            assert choice.bytes == pytest.approx(counters.bytes, rel=0.1, abs=4096)
        else:
            assert choice.bytes == counters.bytes
            # Requests are cut a run at a time, which the planner does not follow.
            assert choice.commands == pytest.approx(counters.commands, abs=kept * (kind == "direct"))
    blocks.close()


@pytest.mark.parametrize("column", ["x", "n", "b", "s"])
@pytest.mark.parametrize("count", [1, 30, 1000, 30_000, ROWS])
def test_expectations_are_what_chance_gives(fragment: Fragment, column: str, count: int) -> None:
    candidates = everything()[::2]
    random = np.random.default_rng(1)
    inside = np.flatnonzero(np.isin(np.arange(ROWS) // VECTOR_ROWS, candidates))
    rows = np.sort(random.choice(inside, min(count, len(inside)), replace=False))
    for forced in Strategy:
        exact = choose(fragment, column, rows, candidates, FAST_DRIVE, 512, "direct", forced)
        hits = HitPyramid.from_vectors(candidates, len(inside)).thin_out(len(rows) / len(inside))
        expected = choose(fragment, column, hits, candidates, FAST_DRIVE, 512, "direct", forced)
        assert expected.bytes == pytest.approx(exact.bytes, rel=0.15, abs=2048)
        assert expected.commands == pytest.approx(exact.commands, rel=0.25, abs=6)


@pytest.mark.parametrize("column", ["x", "n", "b", "s"])
@pytest.mark.parametrize("count", [1, 30, 1000, 30_000])
def test_pyramids_tell_what_is_counted(fragment: Fragment, column: str, count: int) -> None:
    rows = rows_at(count, seed=2)
    for forced in Strategy:
        exact = choose(fragment, column, rows, everything(), FAST_DRIVE, 512, "direct", forced)
        hits = HitPyramid.count(rows)
        expected = choose(fragment, column, hits, everything(), FAST_DRIVE, 512, "direct", forced)
        assert expected.bytes == pytest.approx(exact.bytes, rel=0.05, abs=2048)
        assert expected.commands == pytest.approx(exact.commands, rel=0.1, abs=6)
