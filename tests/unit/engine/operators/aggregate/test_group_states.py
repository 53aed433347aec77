"""States of groups while rows come in: answers, memory and work, held against a simple aggregation."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bamquery.engine.operators.aggregate import group_states, state_partitions
from bamquery.engine.operators.aggregate.state_partitions import StatePartitions
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import CancelledError, MemoryLimitError
from tests.selection.effort import effort
from tests.unit.engine.operators.aggregate.gathering import (
    PARTITIONS,
    PLACE,
    ROOMY,
    STATES,
    WAITING,
    Gathering,
    Run,
    SplicingGathering,
    WideDevice,
    make_small,
    small_context,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def _keys(choose: random.Random, rows: int, different: int) -> list[int]:
    return [choose.randrange(different) for _ in range(rows)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(effort(12, 300)))
def test_every_row_comes_once_in_order_within_the_limit(tmp_path: Path, seed: int) -> None:
    """Whatever states are merged, split or put into files."""
    choose = random.Random(seed)
    keys = _keys(choose, choose.choice((0, 1, 60, 250)), choose.choice((2, 5, 50, 1000)))
    limit = choose.choice((4_000, 10_000, 40_000))
    with (
        small_context(limit, tmp_path, choose.choice((1, 2))) as context,
        closing(Run(context, keys, choose.choice((1, 7, 40)))) as run,
    ):
        run.add_all()
        if len(run.wanted) > 1 and choose.random() < 0.3:
            run.states.release_memory()
            assert not run.memory.held
            assert not run.aggregation.alive
        assert run.answer() == run.wanted
        assert run.spilled or run.merged_bytes <= limit
        assert run.memory.peak <= limit


@pytest.mark.parametrize(("rows", "different", "length"), [(600, 10, 1), (4000, 4000, 20), (1500, 40, 30)])
def test_where_there_is_room_work_follows_the_rows(
    tmp_path: Path, rows: int, different: int, length: int
) -> None:
    """Nothing is written; a group is merged and cut a few times only, and few at once; few states wait."""
    with (
        small_context(ROOMY, tmp_path) as context,
        closing(Run(context, _keys(random.Random(rows), rows, different), length)) as run,
    ):
        most_alive = 0
        given = 0
        for state in run.rows():
            given += state.groups
            run.states.add(state)
            most_alive = max(most_alive, len(run.aggregation.alive))
            del state
        assert most_alive <= STATES + 4 * 8
        assert run.answer() == run.wanted
        assert not run.spilled
        assert sum(run.aggregation.merged) <= 5 * given
        assert sum(run.aggregation.cut) <= 4 * given
        many = different > WAITING
        assert max(run.aggregation.finished) <= (different // 4 if many else different)


@pytest.mark.parametrize(("least", "places"), [(1, 16), (3, 16), (8, 8), (11, 8), (12, 1), (90, 1)])
def test_places_have_some_groups_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, places: int
) -> None:
    """Merging places of a group or two costs as much as merging all of them."""
    monkeypatch.setattr(group_states, "_PLACE_GROUPS", least)
    monkeypatch.setattr(group_states, "_PLACES", 16 * WideDevice.task_size)
    for name in ("PLACE_GROUPS", "_SPLIT_GROUPS"):
        monkeypatch.setattr(group_states, name, 1000)
    with small_context(100_000, tmp_path) as context, closing(Run(context, list(range(90)), 90)) as run:
        run.add_all()
        assert len([groups for groups in run.aggregation.merged if groups]) == places
        assert run.answer() == run.wanted
        assert not run.spilled


@pytest.mark.parametrize("many", [True, False])
def test_many_threads_need_not_wait_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, many: bool
) -> None:
    """The first groups are in places before they are merged: nobody merges all of them."""
    monkeypatch.setattr(group_states, "_MANY_THREADS", 1 if many else 2)
    for name, value in (("_SPLIT_GROUPS", 50), ("_SPREAD_GROUPS", 10), ("_SPREAD_STATE", 10)):
        monkeypatch.setattr(group_states, name, value)
    monkeypatch.setattr(group_states, "_PLACES", 16 * WideDevice.task_size)
    keys = [row % 200 for row in range(400)]
    with small_context(10**6, tmp_path) as context, closing(Run(context, keys, 20)) as run:
        run.add_all()
        assert run.answer() == run.wanted
        assert not run.spilled
        assert max(run.aggregation.merged) < 50 if many else max(run.aggregation.merged) > 50


@pytest.mark.parametrize(
    ("groups", "places"),
    [(100, 1), (399, 1), (400, 8), (700, 8), (800, 16), (3199, 16), (3200, 32), (10**6, 64)],
)
def test_places_of_many_threads(
    groups: int, places: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few places, each of which is many steps of Python: as many as threads soon, and more of many groups."""
    monkeypatch.setattr(group_states, "_MANY_THREADS", 1)
    monkeypatch.setattr(group_states, "_FEWEST_PLACES", 8)
    monkeypatch.setattr(group_states, "_SPREAD_GROUPS", 100)
    monkeypatch.setattr(group_states, "_PLACES", 64 * WideDevice.task_size)
    with small_context(10**6, tmp_path) as context, closing(Run(context)) as run:
        run.states._pending_groups = groups
        assert run.states._worth_places == places


