"""Counts of values: portions of groups, places of rows in order, shares of memory, and what is let go of."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import counted_values, state_partitions
from bamquery.engine.operators.aggregate.combine import GroupCombiner
from bamquery.engine.operators.aggregate.counted_values import CountedValues
from bamquery.engine.operators.aggregate.sorted_counts import COUNT, GROUP_BYTES
from bamquery.engine.operators.aggregate.value_counts import ValueCounts
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal, SortKey
from bamquery.plan.nodes import Field
from tests.conformance.harness import assert_same

INTEGER, DOUBLE = pa.int64(), pa.float64()
WORDS = pa.dictionary(pa.int32(), pa.large_string())
K, X = ColumnRef(0, "k", WORDS), ColumnRef(1, "x", DOUBLE)
Y, ROW = ColumnRef(2, "y", INTEGER), ColumnRef(3, "row", INTEGER)
HALF = Literal(pa.scalar(0.5, DOUBLE))
BACK = (SortKey(Y, descending=True, nulls_first=True), SortKey(ROW, descending=True))
MEDIAN = AggregateCall("quantile_cont", (X,), DOUBLE, parameter=HALF)
ENTROPY = AggregateCall("entropy", (X,), DOUBLE)
MODE = AggregateCall("mode", (X,), DOUBLE)
MODE_BACK = AggregateCall("mode", (X,), DOUBLE, order=BACK)
MIDDLE_ROW = AggregateCall("quantile_disc", (ROW,), INTEGER, parameter=HALF)
ROWS, GROUPS = 400, 60


def _batches() -> list[pa.RecordBatch]:
    """Few rows a group, so that several values are as frequent; nulls in all columns but the last."""
    choose = random.Random(1)
    keys = [choose.choice([None, *map(str, range(GROUPS - 1))]) for _ in range(ROWS)]
    values = [None if choose.random() < 0.3 else choose.randrange(4) / 4 for _ in range(ROWS)]
    others = [None if choose.random() < 0.3 else choose.randrange(3) for _ in range(ROWS)]
    columns = [
        pa.array(keys, pa.large_string()).dictionary_encode(),
        pa.array(values, DOUBLE),
        pa.array(others, INTEGER),
        pa.array(range(ROWS), INTEGER),
    ]
    whole = pa.RecordBatch.from_arrays(columns, names=["k", "x", "y", "row"])
    return [whole.slice(start, 50) for start in range(0, ROWS, 50)]


def _sorted(frames: list[pa.RecordBatch]) -> pa.Table:
    names = [str(i) for i in range(frames[0].num_columns)]
    renamed = [pa.RecordBatch.from_arrays(frame.columns, names=names) for frame in frames if frame.num_rows]
    table = pa.Table.from_batches(renamed)
    order = table.column(0).cast(pa.large_string()).combine_chunks()
    return table.take(pa.compute.sort_indices(order))


def _open_files(folder: Path) -> int:
    """Of this process in the folder; they have no names there."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder))
        except OSError:
            continue  # that of the listing itself
    return count


class _Wide(CpuDevice):
    """A device that wants three times as many rows for a task."""

    task_size = 3


class _Run:
    """`CountedValues` with a query's memory, which is theirs alone."""

    def __init__(
        self, folder: Path, keys: list[ColumnRef], calls: list[AggregateCall], limit: int, share: float = 1
    ) -> None:
        settings = Settings().with_values({"threads": 1, "memory_limit": f"{limit} B"})
        self._stack = ExitStack()
        context = ExecutionContext(_Wide(), settings, spill_folder=folder)
        self.context: ExecutionContext[Any] = self._stack.enter_context(context)
        self.context.memory._share = share
        self.aggregation = CpuAggregation(keys, calls)
        self.memory = self.context.memory.reservation("GROUP BY")
        self.profile = OperatorProfile("Aggregate")
        aggregation: Any = self.aggregation
        self.values: CountedValues[Any] = CountedValues(
            self.context, aggregation, self.memory, self.profile, 0
        )

    def add(self) -> None:
        self.values.add(iter([self.aggregation.partial(batch) for batch in _batches()]))

    def close(self) -> None:
        self.values.close()
        self.memory.close()
        self._stack.close()


