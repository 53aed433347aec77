"""Which states that gather values are merged, put into files by keys, or have their values counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import group_states, holistic_states
from bamquery.engine.operators.aggregate.holistic_states import HolisticStates
from bamquery.engine.operators.aggregate.state_partitions import MOST_LEVELS
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal
from tests.unit.engine.operators.aggregate.gathering import (
    BYTES,
    ROOMY,
    STATES,
    WAITING,
    Gathering,
    Groups,
    make_small,
    small_context,
)

MEDIAN = AggregateCall(
    "quantile_cont",
    (ColumnRef(1, "x", pa.float64()),),
    pa.float64(),
    parameter=Literal(pa.scalar(0.5)),
)


class _Counted:
    """What stands for `CountedValues`: the states of which values would be counted, at each call."""

    made: list[_Counted]

    def __init__(self, context: Any, aggregation: Any, memory: Any, profile: Any, level: int) -> None:
        assert memory.held == 0, "it divides all of it"
        self.level = level
        self.given: list[list[Groups]] = []
        self.closed = 0
        self.made.append(self)

    def add(self, states: Iterable[Any]) -> None:
        self.given.append([state.entries for state in states])

    def frames(self) -> Iterator[Groups]:
        for states in self.given:
            yield from states

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(_Counted, "made", [], raising=False)
    monkeypatch.setattr(holistic_states, "CountedValues", _Counted)


class _Run:
    """States with a limit, whose groups of one row are long, or not."""

    def __init__(
        self,
        context: ExecutionContext[Any],
        monkeypatch: pytest.MonkeyPatch,
        *,
        long: bool,
        calls: tuple[AggregateCall, ...] = (MEDIAN,),
        level: int = 0,
    ) -> None:
        monkeypatch.setattr(holistic_states, "_LONG", BYTES + (0 if long else 1))
        monkeypatch.setattr(group_states, "_SPLIT_PART", 1)
        self.aggregation: Any = Gathering()
        self.aggregation.calls = calls
        self.profile = OperatorProfile("Aggregate")
        self.memory = context.memory.reservation("GROUP BY")
        self.states: HolisticStates[Any] = HolisticStates(
            context, self.aggregation, self.memory, self.profile, level
        )

    def add(self, keys: Iterable[int]) -> None:
        self.states.add(self.aggregation.state([(key, (key,)) for key in keys]))

    def close(self) -> None:
        self.states.close()
        self.memory.close()

    @property
    def counted(self) -> list[list[int]]:
        """Groups of the states of which values were counted, each time."""
        return [[len(entries) for entries in states] for made in _Counted.made for states in made.given]


def test_long_groups_wait_and_are_counted_where_they_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging them would save nothing. From then on one state for each thread waits."""
    freed: list[bool] = []
    monkeypatch.setattr(holistic_states, "release_unused_memory", lambda: freed.append(True))
    limit = 2 * 3 * WAITING * BYTES
    with (
        small_context(limit, tmp_path) as context,
        closing(_Run(context, monkeypatch, long=True)) as run,
    ):
        for _ in range(3):
            run.add(range(WAITING))
        assert (run.aggregation.merged, run.memory.held, freed) == ([], limit, [])
        run.add([7])
        assert run.counted == [[WAITING, WAITING, WAITING, 1]]
        assert run.memory.held == 0
        assert len(freed) == 1
        run.add([1])
        assert len(run.counted) == 1
        run.add([2, 3])
        assert run.counted[1:] == [[1, 2]]
        run.add([4])
        assert len(list(run.states.frames())) == 7
        assert run.counted[2:] == [[1]]
        assert "partitions" not in run.profile.details
        (made,) = _Counted.made
        assert (made.level, made.closed) == (0, 1)
        assert not run.aggregation.alive
        assert not run.aggregation.merged


def test_long_groups_wait_however_many_their_states_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        small_context(ROOMY, tmp_path) as context,
        closing(_Run(context, monkeypatch, long=True)) as run,
    ):
        for _ in range(2 * STATES):
            run.add([7])
        assert not run.aggregation.merged
        assert not _Counted.made
        (frame,) = run.states.frames()
        assert frame == [(7, (7,) * 2 * STATES)]
        assert not _Counted.made


def test_short_groups_are_merged_and_put_into_files_by_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where later ones are long: what is in files stays there."""
    with (
        small_context(2 * 2 * WAITING * BYTES, tmp_path) as context,
        closing(_Run(context, monkeypatch, long=False)) as run,
    ):
        run.add(range(WAITING - 1))
        assert not run.aggregation.merged
        run.add([WAITING - 1])
        assert run.aggregation.merged
        run.add(range(WAITING, 4 * WAITING))
        assert run.profile.details["partitions"] > 0
        monkeypatch.setattr(holistic_states, "_LONG", 1)
        before = len(run.aggregation.written)
        for start in range(4 * WAITING, 8 * WAITING, WAITING):
            run.add(range(start, start + WAITING))
        assert len(run.aggregation.written) > before
        assert not _Counted.made
        assert sum(map(len, run.states.frames())) == 8 * WAITING


@pytest.mark.parametrize(
    ("groups", "level", "counted"), [(1, 0, True), (2, 0, False), (2, MOST_LEVELS, True)]
)
def test_what_files_by_keys_would_not_split_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int, level: int, counted: bool
) -> None:
    """One group, however short, and groups that were split often enough; merged or not."""
    for merged in range(groups + 1):
        _Counted.made.clear()
        with (
            small_context(ROOMY, tmp_path) as context,
            closing(_Run(context, monkeypatch, long=False, level=level)) as run,
        ):
            run.add(range(merged))
            run.states._merge()
            run.add(range(merged, groups))
            run.states.release_memory()
            assert bool(_Counted.made) == counted
            assert ("partitions" in run.profile.details) != counted
            assert all(made.level == level for made in _Counted.made)


@pytest.mark.parametrize("long", [False, True])
def test_groups_are_long_by_all_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool
) -> None:
    """What was merged, too."""
    with (
        small_context(ROOMY, tmp_path) as context,
        closing(_Run(context, monkeypatch, long=long)) as run,
    ):
        run.add(range(10))
        run.states._merge()
        run.add(range(10, 30))
        run.states.release_memory()
        assert bool(_Counted.made) == long


@pytest.mark.parametrize("case", ["no such call", "no folder"])
def test_where_values_cannot_be_counted_states_are_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Merged as they become many, and refused where one group does not fit."""
    folder, calls = (None, (MEDIAN,)) if case == "no folder" else (tmp_path, ())
    with (
        small_context(ROOMY, folder) as context,
        closing(_Run(context, monkeypatch, long=True, calls=calls)) as run,
    ):
        run.add(range(WAITING))
        assert run.aggregation.merged == [WAITING]
        context.memory.limit = 20 * BYTES
        if folder is None:
            with pytest.raises(MemoryLimitError):
                run.add(range(WAITING, 2 * WAITING))
        else:
            run.add(range(WAITING, 2 * WAITING))
            assert "partitions" in run.profile.details
        assert not _Counted.made


def test_closing_lets_go_of_counted_values_and_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for long in (False, True):
        with small_context(ROOMY, tmp_path) as context:
            run = _Run(context, monkeypatch, long=long)
            run.add(range(30))
            run.states.release_memory()
            run.states.close()
            if long:
                assert _Counted.made[0].closed == 1
            else:
                assert run.states._partitions is not None
                assert all(file._file is None for file in run.states._partitions._files)
            run.memory.close()
