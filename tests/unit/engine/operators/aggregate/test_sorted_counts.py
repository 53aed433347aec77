"""Values in order with how often each comes: places, answers and memory, against all values written out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.answers_from_counts import answers_from_counts
from bamquery.engine.operators.aggregate.sorted_counts import COUNT, SortedCounts
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Literal
from bamquery.plan.nodes import Field
from tests.conformance.harness import assert_same

DOUBLE = pa.float64()
KEY, VALUE = ColumnRef(0, "key", pa.int64()), ColumnRef(1, "value", DOUBLE)
OTHERS = 1000
"""Bytes that somebody else holds of the same reservation."""


def _call(function: str, quantile: float | None = None) -> AggregateCall:
    parameter = None if quantile is None else Literal(pa.scalar(quantile, DOUBLE))
    return AggregateCall(function, (VALUE,), DOUBLE, parameter=parameter)


CALLS = [
    *(
        _call(name, q)
        for name in ("quantile_cont", "quantile_disc")
        for q in (0.0, 0.3, 0.5, 1.0, -0.3, -1.0)
    ),
    _call("mad"),
    _call("entropy"),  # the last: it wants each value in one row
]


def _frames(choose: random.Random, rows: list[tuple[int, float, int]]) -> Iterator[pa.RecordBatch]:
    """The rows in pieces, some of them empty."""
    start = 0
    while start < len(rows):
        piece = rows[start : start + choose.choice((0, 1, 7))]
        start += len(piece)
        columns = list(zip(*piece, strict=True)) or [(), (), ()]
        kinds = (pa.int64(), DOUBLE, pa.int64())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.record_batch(arrays, ["key", "value", "count"])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has blocks of seven rows: groups, and pairs of values, begin in one and end in another."""
    monkeypatch.setattr(frame_sizing, "FRAME_ROWS", 7)


@pytest.mark.parametrize("seed", range(6))
def test_of_values_in_order(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    rows = [
        (choose.randrange(4), choose.randrange(-20, 20) / 4, choose.randrange(1, 5))
        for _ in range(choose.choice((0, 1, 60)))
    ]
    if seed % 2:  # each value in one row
        rows = list({row[:2]: row for row in rows}.values())
    values = sorted((key, value) for key, value, count in rows for _ in range(count))
    keys = sorted({key for key, _ in values})
    with (
        ExecutionContext(CpuDevice(), Settings(threads=1), spill_folder=tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        context.memory.reservation("ORDER BY") as sorting,
    ):
        memory.resize(OTHERS)
        fields = [Field("key", pa.int64()), Field("value", DOUBLE)]
        counts: SortedCounts[Any] = SortedCounts(context, fields, memory, OperatorProfile("Aggregate"))
        with closing(counts):
            counts.fill(_frames(choose, rows), sorting)
            assert sorting.held == 0
            assert memory.held - OTHERS >= counts.starts.nbytes + counts.totals.nbytes
            assert counts.totals.tolist() == [sum(k == key for k, _ in values) for key in keys]
            assert counts.starts.tolist() == [[k for k, _ in values].index(key) for key in keys]

            wanted = sorted(choose.choices(range(len(values)), k=9)) if values else []
            found = list(counts.rows_at(np.array(wanted, np.int64)))
            assert all(frame.num_rows for frame in found)
            given = [(row["key"], row["value"]) for f in found for row in _named(f)]
            assert given == [values[number] for number in wanted]
            for block in counts.blocks():
                assert [keys[n] for n in counts.groups_of(block)] == [
                    row["key"] for row in _named(block.rows)
                ]

            held = memory.held
            for call in CALLS if seed % 2 else CALLS[:-1]:
                answers = list(answers_from_counts(counts, call, sorting))
                assert (memory.held, sorting.held) == (held, 0), call
                if values:
                    assert_same(_table(answers), _expected(values, call), 1e-12)
                else:
                    assert not any(frame.num_rows for frame in answers)
        assert memory.held == OTHERS


def test_distances_hold_medians_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice, as they are joined."""
    held: list[int] = []
    fill = SortedCounts.fill

    def spied(counts: SortedCounts[Any], rows: Any, sorting: Any) -> None:
        held.append(counts.memory.held)
        fill(counts, rows, sorting)

    monkeypatch.setattr(SortedCounts, "fill", spied)
    with (
        ExecutionContext(CpuDevice(), Settings(threads=1), spill_folder=tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        context.memory.reservation("ORDER BY") as sorting,
    ):
        fields = [Field("key", pa.int64()), Field("value", DOUBLE)]
        counts: SortedCounts[Any] = SortedCounts(context, fields, memory, OperatorProfile("Aggregate"))
        with closing(counts):
            counts.fill(_frames(random.Random(1), [(key, 0.5, 1) for key in range(40)]), sorting)
            before = memory.held
            medians = list(answers_from_counts(counts, _call("quantile_cont", 0.5), sorting))
            list(answers_from_counts(counts, _call("mad"), sorting))
            assert len(medians) > 1
            assert held == [0, before + 2 * sum(frame.nbytes for frame in medians)]
            assert memory.held == before


@pytest.mark.parametrize("reading", [False, True])
def test_a_cancel_is_seen_between_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reading: bool
) -> None:
    blocks = 0
    with (
        ExecutionContext(CpuDevice(), Settings(threads=1), spill_folder=tmp_path) as context,
        context.memory.reservation("GROUP BY") as memory,
        context.memory.reservation("ORDER BY") as sorting,
    ):
        fields = [Field("key", pa.int64()), Field("value", DOUBLE)]
        counts: SortedCounts[Any] = SortedCounts(context, fields, memory, OperatorProfile("Aggregate"))
        write = counts._file.write

        def cancelled(frame: Any) -> None:
            nonlocal blocks
            blocks += 1
            if not reading:
                context.cancelled.set()
            write(frame)

        monkeypatch.setattr(counts._file, "write", cancelled)
        rows = [pa.record_batch([[1] * 40, [float(i) for i in range(40)], [1] * 40], ["k", "v", "count"])]
        with closing(counts):
            if reading:
                counts.fill(rows, sorting)
                assert blocks == 6
                read = counts.blocks()
                next(read)
                context.cancelled.set()
                with pytest.raises(CancelledError):
                    next(read)
            else:
                with pytest.raises(CancelledError):
                    counts.fill(rows, sorting)
                assert blocks == 1


def _named(frame: pa.RecordBatch) -> list[dict[str, Any]]:
    return pa.RecordBatch.from_arrays(frame.columns, names=["key", "value", COUNT.name]).to_pylist()


def _table(frames: list[pa.RecordBatch]) -> pa.Table:
    renamed = [pa.RecordBatch.from_arrays(frame.columns, names=["key", "answer"]) for frame in frames]
    return pa.Table.from_batches(renamed)


def _expected(values: list[tuple[int, float]], call: AggregateCall) -> pa.Table:
    """By an aggregation of all the values."""
    batch = pa.record_batch(
        [pa.array([key for key, _ in values]), pa.array([value for _, value in values])], ["key", "value"]
    )
    aggregation = CpuAggregation([KEY], [call])
    return _table([aggregation.final(aggregation.partial(batch))])