@pytest.mark.parametrize("keys", [[K], []], ids=["groups", "all rows"])
def test_answers_are_those_of_all_values(tmp_path: Path, keys: list[ColumnRef]) -> None:
    """Whose types they have; rows of a mode in an order of two keys, with nulls, are told apart."""
    calls = [MODE_BACK, MEDIAN, MODE, MIDDLE_ROW, AggregateCall("max", (ROW,), INTEGER), ENTROPY]
    with closing(_Run(tmp_path, keys, calls, 100_000)) as run:
        run.add()
        found = list(run.values.frames())
        parts = [run.aggregation.partial(batch) for batch in _batches()]
        whole = [run.aggregation.final(run.aggregation.merge(parts))]
    assert_same(_sorted(found) if keys else pa.Table.from_batches(found), _whole(whole, keys), 1e-12)


def _whole(frames: list[pa.RecordBatch], keys: list[ColumnRef]) -> pa.Table:
    return _sorted(frames) if keys else pa.Table.from_batches(frames)


@pytest.mark.parametrize(
    ("rows", "share", "lengths"), [(20, 1, [50]), (10, 1, [30, 20]), (20, 0.1, [10] * 5), (20, 0.01, [7] * 8)]
)
def test_values_are_counted_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, share: float, lengths: list[int]
) -> None:
    """As many as fit the room for what threads work on, and as are worth a task; and not much fewer."""
    monkeypatch.setattr(counted_values, "GATHERED_ROWS", rows)
    monkeypatch.setattr(counted_values, "_ROWS", 100)
    monkeypatch.setattr(counted_values, "_LEAST_ROWS", 7)
    with closing(_Run(tmp_path, [], [MIDDLE_ROW], 100_000, share)) as run:
        taken: list[int] = []
        values = run.aggregation.values

        def spied(*arguments: Any) -> pa.RecordBatch:
            found = values(*arguments)
            taken.append(found.num_rows)
            return found

        monkeypatch.setattr(run.aggregation, "values", spied)
        run.values.add(iter([run.aggregation.partial(_batches()[0])]))
        assert [min(length, 50 - sum(lengths[:i])) for i, length in enumerate(lengths)] == taken


