"""mad of decimals near their greatest values: the median of exact distances, of values and of counts."""

from __future__ import annotations

import random
from contextlib import closing
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.answers_from_counts import answers_from_counts
from bamquery.engine.operators.aggregate.sorted_counts import COUNT, SortedCounts
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.plan.nodes import Field

KINDS = [pa.decimal128(*digits) for digits in ((38, 2), (38, 0), (18, 4), (19, 1), (5, 5))]


def _groups(kind: pa.Decimal128Type) -> list[list[int]]:
    """Unscaled values, an odd number of them but in the last groups: then the middle one is the median."""
    most = 10**kind.precision - 1
    choose = random.Random(str(kind))
    drawn = [[choose.randrange(-most, most + 1) for _ in range(7)] for _ in range(20)]
    near = [[choose.randrange(-9, 10) for _ in range(5)] for _ in range(5)]
    return [
        [-most, 0, most],
        [-most, most, most],
        [-most, -most, most],
        [-most + 1, 0, most],
        [-1, 0, 0],
        [most],
        *drawn,
        *near,
        [0, 1],
        [-1, 0],
        [0, 0, 1, 10],
    ]


def _distances(values: list[int]) -> int:
    """The median of the distances from the median; half a unit, of an even number of values, is cut off."""
    ordered = sorted(values)
    if len(ordered) % 2 == 0:
        return 0
    middle = ordered[len(ordered) // 2]
    return sorted(abs(value - middle) for value in ordered)[len(ordered) // 2]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_distances_are_exact(tmp_path: Path, kind: pa.Decimal128Type) -> None:
    groups = _groups(kind)
    with localcontext(prec=60):
        rows = [
            (k, Decimal(v).scaleb(-kind.scale)) for k, values in enumerate(groups) for v in sorted(values)
        ]
        wanted = [Decimal(_distances(values)).scaleb(-kind.scale) for values in groups]
    arrays: list[Any] = [pa.array([k for k, _ in rows], pa.int64()), pa.array([v for _, v in rows], kind)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["k", "v"])
    key, value = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "v", kind)
    call = AggregateCall("mad", (value,), kind)
    aggregation = CpuAggregation([key], [call])
    assert aggregation.final(aggregation.partial(batch)).column(1).to_pylist() == wanted

    ones = pa.array([1] * len(rows), pa.int64())
    with (
        ExecutionContext(CpuDevice(), Settings(threads=1), spill_folder=tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        context.memory.reservation("ORDER BY") as sorting,
    ):
        fields = [Field("k", pa.int64()), Field("v", kind)]
        counts: SortedCounts[Any] = SortedCounts(context, fields, memory, OperatorProfile("Aggregate"))
        with closing(counts):
            counts.fill([pa.RecordBatch.from_arrays([*arrays, ones], names=["k", "v", COUNT.name])], sorting)
            frames = list(answers_from_counts(counts, call, sorting))
    assert [value for frame in frames for value in frame.column(1).to_pylist()] == wanted
