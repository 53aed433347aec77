"""Aggregates of sorted values of which it is known how often each comes: quantiles, mad and entropy."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import value_type
from bamquery.engine.device import Frame
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.formulas.quantile_ranks import continuous_ranks, descends, discrete_ranks
from bamquery.engine.operators.aggregate.sorted_counts import COUNT, Numbers, SortedCounts
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field

_GROUP = Field("group", pa.int64())


def answers_from_counts(
    counts: SortedCounts[Frame], call: AggregateCall, sorting: Reservation
) -> Generator[Frame, None, None]:
    """Keys and the call's value, a row for each group, in the keys' order.

    For entropy each value of a group is in one row; for others it may be in several.

    Raises:
        MemoryLimitError: there are too many groups.
        StorageError: a file cannot be written or read back.
    """
    kind = value_type(call.type)
    if call.function == "entropy":
        return _entropies(counts)
    if call.function == "mad":
        return _distances(counts, kind, sorting)
    assert call.parameter is not None
    quantile: Any = call.parameter.value.as_py()
    if call.function == "quantile_cont":
        return _continuous(counts, float(quantile), kind)
    return _discrete(counts, quantile)


def _discrete(counts: SortedCounts[Frame], quantile: float | Decimal) -> Generator[Frame, None, None]:
    share: Any = quantile
    ranks = discrete_ranks(abs(share), counts.totals)
    if descends(quantile):
        ranks = counts.totals - 1 - ranks
    with closing(counts.rows_at(counts.starts + ranks)) as rows:
        for frame in rows:
            yield counts.context.device.select(frame, range(len(counts.fields)))


def _continuous(
    counts: SortedCounts[Frame], quantile: float, kind: pa.DataType
) -> Generator[Frame, None, None]:
    device = counts.context.device
    low, high, share = continuous_ranks(abs(quantile), counts.totals)
    descending = descends(quantile)
    if descending:  # in the order of the file, the second of both comes first
        low, high = counts.totals - 1 - high, counts.totals - 1 - low
    *keys, value = counts.fields
    columns: list[Expression] = [ColumnRef(i, key.name, key.type) for i, key in enumerate(keys)]
    sides = [ColumnRef(len(keys) + i, value.name, value.type) for i in (0, 1)]
    between = ColumnRef(len(keys) + 2, "share", pa.float64())
    both = sides[::-1] if descending else sides
    done = 0
    with closing(_pairs(counts, counts.starts + low, counts.starts + high)) as pairs:
        for first, second in pairs:
            end = done + device.row_count(first)
            own = device.from_arrow(_batch("share", share[done:end]))
            done = end
            rows = device.join_columns(
                [
                    device.select(first, range(len(counts.fields))),
                    device.select(second, [len(keys)]),
                    own,
                ]
            )
            yield device.evaluate([*columns, Call("interpolate", (*both, between), kind)], rows)


def _pairs(
    counts: SortedCounts[Frame], low: Numbers, high: Numbers
) -> Generator[tuple[Frame, Frame], None, None]:
    """The rows of two values of each group, of which the second does not come before the first."""
    device = counts.context.device
    left: Frame | None = None
    with closing(counts.rows_at(np.column_stack([low, high]).ravel())) as rows:
        for frame in rows:
            joined = frame if left is None else device.concatenate([left, frame])
            odd = device.row_count(joined) % 2
            count = device.row_count(joined) - odd
            left = device.slice(joined, count, 1) if odd else None
            if count:
                even = np.arange(0, count, 2, dtype=np.int64)
                yield device.take(joined, even), device.take(joined, even + 1)


def _distances(
    counts: SortedCounts[Frame], kind: pa.DataType, sorting: Reservation
) -> Generator[Frame, None, None]:
    """The median of the distances from the median: these are sorted again, by the number of the group."""
    context, memory = counts.context, counts.memory
    device = context.device
    held: list[Frame] = []
    before = memory.held
    with closing(_continuous(counts, 0.5, kind)) as found:
        for frame in found:
            memory.resize(memory.held + 2 * device.nbytes(frame))
            held.append(frame)
    if not held:
        return
    medians = device.concatenate(held)
    width = len(counts.fields) - 1
    value, median = ColumnRef(0, "value", kind), ColumnRef(2, "median", kind)
    group = ColumnRef(3, _GROUP.name, _GROUP.type)
    columns = [group, _distance(value, median), ColumnRef(1, COUNT.name, COUNT.type)]

    def rows() -> Generator[Frame, None, None]:
        with closing(counts.blocks()) as blocks:
            for block in blocks:
                numbers = counts.groups_of(block)
                own = device.take(device.select(medians, [width]), numbers)
                placed = device.from_arrow(_batch(_GROUP.name, numbers))
                values = device.select(block.rows, [width, width + 1])
                yield device.evaluate(columns, device.join_columns([values, own, placed]))

    with closing(SortedCounts(context, [_GROUP, Field("distance", kind)], memory, counts.profile)) as away:
        away.fill(rows(), sorting)
        with closing(_continuous(away, 0.5, kind)) as found:
            for frame in found:
                batch = device.to_arrow(device.select(frame, [0]), [_GROUP])
                numbers = np.asarray(batch.column(0)).astype(np.int64)
                answer = device.select(frame, [1])
                keys = device.take(device.select(medians, range(width)), numbers) if width else None
                yield answer if keys is None else device.join_columns([keys, answer])
    memory.resize(before)


def _distance(value: ColumnRef, other: ColumnRef) -> Expression:
    """How far apart two numbers are; decimals no further than the type's greatest value, as no median is."""
    kind = value.type
    if not isinstance(kind, pa.Decimal128Type):
        return Call("abs", (Call("subtract", (value, other), kind),), kind)
    # By digits: arithmetic would round to those of the context, which are fewer.
    most, zero = (
        Literal(pa.scalar(Decimal((0, (digit,) * kind.precision, -kind.scale)), kind)) for digit in (9, 0)
    )
    high, low = (Call(name, (value, other), kind) for name in ("greatest", "least"))
    furthest = Call("add", (most, Call("least", (low, zero), kind)), kind)
    beyond = Call("greater", (high, furthest), pa.bool_())
    return Call("case", (beyond, most, Call("subtract", (high, low), kind)), kind)


def _entropies(counts: SortedCounts[Frame]) -> Generator[Frame, None, None]:
    device = counts.context.device
    bits = np.zeros(len(counts.totals))
    with closing(counts.blocks()) as blocks:
        for block in blocks:
            groups = counts.groups_of(block)
            shares = block.counts / counts.totals[groups]
            np.add.at(bits, groups, -shares * np.log2(shares))
    keys = range(len(counts.fields) - 1)
    done = 0
    with closing(counts.rows_at(counts.starts)) as rows:
        for frame in rows:
            end = done + device.row_count(frame)
            own = device.from_arrow(_batch("entropy", bits[done:end]))
            done = end
            yield device.join_columns([device.select(frame, keys), own])


def _batch(name: str, values: NDArray[Any]) -> pa.RecordBatch:
    arrays: Sequence[Any] = [pa.array(values)]
    return pa.RecordBatch.from_arrays(arrays, names=[name])
