"""A partition in portions: each row's values are those that the whole partition gives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.operators.window import large_partition
from bamquery.engine.operators.window.call_methods import choose_method
from bamquery.engine.operators.window.large_partition import CallRun, LargePartition
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.nodes import Window
from tests.plans import window_of

ROOM = 120_000
THREADS = 3
SCHEMA = pa.schema([("k", pa.int64()), ("i", pa.int64()), ("t", pa.large_string())])
ROW_BYTES = 16
"""Of a row of numbers that are all there."""


def _rows(sizes: Sequence[int]) -> pa.RecordBatch:
    """Groups of peers of these sizes."""
    keys = [3 * group for group, size in enumerate(sizes) for _ in range(size)]
    numbers = [None if row % 7 in (2, 3, 4) else row * row % 101 for row in range(len(keys))]
    texts = [None if row % 5 == 1 else "xy" * (row % 4) for row in range(len(keys))]
    return pa.record_batch([keys, numbers, texts], schema=SCHEMA)


def _numbers(sizes: Sequence[int]) -> pa.RecordBatch:
    """The same without nulls or texts, of which each row takes as much."""
    return pa.record_batch([_rows(sizes).column(0), pa.array(range(sum(sizes)))], ["k", "i"])


LARGE_GROUPS = _rows([1, 2, 18, 5, 1, 1, 11, 3])
SINGLE_ROWS = _rows([1] * 26)
SMALL_GROUPS = _rows([1, 2, 3, 1, 1, 4, 1, 2, 2, 3, 1, 3, 4, 4, 1])


@dataclass
class _Run:
    """A partition that goes through memory, and what is seen of it."""

    context: ExecutionContext[Any]
    window: Window
    partition: LargePartition[Any]
    memory: Reservation
    busy: deque[int]
    profile: OperatorProfile
    counts: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    runs: list[CallRun[Any]] = field(default_factory=list)
    waits: int = 0

    def values(self, frames: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Of the rows of all frames, each portion done with before the next is made."""
        device, found = CpuDevice(), []
        for portion in self.partition.portions([], frames):
            if portion is None:
                self.waits += 1
            else:
                self.counts.append(portion.count)
                self.held.append(self.memory.held)
                self.runs += portion.runs
                found += portion.compute(device)
                del portion
            self.busy.popleft()
        columns = len(self.window.child.fields)
        return device.concatenate([frame.select(range(columns, frame.num_columns)) for frame in found])


@contextmanager
def _running(
    calls: str,
    schema: pa.Schema,
    folder: Path | None = None,
    *,
    needed: Callable[[int, int], int] = lambda rows, size: size,
    device: CpuDevice | None = None,
) -> Iterator[_Run]:
    window = window_of(calls, schema)
    settings = Settings().with_value("memory_limit", f"{ROOM} B").with_value("threads", THREADS)
    with (
        ExecutionContext(device or CpuDevice(), settings, spill_folder=folder) as context,
        context.memory.reservation("a window") as memory,
    ):
        assert memory.room == ROOM
        methods = [choose_method(call, context.device) for call in window.calls]
        assert all(methods)
        busy: deque[int] = deque()
        profile = OperatorProfile("Window")
        fields = window.child.fields
        partition: LargePartition[Any] = LargePartition(
            context,
            window,
            [method for method in methods if method is not None],
            fields,
            profile,
            memory=memory,
            busy=busy,
            needed=needed,
        )
        yield _Run(context, window, partition, memory, busy, profile)


def _cut(rows: pa.RecordBatch, sizes: Sequence[int]) -> list[pa.RecordBatch]:
    frames, start = [], 0
    while start < rows.num_rows:
        frames.append(rows.slice(start, sizes[len(frames) % len(sizes)]))
        start += frames[-1].num_rows
    return frames


def _check(calls: str, rows: pa.RecordBatch, folder: Path, sizes: Sequence[int] = (2, 1, 3, 1)) -> _Run:
    with _running(calls, rows.schema, folder) as run:
        found = run.values(_cut(rows, sizes))
    expected = CpuDevice().window(run.window, rows)
    for name, mine, other in zip(run.window.names, found.columns, expected.columns, strict=True):
        assert mine.equals(other), name
    assert not run.busy
    assert len(run.counts) == run.profile.details["portions"] >= 5
    return run


