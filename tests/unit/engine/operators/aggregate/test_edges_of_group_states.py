"""When states of groups are merged, split or put into files, at the number that decides; what is reserved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import group_states, state_partitions
from bamquery.engine.operators.aggregate.group_states import group_rows
from bamquery.engine.operators.aggregate.state_partitions import StatePartitions
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.expressions import AggregateCall
from tests.unit.engine.operators.aggregate.gathering import (
    BYTES,
    PARTITIONS,
    PLACE,
    ROOMY,
    STATES,
    WAITING,
    Gathering,
    Run,
    WideDevice,
    make_small,
    small_context,
)

PLACES = 8
"""In which groups in memory are, at first."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def test_states_wait_until_they_are_many_groups_or_many_states() -> None:
    """As many as were merged before at least; what waits, or is one state, is reserved twice."""
    with small_context(ROOMY, None) as context, closing(Run(context)) as run:
        run.add(range(WAITING - 1))
        assert (run.aggregation.merged, run.memory.held) == ([], 2 * (WAITING - 1) * BYTES)
        run.add([0])
        assert run.aggregation.merged == [WAITING]
        row = BYTES - 100
        assert run.memory.held == 2 * ((WAITING - 1) * BYTES + row)
        run.add(range(WAITING - 1))
        assert run.aggregation.merged == [WAITING]
        run.add([0])
        assert run.aggregation.merged == [WAITING, 2 * WAITING - 1]
        for _ in range(STATES - 1):
            run.add([])
        assert len(run.aggregation.merged) == 2
        run.add([])
        assert len(run.aggregation.merged) == 3
        assert run.aggregation.repeated == {False}
        assert not run.aggregation.cut