@pytest.mark.parametrize("repeated", [True, False])
def test_groups_that_repeat_are_merged_before_they_are_written(tmp_path: Path, *, repeated: bool) -> None:
    """Others are not: that would be work in vain."""
    rows = 2400 if repeated else 1200
    keys = [row % 60 if repeated else row for row in range(rows)]
    limit = 25_000 if repeated else 30_000
    with small_context(limit, tmp_path) as context, closing(Run(context, keys, 20)) as run:
        run.add_all()
        assert run.spilled
        merged, written = sum(run.aggregation.merged), sum(run.aggregation.written)
        assert run.answer() == run.wanted
    if repeated:
        assert written < rows / 4
    else:
        assert merged < rows / 2


@pytest.mark.parametrize("different", [20, 60, 200])
def test_without_files_groups_fit_or_are_refused(different: int) -> None:
    """What the groups take once merged is what decides, however often each comes before."""
    keys = [row % different for row in range(400)]
    for times, fits in ((3, True), (1.25, False)):
        with small_context(10**6, None) as context, closing(Run(context, keys, 10)) as run:
            context.memory.limit = int(times * run.merged_bytes) + 1_000
            if fits:
                run.add_all()
                assert run.answer() == run.wanted
            else:
                with pytest.raises(MemoryLimitError, match="GROUP BY"):
                    run.add_all()


def test_one_group_is_not_put_into_a_file(tmp_path: Path) -> None:
    """It would not become less."""
    with small_context(4_000, tmp_path) as context, closing(Run(context, [7] * 1000, 10)) as run:
        with pytest.raises(MemoryLimitError, match="GROUP BY"):
            run.add_all()
        assert not run.spilled


@pytest.mark.parametrize(
    ("limit", "different", "again"), [(60_000, 700, False), (6_000, 700, True), (6_000, 350, True)]
)
def test_files_are_read_in_pieces(tmp_path: Path, limit: int, different: int, *, again: bool) -> None:
    """A file's groups are merged in places that are small, and files that are too large are split again."""
    keys = [row % different for row in range(700)]
    with small_context(limit, tmp_path) as context, closing(Run(context, keys, 20)) as run:
        run.add_all()
        before = len(run.aggregation.finished)
        assert run.answer() == run.wanted
    assert max(run.aggregation.finished[before:]) <= 2 * PLACE
    assert (run.profile.details["partitions"] > PARTITIONS) == again


