"""Joins by blocks of build rows, each with several frames of probe rows: answers, memory and cancels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.operators.join import block_nested_loop, build_side
from bamquery.engine.operators.join.block_nested_loop import BlockNestedLoopJoin
from bamquery.engine.operators.join.build_side import build_side_bytes
from bamquery.engine.operators.join.pairs import JoinCondition, JoinPairFinder
from bamquery.engine.operators.join.strategy import JoinTask
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Field, JoinKind

DEVICE = CpuDevice()
INT = pa.int64()
FIELDS = (Field("k", INT), Field("n", INT))
K = (ColumnRef(0, "k", INT),)
LEFT, RIGHT = ColumnRef(1, "n", INT), ColumnRef(3, "n", INT)
Row = tuple[int | None, int | None]

PROBE: list[Row] = [(1, 10), (2, 40), (None, 20), (1, None), (3, 31), (2, 13), (1, 22), (2, 35), (9, 34)]
BUILD: list[Row] = [(1, 11), (2, 22), (1, 33), (None, 44), (2, None), (1, 35), (3, 17), (4, 13), (1, 31)]


def _frames(rows: Sequence[Row], length: int = 2) -> list[pa.RecordBatch]:
    columns = [pa.array([row[i] for row in rows], INT) for i in range(2)]
    whole = pa.RecordBatch.from_arrays(columns, ["k", "n"])
    return [whole.slice(start, length) for start in range(0, len(rows), length)]


@contextmanager
def _task(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: JoinKind, condition: JoinCondition
) -> Iterator[JoinTask[Any]]:
    """Blocks of up to four rows, and frames of two, which are handled by one thread."""
    monkeypatch.setattr(build_side, "_MOST_ROWS", 4)
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 1)
    settings = Settings().with_value("threads", 1)
    with (
        ExecutionContext(DEVICE, settings, spill_folder=folder) as context,
        context.memory.reservation("JOIN") as memory,
    ):
        profile = OperatorProfile("JOIN", {})
        yield JoinTask(context, kind, condition, FIELDS, FIELDS, memory, profile)


def _compare(function: str, mine: Row, other: Row) -> bool | None:
    if mine[1] is None or other[1] is None:
        return None
    return mine[1] < other[1] if function == "less" else mine[1] == other[1]


def _expected(kind: JoinKind, build: Sequence[Row], function: str, *, by_key: bool) -> list[tuple[Any, ...]]:
    """By each pair, with answers of three values."""
    nothing = (None, None)
    answer: list[tuple[Any, ...]] = []
    matched: set[int] = set()
    for mine in PROBE:
        same = [
            (place, other)
            for place, other in enumerate(build)
            if not by_key or (mine[0] is not None and mine[0] == other[0])
        ]
        truths = [_compare(function, mine, other) for _, other in same]
        found = [place for (place, _), truth in zip(same, truths, strict=True) if truth]
        matched.update(found)
        match kind:
            case "semi" | "anti":
                answer += [mine] if bool(found) == (kind == "semi") else []
            case "mark":
                answer.append((*mine, True if found else None if None in truths else False))
            case _:
                answer += [(*mine, *build[place]) for place in found]
                if not found and kind in {"left", "full", "single"}:
                    answer.append((*mine, *nothing))
    if kind in {"right", "full"}:
        answer += [(*nothing, *row) for place, row in enumerate(build) if place not in matched]
    return answer


def _sorted(rows: Sequence[Sequence[Any]]) -> list[str]:
    return sorted(str(tuple(row)) for row in rows)


def _rows(frames: Sequence[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [row for frame in frames for row in zip(*(c.to_pylist() for c in frame.columns), strict=True)]


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti", "single", "mark"])
def test_rows_of_several_frames_meet_several_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JoinKind, by_key: bool
) -> None:
    """Whatever is noted of a probe row is noted in its place, over all blocks."""
    function = "equal" if kind == "single" else "less"
    residual = Call(function, (LEFT, RIGHT), pa.bool_())
    keys = (K, K, (False,)) if by_key else ((), (), ())
    with _task(tmp_path, monkeypatch, kind, JoinCondition(*keys, residual)) as task:
        for build, blocks in ((BUILD, 3), ([], 1)):
            task.profile.details.clear()
            found = list(BlockNestedLoopJoin(task).join(lambda: (f for f in _frames(PROBE)), _frames(build)))
            assert _sorted(_rows(found)) == _sorted(_expected(kind, build, function, by_key=by_key))
            assert task.profile.details["blocks"] == blocks
            assert task.profile.details["build_rows"] == len(build)
            assert task.profile.details["peak_memory"] == task.memory.peak > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("value", "mark"), [(True, True), (False, False), (None, None)])
def test_conditions_that_do_not_look_at_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: bool | None, mark: bool | None
) -> None:
    condition = JoinCondition(residual=Literal(pa.scalar(value, pa.bool_())))
    for kind, rows in (("mark", len(PROBE)), ("semi", 9 if value else 0), ("inner", 81 if value else 0)):
        with _task(tmp_path, monkeypatch, kind, condition) as task:
            found = _rows(
                [*BlockNestedLoopJoin(task).join(lambda: (f for f in _frames(PROBE)), _frames(BUILD))]
            )
        assert len(found) == rows
        if kind == "mark":
            assert {row[2] for row in found} == {mark}


@pytest.mark.parametrize(("kind", "bytes_a_row"), [("semi", 1), ("left", 1), ("mark", 2)])
def test_notes_are_held_beside_each_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JoinKind, bytes_a_row: int
) -> None:
    """A byte for each probe row, of marks one more: whether they are unknown."""
    held = []
    with _task(tmp_path, monkeypatch, kind, JoinCondition()) as task:

        def find_pairs(context: Any, table: Any, build: pa.RecordBatch, *rest: Any, **options: Any) -> Any:
            held.append(task.memory.held - build_side_bytes(build.num_rows, build.nbytes))
            return JoinPairFinder(context, table, build, *rest, **options)

        monkeypatch.setattr(block_nested_loop, "JoinPairFinder", find_pairs)
        for build in (BUILD, []):
            list(BlockNestedLoopJoin(task).join(lambda: (f for f in _frames(PROBE)), _frames(build)))
    assert held == [bytes_a_row * len(PROBE)] * 4


@pytest.mark.parametrize("side", ["probe", "build"])
def test_no_frame_is_written_after_a_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    given: list[str] = []
    with _task(tmp_path, monkeypatch, "left", JoinCondition()) as task:

        def frames(name: str) -> Iterator[pa.RecordBatch]:
            for frame in _frames(PROBE):
                given.append(name)
                if given.count(side) == 2:
                    task.context.cancelled.set()
                yield frame

        with pytest.raises(CancelledError):
            list(BlockNestedLoopJoin(task).join(lambda: frames("probe"), frames("build")))
    assert given == {"build": ["build"] * 2, "probe": ["build"] * 5 + ["probe"] * 2}[side]


def test_no_portion_of_pairs_is_made_after_a_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two probe rows have eight pairs with a block, in portions of a few."""
    made = []

    class Cancelling(CpuDevice):
        def join_columns(self, frames: Any) -> Any:
            made.append(1)
            task.context.cancelled.set()
            return super().join_columns(frames)

    with _task(tmp_path, monkeypatch, "inner", JoinCondition()) as task:
        task.context.string_limits = StringLimits(piece=32)
        task.context.device = Cancelling()
        with pytest.raises(CancelledError):
            list(BlockNestedLoopJoin(task).join(lambda: (f for f in _frames(PROBE)), _frames(BUILD)))
    assert len(made) == 1


def test_a_cancel_stops_rows_without_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _task(tmp_path, monkeypatch, "semi", JoinCondition()) as task:
        found = BlockNestedLoopJoin(task).join(lambda: (f for f in _frames(PROBE)), _frames(BUILD))
        next(found)
        task.context.cancelled.set()
        with pytest.raises(CancelledError):
            next(found)