@pytest.mark.parametrize("bytes_", [20, 21])
def test_states_wait_until_they_are_many_bytes(monkeypatch: pytest.MonkeyPatch, bytes_: int) -> None:
    """A device that works on more at once has more of them wait."""
    monkeypatch.setattr(group_states, "_SPLIT_BYTES", bytes_ * BYTES // WideDevice.task_size)
    with small_context(ROOMY, None) as context, closing(Run(context)) as run:
        run.add(range(20))
        assert run.aggregation.merged == ([20] if bytes_ == 20 else [])
        run.add([20])
        assert sum(run.aggregation.merged) == (20 if bytes_ == 20 else 21)


@pytest.mark.parametrize("groups", [WAITING, WAITING + 1])
def test_many_groups_are_split_and_then_merged_place_by_place(groups: int) -> None:
    """What is merged of places is reserved four times; and a third of all for what allocators keep."""
    with small_context(ROOMY, None) as context, closing(Run(context)) as run:
        run.add(range(groups))
        held = groups * BYTES
        if groups == WAITING:
            assert (run.aggregation.cut, run.memory.held) == ([], 2 * held)
        else:
            assert run.aggregation.cut == [groups]
            assert run.memory.held == held + held // 3 + 4 * (held * 2 // PLACES)
        run.add(range(groups, 2 * groups))

        assert set(run.aggregation.levels) <= {(0, True)}
        assert len(run.answer()) == 2 * groups


@pytest.mark.parametrize("groups", [PLACES * PLACE, PLACES * PLACE + 1])
def test_places_of_too_many_groups_become_four_times_as_many(groups: int) -> None:
    with small_context(ROOMY, None) as context, closing(Run(context)) as run:
        first = WAITING + 1
        run.add(range(first))
        assert len(run.states._merged) == PLACES
        run.add(range(first, groups))
        run.states._merge()
        assert len(run.states._merged) == PLACES * (1 if groups == PLACES * PLACE else 4)
        assert len(run.answer()) == groups


@pytest.mark.parametrize("split_bytes", [WAITING * BYTES, WAITING * BYTES - 1])
def test_few_groups_of_many_bytes_are_split_where_that_fills_places(
    monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    """Whether they were merged before or not; and none are where there would be one place."""
    monkeypatch.setattr(group_states, "_PLACE_GROUPS", 1000)
    for place_bytes, places in ((WAITING * BYTES // PLACES, PLACES), (WAITING * BYTES // PLACES + 1, 1)):
        monkeypatch.setattr(group_states, "_PLACE_BYTES", place_bytes)
        with small_context(ROOMY, None) as context, closing(Run(context)) as run:
            run.add(range(10))
            run.states._merge()
            run.states._split_bytes = split_bytes
            run.add(range(10, WAITING))
            run.states._merge()
            many = places > 1 and split_bytes < WAITING * BYTES
            assert len(run.states._merged) == (places if many else 1)
            assert sum(run.aggregation.cut) == (WAITING if many else 0)
            assert len(run.answer()) == WAITING


@pytest.mark.parametrize("difference", [-1, 0])
def test_merged_groups_stay_where_they_take_half_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: int
) -> None:
    """Those that take more would be merged again with every state or two."""
    monkeypatch.setattr(group_states, "_SPLIT_PART", 1)
    merged = 10 * (100 + 3 * 8)
    with small_context(4 * merged + difference, tmp_path) as context, closing(Run(context)) as run:
        for _ in range(2):
            run.add(range(10))
        assert not run.aggregation.merged
        run.add(range(10))
        assert run.aggregation.merged == [30]
        assert run.spilled == (difference < 0)
        assert run.memory.held == (0 if run.spilled else 2 * merged)


@pytest.mark.parametrize(("taken", "groups", "merges"), [(80, 60, False), (79, 59, True), (79, 60, False)])
def test_where_three_quarters_are_left_of_what_was_merged_states_are_written_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int, groups: int, merges: bool
) -> None:
    """As soon as they are many, although there is room. Of others as many as before wait to be merged."""
    freed: list[int] = []
    monkeypatch.setattr(group_states, "release_unused_memory", lambda: freed.append(run.memory.held))
    monkeypatch.setattr(group_states, "_PENDING_GROUPS", 100)
    with small_context(ROOMY, tmp_path) as context, closing(Run(context)) as run:
        run.add(range(groups))
        run.states._merge()
        run.add(range(taken - groups))
        run.states._merge()
        peak = run.memory.peak
        run.states.release_memory()
        assert (freed, run.memory.held) == ([0], 0)
        assert run.profile.details["peak_memory"] == peak
        assert sum(run.aggregation.written) == groups
        monkeypatch.setattr(group_states, "_PENDING_GROUPS", WAITING // WideDevice.task_size)
        before = len(run.aggregation.merged)
        run.add(range(WAITING - 1))
        assert (len(run.aggregation.merged), run.memory.held) == (before, 2 * (WAITING - 1) * BYTES)
        run.add([WAITING])
        assert (len(run.aggregation.merged) > before) == merges
        if not merges:
            run.add(range(2 * WAITING - 1 - WAITING))
            assert sum(run.aggregation.written) == groups
            run.add([0])
            assert sum(run.aggregation.written) == groups + 2 * WAITING
            assert len(run.aggregation.merged) == before


@pytest.mark.parametrize(("merged", "pending"), [(0, 2), (1, 1), (10, 20), (30, 35)])
def test_two_groups_can_be_put_into_files(tmp_path: Path, merged: int, pending: int) -> None:
    with small_context(ROOMY, tmp_path) as context, closing(Run(context)) as run:
        run.add(range(merged))
        run.states._merge()
        run.add(range(merged, merged + pending))
        run.states.release_memory()
        assert run.spilled
        assert len(run.answer()) == merged + pending


def test_states_of_a_file_are_put_together(tmp_path: Path) -> None:
    """Even one, in which a key may come more than once."""
    with small_context(ROOMY, tmp_path) as context, closing(Run(context, level=1)) as run:
        run.states.add(run.aggregation.state([(7, (1,)), (8, (2,)), (7, (3,))]))
        assert run.answer() == {7: (1, 3), 8: (2,)}


def test_each_split_goes_by_another_hash(tmp_path: Path) -> None:
    """From the memory's on, whose pieces alone have memory of their own, to the last that there is."""
    with small_context(8 * PLACES * BYTES, tmp_path) as context, closing(Run(context)) as run:
        for key in range(0, 1000, 20):
            run.add(range(key, key + 20))
        assert len(run.answer()) == 1000
        levels = [level for level, _ in run.aggregation.levels]
        assert levels.index(1) < levels.index(2) < levels.index(3)
        assert all(apart == (level == 0) for level, apart in run.aggregation.levels)
        assert max(levels) <= state_partitions.MOST_LEVELS


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_for_each_thread_is_reserved_where_groups_are_in_places(threads: int) -> None:
    with small_context(ROOMY, None, threads) as context, closing(Run(context)) as run:
        run.add(range(60))
        held = 60 * BYTES
        assert run.memory.held == held + held // 3 + 4 * (held * (threads + 1) // PLACES)


def test_groups_that_fit_no_more_are_refused_where_no_file_helps(tmp_path: Path) -> None:
    """At the deepest level, too: who has split so often does not split once more."""
    level = state_partitions.MOST_LEVELS
    with small_context(3000, tmp_path) as context, closing(Run(context, level=level)) as run:
        with pytest.raises(MemoryLimitError, match="GROUP BY"):
            run.add(range(20))
        assert not run.spilled


def test_an_aggregation_of_no_rows_is_asked_for_once() -> None:
    """And not at all where there are rows."""
    asked: list[int] = []

    class Counting(CpuAggregation):
        def partial(self, frame: pa.RecordBatch) -> Any:
            asked.append(frame.num_rows)
            return super().partial(frame)

    aggregation = Counting([], [AggregateCall("count_star", (), pa.int64())])
    nothing = pa.record_batch([pa.array([], pa.int64())], ["a"])
    rows = pa.record_batch([pa.array([1, 2, 3])], ["a"])
    with ExecutionContext(CpuDevice(), Settings(threads=1)) as context:
        for frames, partials in (([rows], [3]), ([nothing], [0]), ([], [0])):
            asked.clear()
            with context.memory.reservation("GROUP BY") as memory:
                groups = group_rows(
                    context, frames, nothing, aggregation, memory=memory, profile=OperatorProfile("")
                )
                (found,) = groups
            assert found.column(0).to_pylist() == [sum(partials)]
            assert asked == partials


class _Files:
    """Partitions of states, one for all, and what is done with them."""

    def __init__(self, context: ExecutionContext[Any], level: int = 1) -> None:
        self.aggregation = Gathering()
        self.profile = OperatorProfile("Aggregate")
        aggregation: Any = self.aggregation
        self.partitions: StatePartitions[Any] = StatePartitions(context, aggregation, self.profile, level)

    def add(self, keys: list[int]) -> None:
        self.partitions.add([self.aggregation.state([(key, (row,)) for row, key in enumerate(keys)])])

    def close(self) -> None:
        self.partitions.close()


@pytest.mark.parametrize(
    ("keys", "most", "pieces"),
    [(list(range(PLACE)), 4, 1), (list(range(1000)), 4, 4), (list(range(1000)), 64, 64), ([5] * 100, 64, 1)],
)
def test_a_file_is_merged_in_pieces_with_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[int], most: int, pieces: int
) -> None:
    """By the hash of the next level; a file that is small enough is not cut at all."""
    monkeypatch.setattr(state_partitions, "_PARTITIONS", 1)
    monkeypatch.setattr(state_partitions, "_MOST_PLACES", most)
    with (
        small_context(ROOMY, tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        closing(_Files(context, 2)) as files,
    ):
        files.add(keys)
        frames = list(files.partitions.finish(memory))
    assert len(frames) == pieces
    assert all(frames)
    assert sum(map(len, frames)) == len(set(keys))
    assert files.aggregation.levels == [(2, False), *([(3, False)] if len(keys) > PLACE else [])]


def test_files_that_fit_exactly_are_finished_and_others_are_left(tmp_path: Path) -> None:
    for difference in (-1, 0):
        with (
            small_context(ROOMY, tmp_path) as context,
            context.memory.reservation("GROUP BY") as memory,
            closing(_Files(context)) as files,
        ):
            files.add(list(range(100)))
            sizes = sorted(file.bytes for file in files.partitions._files)
            assert len(sizes) == PARTITIONS
            context.memory.limit = sizes[-1] * 3 * 2 + difference
            list(files.partitions.finish(memory))
            left = list(files.partitions.oversized_states())
            assert len(left) == (sizes.count(sizes[-1]) if difference else 0)


@pytest.mark.parametrize("step", ["to_arrow", "final"])
def test_a_cancel_is_seen_between_files_and_between_their_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with (
        small_context(ROOMY, tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        closing(_Files(context)) as files,
    ):
        count = 0
        whole = getattr(files.aggregation, step)

        def cancelled(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            context.cancelled.set()
            return whole(*arguments)

        monkeypatch.setattr(files.aggregation, step, cancelled)

        def write_and_finish() -> None:
            files.add(list(range(200)))
            list(files.partitions.finish(memory))

        with pytest.raises(CancelledError):
            write_and_finish()
        assert count == 1