@pytest.mark.parametrize(
    ("groups", "pieces"), [(PLACE, 1), (PLACE + 1, 2), (2 * PLACE, 2), (2 * PLACE + 1, 4)]
)
def test_a_file_is_split_no_further_than_is_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int, pieces: int
) -> None:
    monkeypatch.setattr(state_partitions, "_PARTITIONS", 1)
    aggregation: Any = Gathering()
    with (
        small_context(ROOMY, tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        closing(StatePartitions(context, aggregation, OperatorProfile("Aggregate"), 1)) as partitions,
    ):
        partitions.add([aggregation.state([(key, (key,)) for key in range(groups)])])
        frames = list(partitions.finish(memory))
    assert sum(map(len, frames)) == groups
    assert len(frames) == pieces


def test_a_file_of_any_size_is_finished_once(tmp_path: Path) -> None:
    """Those that just fit, and those that are a byte too large; what fits is merged within its room."""
    with small_context(ROOMY, tmp_path) as context:
        aggregation: Any = Gathering()
        for difference in (-1, 0, 1):
            profile = OperatorProfile("Aggregate")
            partitions = StatePartitions(context, aggregation, profile, 1)
            with closing(partitions), context.memory.reservation("GROUP BY") as memory:
                aggregation.each_step = lambda: None
                partitions.add([aggregation.state([(key, (key,)) for key in range(40)])])
                (size, *_) = sorted(file.bytes for file in partitions._files if file.bytes)
                needed = size * state_partitions._COPIES * (context.threads + 1)
                context.memory.limit = needed + difference

                def look() -> None:
                    assert memory.held >= needed  # noqa: B023 -- called within the same turn

                aggregation.each_step = look
                found = [group for frame in partitions.finish(memory) for group in frame]
                assert memory.peak <= context.memory.limit
                assert memory.held == 0
                for states in partitions.oversized_states():
                    found += [group for state in states for group in state.entries]
                assert sorted(found) == [(key, (key,)) for key in range(40)]
                assert profile.details["partitions"] == PARTITIONS


@pytest.mark.parametrize("limit", [4_000, ROOMY])
def test_no_step_over_many_groups_is_begun_after_a_cancel(tmp_path: Path, limit: int) -> None:
    keys = _keys(random.Random(3), 200, 150)

    def steps(stop: int | None) -> int:
        """How many there are, where the query is cancelled in one of them."""
        count = 0
        with small_context(limit, tmp_path) as context, closing(Run(context, keys, 10)) as run:

            def look() -> None:
                nonlocal count
                count += 1
                if count == stop:
                    context.cancelled.set()

            run.aggregation.each_step = look
            try:
                for state in run.rows():
                    run.states.add(state)
                del state
                run.answer()
            except CancelledError:
                assert stop is not None
        return count

    whole = steps(None)
    assert whole > 20
    for stop in (1, 5, whole // 3, whole // 2, whole - 5):
        assert steps(stop) <= stop + 2


def test_of_rows_in_the_order_of_their_keys_nothing_is_merged(tmp_path: Path) -> None:
    aggregation = SplicingGathering()
    keys = [row // 3 for row in range(3000)]
    with (
        small_context(ROOMY, tmp_path) as context,
        closing(Run(context, keys, 100, aggregation=aggregation)) as run,
    ):
        run.add_all()
        assert run.answer() == run.wanted
        assert sum(aggregation.merged) < 100
        assert not aggregation.cut
        assert len(aggregation.spliced) < 10
        assert len(aggregation.finished) == 30


@pytest.mark.parametrize("limit", [ROOMY, 40_000, 10_000])
@pytest.mark.parametrize("ordered", [0, 300, 900])
def test_where_keys_come_again_they_are_merged_after_all(tmp_path: Path, limit: int, ordered: int) -> None:
    """Groups that were left apart before, and such as come later, on their way to files too."""
    choose = random.Random(ordered)
    keys = [*range(ordered), *_keys(choose, 900, 400)]
    with (
        small_context(limit, tmp_path) as context,
        closing(Run(context, keys, 40, aggregation=SplicingGathering())) as run,
    ):
        run.add_all()
        assert run.answer() == run.wanted
        assert run.memory.peak <= limit


def test_groups_that_are_apart_go_to_files_where_others_want_their_memory(tmp_path: Path) -> None:
    with (
        small_context(ROOMY, tmp_path) as context,
        closing(Run(context, [*range(600), *range(600)], 50, aggregation=SplicingGathering())) as run,
    ):
        for place, state in enumerate(run.rows()):
            run.states.add(state)
            if place == 11:
                run.states.release_memory()
                assert not run.memory.held
        del state
        assert run.answer() == run.wanted
        assert run.spilled
