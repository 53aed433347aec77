"""States that gather values, within little memory, against the same aggregation with all of it."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate import counted_values, state_partitions
from bamquery.engine.operators.aggregate.holistic_states import HolisticStates
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal, SortKey
from tests.conformance.harness import assert_same

ROWS = 2000
LIMIT = 25_000
INTEGER, DOUBLE = pa.int64(), pa.float64()
K, X, ROW = ColumnRef(0, "k", INTEGER), ColumnRef(1, "x", DOUBLE), ColumnRef(2, "row", INTEGER)
HALF = Literal(pa.scalar(0.5, DOUBLE))
MEDIAN = AggregateCall("quantile_cont", (X,), DOUBLE, parameter=HALF)
MODE = AggregateCall("mode", (X,), DOUBLE)
CALLS = {
    "median": (MEDIAN,),
    "mode of the first": (MODE,),
    "mode of the last": (AggregateCall("mode", (X,), DOUBLE, order=(SortKey(ROW, descending=True),)),),
    "several": (
        MODE,
        AggregateCall("count_star", (), INTEGER),
        MEDIAN,
        AggregateCall("entropy", (X,), DOUBLE),
        AggregateCall("quantile_disc", (ROW,), INTEGER, parameter=HALF),
        AggregateCall("max", (ROW,), INTEGER),
        AggregateCall("mad", (X,), DOUBLE),
    ),
}


def _batches(groups: int) -> list[pa.RecordBatch]:
    choose = random.Random(groups)
    keys = [choose.randrange(groups) for _ in range(ROWS)]
    values = [None if choose.random() < 0.1 else choose.randrange(60) / 4 for _ in range(ROWS)]
    arrays = [pa.array(keys, INTEGER), pa.array(values, DOUBLE), pa.array(range(ROWS), INTEGER)]
    whole = pa.RecordBatch.from_arrays(arrays, names=["k", "x", "row"])
    return [whole.slice(start, 250) for start in range(0, ROWS, 250)]


def _sorted(frames: list[pa.RecordBatch]) -> pa.Table:
    names = [str(i) for i in range(frames[0].num_columns)]
    renamed = [pa.RecordBatch.from_arrays(frame.columns, names=names) for frame in frames]
    return pa.Table.from_batches(renamed).sort_by("0")


@pytest.mark.parametrize(
    ("groups", "name"), [*((0, name) for name in CALLS), (3, "median"), (3, "mode of the first")]
)
def test_values_of_few_groups_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int, name: str
) -> None:
    """No more is held than the limit, and nothing afterwards."""
    monkeypatch.setattr(counted_values, "_LEAST_ROWS", 150)
    monkeypatch.setattr(state_partitions, "_PARTITIONS", 4)
    calls = CALLS[name]
    aggregation = CpuAggregation([K] if groups else [], calls)
    batches = _batches(max(groups, 1))
    limit = LIMIT * (4 if name == "several" else 1)
    settings = Settings().with_values({"threads": 1, "memory_limit": f"{limit} B"})
    profile = OperatorProfile("Aggregate")
    with (
        ExecutionContext(CpuDevice(), settings, spill_folder=tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
    ):
        with closing(HolisticStates[Any](context, aggregation, memory, profile)) as states:
            for batch in batches * (4 if name == "several" else 1):
                states.add(aggregation.partial(batch))
            found = list(states.frames())
        assert memory.held == 0
        assert memory.peak <= limit
    parts = [aggregation.partial(batch) for batch in batches * (4 if name == "several" else 1)]
    assert_same(_sorted(found), _sorted([aggregation.final(aggregation.merge(parts))]), 1e-12)