def test_each_argument_has_a_share_of_memory_and_others_have_theirs(tmp_path: Path) -> None:
    """Half of which is certain."""
    with closing(_Run(tmp_path, [K], [MEDIAN, MODE_BACK, MIDDLE_ROW, ENTROPY], 110_000)) as run:
        values = run.values
        shares = sum(counted_values._STEPS) + 3
        arguments = [counts._states._memory for counts in values._counts]
        steps = [values._others, values._sorting, values._groups, values._modes, values._answers]
        assert len(arguments) == 3
        assert [step.certain for step in arguments] == [110_000 // (2 * shares)] * 3
        assert [step.certain for step in steps] == [
            share * 110_000 // (2 * shares) for share in counted_values._STEPS
        ]


def test_rows_that_are_put_together_are_of_the_same_types(tmp_path: Path) -> None:
    """Those of the calls, and keys with dictionaries, which counted values have lost."""
    calls = [MEDIAN, AggregateCall("max", (ROW,), INTEGER)]
    with closing(_Run(tmp_path, [K], calls, 200_000)) as run:
        run.add()
        rows = list(run.values._combine_rows(GroupCombiner([Field("k", WORDS)], calls)))
        assert len(rows) > 1
        assert {tuple(frame.schema.types) for frame in rows} == {(WORDS, DOUBLE, INTEGER)}


def test_only_what_is_answered_first_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the arguments is told how many groups there are."""
    with closing(_Run(tmp_path, [K], [MEDIAN, MIDDLE_ROW], 200_000)) as run:
        run.add()
        released: list[ValueCounts[Any]] = []
        told: list[int] = []
        for counts in run.values._counts:
            release, answers = counts.release_memory, counts.answers

            def spied_release(counts: Any = counts, release: Any = release) -> None:
                released.append(counts)
                release()

            def spied_answers(groups: int, *memory: Any, answers: Any = answers) -> Any:
                told.append(groups)
                return answers(groups, *memory)

            monkeypatch.setattr(counts, "release_memory", spied_release)
            monkeypatch.setattr(counts, "answers", spied_answers)
        list(run.values.frames())
        assert released == run.values._counts[1:]
        assert told == [GROUPS, GROUPS]


def test_closing_lets_go_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other aggregates and of counts, whatever was taken of the answers."""
    monkeypatch.setattr(state_partitions, "_PARTITIONS", 2)
    for spilled in ("light", "counts"):
        with closing(_Run(tmp_path, [K], [MEDIAN, AggregateCall("max", (ROW,), INTEGER)], 200_000)) as run:
            run.add()
            if spilled == "light":
                run.values._light.release_memory()
            else:
                run.values._counts[0].release_memory()
            assert _open_files(tmp_path) == 2
            run.values.close()
            assert _open_files(tmp_path) == 0
            assert run.memory.held == 0


class _Counts:
    """Counts of values of a call, and where they may be."""

    def __init__(self, folder: Path, calls: list[AggregateCall]) -> None:
        self._stack = ExitStack()
        context = ExecutionContext(CpuDevice(), Settings(threads=1), spill_folder=folder)
        self.context: ExecutionContext[Any] = self._stack.enter_context(context)
        self.memory = self.context.memory.reservation("GROUP BY")
        self.profile = OperatorProfile("Aggregate")
        keys = [Field("k", INTEGER)]
        self.counts: ValueCounts[Any] = ValueCounts(self.context, keys, calls, self.memory, self.profile)

    def close(self) -> None:
        self.counts.close()
        self.memory.close()
        self._stack.close()


def _counted_rows() -> Iterator[pa.RecordBatch]:
    """Rows of keys, value and count: a thousand groups of three values."""
    for value in range(3):
        columns = [pa.array(range(1000)), pa.array([float(value)] * 1000), pa.array([1] * 1000)]
        yield pa.RecordBatch.from_arrays(columns, names=["k", "value", COUNT.name])


@pytest.mark.parametrize(
    ("groups", "most", "count"),
    [
        (10, 10 * GROUP_BYTES, 1),
        (10, 10 * GROUP_BYTES - 1, 2),
        (10, 5 * GROUP_BYTES, 2),
        (10, 5 * GROUP_BYTES - 1, 4),
        (1000, 1, 256),
        (0, 1, 1),
    ],
)
def test_where_groups_are_too_many_some_are_answered_at_a_time(
    tmp_path: Path, groups: int, most: int, count: int
) -> None:
    """Of each all its rows; nothing is written where all of them fit."""
    with closing(_Counts(tmp_path, [MEDIAN])) as run:
        with closing(run.counts._portions(_counted_rows(), groups, most)) as portions:
            found = [
                [key for frame in portion for key in frame.column(0).to_pylist()] for portion in portions
            ]
        assert len(found) == count
        assert sorted(key for keys in found for key in keys) == sorted([*range(1000)] * 3)
        assert len({key for keys in found for key in set(keys)}) == sum(len(set(keys)) for keys in found)
        assert max(map(len, found)) < 2 * 3000 / count + 60
        assert ("spilled" in run.profile.details) == (count > 1)
        assert _open_files(tmp_path) == 0


def test_a_cancel_is_seen_between_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are put into portions, and where the most frequent values are looked for."""
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 1)  # so that frames are not put together
    given = 0

    def rows(context: ExecutionContext[Any], places: int) -> Iterator[pa.RecordBatch]:
        nonlocal given
        for frame in _counted_rows():
            given += 1
            context.cancelled.set()
            columns = [*frame.columns, *[frame.column(2)] * places]
            yield pa.RecordBatch.from_arrays(columns, names=["k", "value", COUNT.name, "place"][: 3 + places])

    with closing(_Counts(tmp_path, [MEDIAN])) as run, pytest.raises(CancelledError):
        list(run.counts._portions(rows(run.context, 0), 1000, 1))
    assert given == 1
    given = 0
    with closing(_Counts(tmp_path, [MODE])) as run:
        monkeypatch.setattr(run.counts._states, "frames", lambda: rows(run.context, 1))
        with (
            run.context.memory.reservation("modes") as modes,
            closing(run.counts.answers(1000, modes, modes, modes)) as answers,
            pytest.raises(CancelledError),
        ):
            list(answers)
    assert given == 1