PEERS = [
    *("rank()", "dense_rank()", "percent_rank()", "cume_dist()"),
    *("sum(i)", "max(t)", "count(*) FILTER (i > 50)"),
    "sum(i) | RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    "sum(i) | GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "sum(i) | RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
]
PLACES = [
    *("row_number()", "ntile(4)", "ntile(i % 5 + 1)"),
    *("lag(i)", "lag(t, 7)", "lead(i)", "lead(t, 6, 'none')", "lag(i, 0)"),
    *("lag(i IGNORE NULLS)", "lead(i IGNORE NULLS)"),
    "first_value(i IGNORE NULLS)",
]
BY_ROWS = [
    f"{call} | ROWS BETWEEN {start} AND {end}{exclude}"
    for call, start, end, exclude in (
        ("sum(i)", "UNBOUNDED PRECEDING", "CURRENT ROW", ""),
        ("sum(i)", "UNBOUNDED PRECEDING", "3 PRECEDING", ""),
        ("max(t)", "UNBOUNDED PRECEDING", "8 FOLLOWING", " EXCLUDE CURRENT ROW"),
        ("sum(i)", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", ""),
        ("sum(i)", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", " EXCLUDE CURRENT ROW"),
        ("sum(i)", "CURRENT ROW", "UNBOUNDED FOLLOWING", ""),
        ("sum(i)", "2 FOLLOWING", "UNBOUNDED FOLLOWING", ""),
        ("last_value(i)", "9 FOLLOWING", "UNBOUNDED FOLLOWING", ""),
        ("min(i)", "4 PRECEDING", "UNBOUNDED FOLLOWING", ""),
        ("sum(i)", "4 PRECEDING", "2 PRECEDING", ""),
        ("median(i)", "7 PRECEDING", "2 FOLLOWING", ""),
        ("count(DISTINCT t)", "1 FOLLOWING", "9 FOLLOWING", ""),
        ("nth_value(i, 2)", "2 PRECEDING", "2 FOLLOWING", " EXCLUDE CURRENT ROW"),
        ("sum(i)", "2 PRECEDING", "2 FOLLOWING", " EXCLUDE TIES"),
    )
]
BY_GROUPS = [
    "sum(i) | RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "sum(i) | RANGE BETWEEN 7 PRECEDING AND 4 PRECEDING",
    "max(t) | RANGE BETWEEN CURRENT ROW AND 6 FOLLOWING",
    "sum(i) | RANGE BETWEEN 6 PRECEDING AND UNBOUNDED FOLLOWING",
    "sum(i) | RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING",
    "sum(i) | GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "median(i) | GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "sum(i) | GROUPS BETWEEN 1 PRECEDING AND 3 FOLLOWING EXCLUDE GROUP",
    "sum(i) | GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES",
]


def _over(*calls: str) -> str:
    return ", ".join(f"{call.split(' | ')[0]} OVER (ORDER BY k {call.partition(' | ')[2]})" for call in calls)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of five rows."""
    monkeypatch.setattr(large_partition, "_BLOCK_ROWS", 5)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("call", [*PEERS, *PLACES, *BY_ROWS])
def test_groups_in_pieces(call: str, tmp_path: Path) -> None:
    """A group of peers may have far more rows than a block."""
    _check(_over(call), LARGE_GROUPS, tmp_path)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("call", BY_GROUPS)
def test_groups_that_stay_together(call: str, tmp_path: Path) -> None:
    _check(_over(call), SMALL_GROUPS, tmp_path)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("frame", ["1000 PRECEDING AND CURRENT ROW", "CURRENT ROW AND 20 FOLLOWING"])
def test_frames_of_many_blocks(frame: str, tmp_path: Path) -> None:
    """The last row of the first block, of four, is far from the row before, and close to those behind."""
    keys = [0, 3, 6, *range(60, 120, 3)]
    rows = pa.record_batch([keys, range(len(keys)), ["x"] * len(keys)], schema=SCHEMA)
    _check(_over(f"sum(i) | RANGE BETWEEN {frame}"), rows, tmp_path, [1])


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(
    "calls",
    [
        ("rank()", *PLACES),
        (BY_ROWS[5], "sum(i)", PEERS[-2], "rank()", "lead(i, 8)"),
        (BY_ROWS[6], "lag(t, 2)", PEERS[-1], "cume_dist()"),
    ],
    ids=["places", "behind groups", "all of it"],
)
def test_calls_together(calls: Sequence[str], tmp_path: Path) -> None:
    """Each needs something else of the rest of the partition, and groups are in pieces."""
    _check(_over(*calls), LARGE_GROUPS, tmp_path)


def _hundred(rows: int, size: int) -> int:
    """Bytes for each row, so that a share of the room is a number of rows."""
    return 100 * rows


@pytest.mark.parametrize("call", ["row_number()", "rank()"])
def test_a_block_is_a_share_of_the_room(call: str) -> None:
    """Room for four blocks of each thread, of one in work and of the one that is cut: 120,000 B / 20."""
    rows = _numbers([1] * 150)
    with _running(_over(call), rows.schema, needed=_hundred) as run:
        run.values(_cut(rows, [1]))
    assert run.counts == ([60, 60, 30] if call == "row_number()" else [59, 59, 32])


def test_a_group_in_pieces_of_a_share() -> None:
    rows = _numbers([130, 20])
    with _running(_over("rank()"), rows.schema, needed=_hundred) as run:
        run.values(_cut(rows, [1]))
    assert run.counts == [60, 60, 10, 20]


class _WideDevice(CpuDevice):
    """Which wants three times as many rows for a task."""

    task_size = 3


@pytest.mark.parametrize(
    ("call", "counts"), [("row_number()", [21, 21, 8]), ("rank()", [21, 9, 20])], ids=["rows", "pieces"]
)
def test_a_block_has_rows_for_a_task(call: str, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_partition, "_BLOCK_ROWS", 7)
    rows = _numbers([30, 20])
    with _running(_over(call), rows.schema, device=_WideDevice()) as run:
        run.values(_cut(rows, [1]))
    assert run.counts == counts


def test_what_must_not_be_in_pieces_may_take_half_of_the_room() -> None:
    call = _over("count(*) | RANGE UNBOUNDED PRECEDING EXCLUDE GROUP")

    def counts(middle: int) -> list[int]:
        rows = _numbers([10, middle, 10])
        with _running(call, rows.schema, needed=lambda rows, size: 1000 * rows) as run:
            run.values(_cut(rows, [1]))
        return run.counts

    assert counts(59) == [10, 59, 10]
    with pytest.raises(MemoryLimitError, match=r"count_star\(\) over such a window"):
        counts(60)


def _state_bytes(window: Window, call: int, rows: pa.RecordBatch) -> int:
    return CpuDevice().aggregation([], [window.calls[call].call]).partial(rows).nbytes


BEHIND = "sum(i) | ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(
    ("calls", "sizes", "held", "states"),
    [
        # A block.
        (("row_number()",), [1] * 15, [5, 5, 5], [0, 0, 0]),
        # A group that may go on waits meanwhile.
        (("rank()",), [3] * 4, [5, 5, 5, 3], [0, 0, 0, 0]),
        # A block, with two rows around, twice: it is copied.
        (("lag(i, 2)",), [1] * 15, [10, 14 + 2, 14 + 2], [0, 0, 0]),
        # And the block that waits behind.
        (("lead(i, 2)",), [1] * 15, [14 + 5, 14 + 5, 10], [0, 0, 0]),
        (("lead(i, 5)",), [1] * 15, [20 + 5, 20 + 5, 10], [0, 0, 0]),
        (("lead(i, 7)",), [1] * 20, [24 + 10, 24 + 10, 20 + 5, 10], [0, 0, 0, 0]),
        (("lag(i, 2)", "lead(i, 2)"), [1] * 15, [14 + 5, 18 + 7, 14 + 2], [0, 0, 0]),
        # States of all blocks, of calls that look at what is behind them.
        ((BEHIND, "row_number()", "count(*) | ROWS UNBOUNDED PRECEDING"), [1] * 15, [5, 5, 5], [3, 3, 3]),
        ((BEHIND, "rank()", "max(i)"), [1] * 15, [4, 4, 4, 3], [4, 4, 4, 4]),
        # The last block waits when the file is at its end, and the states are done with.
        ((BEHIND, "lead(i, 2)"), [1] * 15, [14 + 5, 14 + 5, 10], [3, 3, 0]),
    ],
)
def test_what_is_held_while_a_portion_is_made(
    calls: Sequence[str], sizes: list[int], held: list[int], states: list[int], tmp_path: Path
) -> None:
    """In rows, and in states of a block; what is in work comes on top."""
    rows = _numbers(sizes)
    with _running(_over(*calls), rows.schema, tmp_path) as run:
        run.values(_cut(rows, [1]))
    state = _state_bytes(run.window, 0, rows.slice(0, 5)) if any(states) else 0
    assert run.held == [ROW_BYTES * own + state * of for own, of in zip(held, states, strict=True)]


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("call", ["row_number()", "lag(i)", "cume_dist()"])
def test_portions_wait_for_those_in_work(call: str, tmp_path: Path) -> None:
    """Each wait is one more piece that is done with, of no bytes."""
    rows = _numbers([1] * 20)
    with _running(_over(call), rows.schema, tmp_path) as run:
        run.busy.append(ROOM)
        found = run.values(_cut(rows, [1]))
    assert run.waits == len(run.busy) == 1
    assert found.column(0).equals(CpuDevice().window(run.window, rows).column(0))


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(
    ("calls", "goes_by_file"),
    [
        (("row_number()", "rank()", "lag(i)", "sum(i) | ROWS UNBOUNDED PRECEDING"), False),
        (("sum(i)",), True),  # groups are in pieces
        (("cume_dist()",), True),
        (("ntile(3)",), True),
    ],
)
def test_rows_go_by_a_file_where_something_behind_them_is_needed(
    calls: Sequence[str], goes_by_file: bool, tmp_path: Path
) -> None:
    assert ("spilled" in _check(_over(*calls), LARGE_GROUPS, tmp_path).profile.details) == goes_by_file
    if calls == ("sum(i)",):
        assert "spilled" not in _check(_over(*calls), SINGLE_ROWS, tmp_path).profile.details


@pytest.mark.usefixtures("few_rows")
def test_what_a_portion_is_told_of_the_others(tmp_path: Path) -> None:
    """How many rows are before those it has, and states of those that its calls ask for only."""
    calls = (
        "sum(i) | ROWS BETWEEN 4 PRECEDING AND UNBOUNDED FOLLOWING",
        "sum(i) | ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING",
    )
    rows = _numbers([1] * 20)
    with _running(_over(*calls), rows.schema, tmp_path) as run:
        run.values(_cut(rows, [1]))
    firsts = [one.rows.column(1)[0].as_py() for one in run.runs]
    assert firsts == [one.rest.rows_before for one in run.runs] == [0, 1, 6, 11]
    known = [[state is not None for state in (*one.rest.before, *one.rest.after)] for one in run.runs]
    assert known == [[False, before, after, False] for before, after in ((0, 1), (1, 1), (1, 1), (1, 0))]


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(("call", "each"), [("row_number()", 1), ("ntile(3)", 3)])
def test_each_block_asks_whether_to_go_on(
    call: str, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is given out; by way of a file, also when it is written and when what follows it is found."""
    rows = _numbers([1] * 20)
    for stop_at in (None, 1, 4 * each):
        asked = 0

        def check() -> None:
            nonlocal asked
            asked += 1
            if asked == stop_at:  # noqa: B023
                raise CancelledError("stop")

        with _running(_over(call), rows.schema, tmp_path) as run:
            monkeypatch.setattr(run.context, "check_cancelled", check)
            if stop_at is None:
                run.values(_cut(rows, [1]))
                assert asked == 4 * each
            else:
                with pytest.raises(CancelledError):
                    run.values(_cut(rows, [1]))
                assert len(run.counts) == (3 if stop_at > 1 else 0)
