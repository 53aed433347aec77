"""How joins hold their build rows: in one table or several, in files, split again, and for another run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CPU, CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.join import in_memory
from bamquery.engine.operators.join.hybrid_hash import HybridHashJoin
from bamquery.engine.operators.join.in_memory import InMemoryJoin
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.join.partitions import MOST_LEVELS, PARTITIONS, HashPartitions
from bamquery.engine.operators.join.strategy import JoinTask, KeptBuild
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef, Literal
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Rows

FIELDS = (Field("k", pa.int64()),)
KEY = (ColumnRef(0, "k", pa.int64()),)
BY_KEY = JoinCondition(KEY, KEY, (False,))
UNKNOWN = JoinCondition(residual=Literal(pa.scalar(None, pa.bool_())))


def _frame(*keys: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.int64())], ["k"])


@contextmanager
def _task(
    folder: Path,
    kind: JoinKind = "inner",
    condition: JoinCondition = BY_KEY,
    device: CpuDevice | None = None,
    level: int = 0,
) -> Iterator[tuple[JoinTask[Any], KeySummary[Any]]]:
    with (
        ExecutionContext(device or CpuDevice(), Settings(), spill_folder=folder) as context,
        context.memory.reservation("JOIN") as memory,
        KeySummary(context, condition, {}) as summary,
    ):
        profile = OperatorProfile("JOIN", {})
        kept: KeptBuild[Any] = KeptBuild(memory)
        task = JoinTask(
            context, kind, condition, FIELDS, FIELDS, memory, profile, level, encodes=True, kept=kept
        )
        yield task, summary


class _LargeColumns(CpuDevice):
    """Whose tables take as many rows as its columns do: a GPU's."""

    capabilities = replace(CPU, on_host=False)


@pytest.mark.parametrize(
    ("rows", "apart", "level", "condition", "device", "sides"),
    [
        (10, 1000, 0, BY_KEY, CpuDevice(), 1),
        (11, 1000, 0, BY_KEY, CpuDevice(), PARTITIONS),
        (11, 1000, 1, BY_KEY, CpuDevice(), 1),
        (11, 1000, 0, JoinCondition(), CpuDevice(), 1),
        (11, 1, 0, BY_KEY, CpuDevice(), 1),
        (41, 1000, 0, BY_KEY, _LargeColumns(), 1),
    ],
)
def test_many_rows_are_in_several_tables(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    rows: int,
    apart: int,
    level: int,
    condition: JoinCondition,
    device: CpuDevice,
    sides: int,
) -> None:
    """Unless they come from a partition of a file, have no keys, or keys that are near each other."""
    monkeypatch.setattr(in_memory, "_MANY_ROWS", 10)
    with _task(tmp_path, "inner", condition, device, level) as (task, summary):
        keys = [apart * number for number in range(rows)]
        build = [_frame(*keys[:7]), _frame(*keys[7:])]
        probe = _frame(apart, 8 * apart, 99 * apart)
        found = list(InMemoryJoin(task, summary).join(lambda: (f for f in [probe]), build))
        assert task.kept is not None
        assert len(task.kept.sides) == sides
        assert sum(side.rows for side in task.kept.sides) == rows
    pairs = sum(frame.num_rows for frame in found)
    assert pairs == (2 if condition.build_keys else 3 * rows)


def test_a_condition_that_is_null_leaves_marks_open(tmp_path: Path) -> None:
    """As long as there is a row that it is asked of."""
    for build, mark in (([_frame(5)], None), ([], False)):
        with _task(tmp_path, "mark", UNKNOWN) as (task, summary):
            (answer,) = InMemoryJoin(task, summary).join(lambda: (f for f in [_frame(1, 2)]), build)
        assert answer.column(1).to_pylist() == [mark, mark]


@pytest.mark.parametrize(("kind", "made"), [("inner", 1), ("left", 1), ("right", 2), ("full", 2)])
def test_another_run_probes_as_the_first_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JoinKind, made: int
) -> None:
    """Unless it notes which build rows were matched."""
    probes = []

    class Probe(in_memory.JoinProbe[Any]):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            probes.append(self)

    monkeypatch.setattr(in_memory, "JoinProbe", Probe)
    sides = [Rows(pa.table({"k": pa.array(keys, pa.int64())})) for keys in ([1, 2], [2, 3])]
    join = Join(*sides, kind, BY_KEY, (*FIELDS, *FIELDS))
    join.keep_build()
    with ExecutionContext(CpuDevice(), Settings(), spill_folder=tmp_path) as context:
        first, second = ([str(frame) for frame in join.frames(context)] for _ in range(2))
        assert first == second
        join.let_go()
    assert len(probes) == made


def test_partitions_of_files_are_tasks_of_their_own(tmp_path: Path) -> None:
    """Strings come back as they are, and nothing is kept for another run."""
    with _task(tmp_path, level=1) as (task, _):
        part = task.partition(2)
    assert (part.level, part.encodes, part.kept) == (2, False, None)
    assert (part.kind, part.condition, part.memory) == (task.kind, task.condition, task.memory)


@pytest.mark.parametrize(("others", "split_again"), [(1, True), (0, False)])
def test_rows_that_have_one_key_are_not_split_again(tmp_path: Path, others: int, split_again: bool) -> None:
    """Nine of ten may have it, not more; each partition begins with nothing held."""
    seen = {}

    def join_partition(task: JoinTask[Any], _: Any, probe: Any, build: Any) -> Iterator[Any]:
        assert task.memory.held == 0
        task.memory.resize(1000)
        rows = sum(frame.num_rows for frame in build)
        seen[rows, sum(frame.num_rows for frame in probe())] = task.level
        yield from ()

    with _task(tmp_path, level=2) as (task, summary):
        one = next(n for n in range(100) if _partition(task, n) != _partition(task, 7))
        build = [_frame(*[7] * 9, *[one] * others)]
        join = HybridHashJoin(task, summary, join_partition)
        task.memory.resize(500)
        assert list(join.join(lambda: (f for f in [_frame(7, 7)]), build)) == []
        assert task.memory.held == 0
    assert seen[9, 2] == (3 if split_again else MOST_LEVELS)
    assert seen[0, 0] == 3


def _partition(task: JoinTask[Any], key: int) -> int:
    device = task.context.device
    parts = device.partition(_frame(key), _frame(key), PARTITIONS, task.level)
    return next(number for number, part in enumerate(parts) if device.row_count(part))


def test_partitions_are_read_again_and_once(tmp_path: Path) -> None:
    with _task(tmp_path) as (task, _):
        profile = task.profile
        with HashPartitions(task.context, FIELDS, KEY, 0, profile) as partitions:
            partitions.fill([_frame(7, 7), _frame(7)])
            number = _partition(task, 7)
            for _ in range(2):
                assert sum(frame.num_rows for frame in partitions.reread(number)) == 3
            assert partitions.rows(number) == 3
            assert sum(frame.num_rows for frame in partitions.frames(number)) == 3
    assert list(tmp_path.iterdir()) == []
