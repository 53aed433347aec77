"""A simple aggregation, and what runs states of groups over it.

The aggregation gathers the numbers of each row, so that what is lost, doubled or out of order shows.
It knows which of its states are alive, and what was done with how many groups.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import group_states, state_partitions
from bamquery.engine.operators.aggregate.group_states import GroupStates
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef

Groups = list[tuple[int, tuple[int, ...]]]
"""Keys, each with the numbers of its rows."""
ROOMY = 1 << 30
BYTES = 108
"""Of a group of one row."""
WAITING, STATES, PLACE, PARTITIONS = 40, 64, 8, 4


class State:
    """Some groups; what they take is a hundred bytes each, and eight a row."""

    def __init__(self, entries: Groups, alive: weakref.WeakSet[State]) -> None:
        self.entries = entries
        alive.add(self)

    @property
    def groups(self) -> int:
        return len(self.entries)

    @property
    def nbytes(self) -> int:
        return sum(100 + 8 * len(rows) for _, rows in self.entries)


class Gathering:
    """See `bamquery.engine.device.Aggregation`; `merged`, `cut` ... are how many groups were, each time.

    `repeated`: how it was merged; `levels`: how it was cut, and whether apart.
    """

    keys = (ColumnRef(0, "key", pa.int64()),)
    calls = ()

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[State] = weakref.WeakSet()
        self.merged: list[int] = []
        self.repeated: set[bool] = set()
        self.cut: list[int] = []
        self.levels: list[tuple[int, bool]] = []
        self.written: list[int] = []
        self.finished: list[int] = []
        self.each_step: Any = lambda: None

    @property
    def alive_bytes(self) -> int:
        return sum(state.nbytes for state in self.alive)

    def state(self, entries: Groups) -> State:
        return State(entries, self.alive)

    def merge(self, states: Sequence[State], *, repeated: bool = False) -> State:
        assert states, "there is nothing to merge"
        self.merged.append(sum(state.groups for state in states))
        self.repeated.add(repeated)
        if len(states) == 1 and not repeated:
            return states[0]
        found: dict[int, tuple[int, ...]] = {}
        for state in states:
            for key, rows in state.entries:
                found[key] = (*found.get(key, ()), *rows)
        merged = self.state(list(found.items()))
        self.each_step()
        return merged

    def split(self, state: State, count: int, level: int, *, apart: bool = False) -> list[State]:
        self.cut.append(state.groups)
        self.levels.append((level, apart))
        places: list[Groups] = [[] for _ in range(count)]
        for key, rows in state.entries:
            places[random.Random(f"{key} {level}").randrange(256) % count].append((key, rows))
        pieces = [self.state(place) for place in places]
        self.each_step()
        return pieces

    def to_arrow(self, state: State) -> pa.RecordBatch:
        self.written.append(state.groups)
        keys, rows = zip(*state.entries, strict=True)
        return pa.record_batch(
            [pa.array(keys, pa.int64()), pa.array(rows, pa.list_(pa.int64()))], ["key", "rows"]
        )

    def from_arrow(self, batch: pa.RecordBatch) -> State:
        keys, rows = (column.to_pylist() for column in batch.columns)
        return self.state(list(zip(keys, map(tuple, rows), strict=True)))

    def final(self, state: State) -> Groups:
        keys = [key for key, _ in state.entries]
        assert len(set(keys)) == len(keys), "a group comes twice"
        self.finished.append(state.groups)
        self.each_step()
        return state.entries


class SplicingGathering(Gathering):
    """One that can see whether states have hardly any key in common; `spliced`: the states, each time."""

    def __init__(self) -> None:
        super().__init__()
        self.spliced: list[int] = []

    def splice(self, states: Sequence[State], _: object) -> list[State] | None:
        owners: dict[int, int] = {}
        parts: list[dict[int, tuple[int, ...]]] = [{} for _ in states]
        repeated = 0
        for place, state in enumerate(states):
            for key, rows in state.entries:
                owner = owners.setdefault(key, place)
                repeated += owner != place
                parts[owner][key] = (*parts[owner].get(key, ()), *rows)
        if 8 * repeated > len(owners):
            return None
        self.spliced.append(len(states))
        return [self.state(list(part.items())) for part in parts if part]


class Run:
    """States of rows with keys, put into `GroupStates` within a limit."""

    def __init__(
        self,
        context: ExecutionContext[Any],
        keys: Sequence[int] = (),
        length: int = 1,
        level: int = 0,
        aggregation: Gathering | None = None,
    ) -> None:
        self.context = context
        self.aggregation = aggregation or Gathering()
        self.profile = OperatorProfile("Aggregate")
        self.memory = context.memory.reservation("GROUP BY")
        self.states: GroupStates[Any] = GroupStates(
            context, self.aggregation, self.memory, self.profile, level
        )
        self.keys = keys
        self.length = length

    def add(self, keys: Iterable[int]) -> None:
        """One more state, of one row of each of these keys: `BYTES` a group."""
        self.states.add(self.aggregation.state([(key, (key,)) for key in keys]))

    def rows(self) -> Iterator[State]:
        """The states of the rows, a piece after another."""
        for start in range(0, len(self.keys), self.length):
            found: dict[int, tuple[int, ...]] = {}
            for row in range(start, min(start + self.length, len(self.keys))):
                found[self.keys[row]] = (*found.get(self.keys[row], ()), row)
            yield self.aggregation.state(list(found.items()))

    def add_all(self) -> None:
        """Every state; all that is held, and what is made of it meanwhile, is reserved but for the newest.

        And not much more than that.
        """
        newest = 0

        def look() -> None:
            assert self.aggregation.alive_bytes <= self.memory.held + 4 * newest

        if self.context.threads == 1:  # otherwise some are on their way from one thread to another
            self.aggregation.each_step = look
        for state in self.rows():
            newest = state.nbytes
            self.states.add(state)
            alive = self.aggregation.alive_bytes
            assert alive - newest <= self.memory.held <= (2 + 0.5 * self.context.threads) * alive
        self.aggregation.each_step = lambda: None

    def answer(self) -> dict[int, tuple[int, ...]]:
        """The groups; nothing is held any more then."""
        found: Groups = [group for frame in self.states.frames() for group in frame]
        assert len({key for key, _ in found}) == len(found), "a group comes twice"
        assert self.memory.held == 0
        assert not self.aggregation.alive
        return dict(found)

    def close(self) -> None:
        """Let go of files, as operators do, and of memory."""
        self.states.close()
        self.memory.close()

    @property
    def spilled(self) -> bool:
        return "spilled" in self.profile.details

    @property
    def wanted(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for row, key in enumerate(self.keys):
            found[key] = (*found.get(key, ()), row)
        return found

    @property
    def merged_bytes(self) -> int:
        """Of all groups, each once."""
        return sum(100 + 8 * len(rows) for rows in self.wanted.values())


class WideDevice(CpuDevice):
    """A device that wants four times as many rows for a task."""

    task_size = 4


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits, and what is split, is of few groups."""
    size = WideDevice.task_size
    monkeypatch.setattr(group_states, "_PENDING_GROUPS", WAITING // size)
    monkeypatch.setattr(group_states, "_SPILLED_GROUPS", 2 * WAITING)
    monkeypatch.setattr(group_states, "_PENDING_STATES", STATES)
    monkeypatch.setattr(group_states, "_SPLIT_GROUPS", WAITING // size)
    monkeypatch.setattr(group_states, "_PLACES", 8 * size)
    monkeypatch.setattr(group_states, "_PLACE_GROUPS", 1)
    monkeypatch.setattr(group_states, "PLACE_GROUPS", PLACE // size)
    monkeypatch.setattr(state_partitions, "PLACE_GROUPS", PLACE // size)
    monkeypatch.setattr(state_partitions, "_PARTITIONS", PARTITIONS)


def small_context(limit: int, folder: Path | None, threads: int = 1) -> ExecutionContext[Any]:
    """Of a query with so many bytes of memory."""
    settings = Settings().with_values({"threads": threads, "memory_limit": f"{limit} B"})
    return ExecutionContext(WideDevice(), settings, spill_folder=folder)
