"""What a device does with frames, held against the CPU's: in and out, rows, order, groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, SortKey
from tests.conformance.harness import random_column
from tests.strategies import ALL_TYPES, CHUNK_SIZES, scaled
from tests.values import plain, same

KINDS = (*ALL_TYPES, pa.null(), pa.timestamp("ns", "Europe/Berlin"))


def batch_of(rows: int, kinds: Sequence[pa.DataType] = KINDS, seed: int = 0) -> pa.RecordBatch:
    """Columns of the types, with nulls, special values and repeated ones; the first is the row's number."""
    columns = [pa.array(range(rows), pa.int64())]
    for i, kind in enumerate(kinds):
        columns.append(pa.nulls(rows) if pa.types.is_null(kind) else random_column(kind, rows, seed + i))
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])


def fields_of(batch: pa.RecordBatch) -> list[Field]:
    """Its columns as an operator has them."""
    return [Field(field.name, field.type) for field in batch.schema]


def assert_equal(ours: pa.RecordBatch, theirs: pa.RecordBatch, tolerance: float = 0.0) -> None:
    """Equal types, and values row by row."""
    assert ours.schema.types == theirs.schema.types
    assert ours.num_rows == theirs.num_rows
    ours.validate(full=True)
    for name, mine, other in zip(theirs.schema.names, ours.columns, theirs.columns, strict=True):
        for row, (a, b) in enumerate(zip(plain(mine), plain(other), strict=True)):
            assert same(a, b, tolerance), f"{name} ({other.type}), row {row}: {a!r}, not {b!r}"


def check_copies(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """What goes in comes out, whole, sliced, chosen, joined and filtered."""
    for rows in sizes:
        batch = batch_of(rows)
        fields = fields_of(batch)
        frame = device.from_arrow(batch)
        assert device.row_count(frame) == rows
        assert device.nbytes(frame) >= 0
        assert_equal(device.to_arrow(frame, fields), batch)
        for offset, length in ((0, 1), (1, rows), (rows // 2, rows), (rows, 5), (7, 32)):
            cut = device.slice(frame, offset, length)
            assert_equal(device.to_arrow(cut, fields), batch.slice(offset, length))
            twice = device.slice(cut, 1, 3)
            assert_equal(device.to_arrow(twice, fields), batch.slice(offset, length).slice(1, 3))
            again = device.concatenate([cut, frame, twice])
            joined = [batch.slice(offset, length), batch, batch.slice(offset, length).slice(1, 3)]
            table = pa.Table.from_batches([_plain_batch(b) for b in joined]).combine_chunks()
            given = _plain_batch(device.to_arrow(again, fields))
            assert_equal(given, _only(table))
        assert_equal(
            device.to_arrow(device.from_arrow(batch.slice(rows // 3)), fields), batch.slice(rows // 3)
        )
        chosen = (2, 0, 0)
        names = pa.RecordBatch.from_arrays([batch.column(i) for i in chosen], ["a", "b", "c"])
        selected = device.select(frame, chosen)
        assert_equal(device.to_arrow(selected, [fields[i] for i in chosen]), names)
        assert device.row_count(device.select(frame, [])) == rows
        places = np.arange(rows, dtype=np.int64)[::-3]
        assert_equal(device.to_arrow(device.take(frame, places), fields), batch.take(pa.array(places)))
        assert_equal(device.to_arrow(device.empty(fields), fields), batch.slice(0, 0))
    assert device.row_count(device.single_row()) == 1


def _only(table: pa.Table) -> pa.RecordBatch:
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With dictionary values in place: concatenation may number them anew."""
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def check_filters(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """Rows for which a predicate is true, and their places."""
    for rows in sizes:
        batch = batch_of(rows)
        frame = device.from_arrow(batch)
        for index in range(1, batch.num_columns, 3):
            predicate = Call(
                "is_not_null", (ColumnRef(index, "x", batch.schema.field(index).type),), pa.bool_()
            )
            expected = CpuDevice().filter(batch, predicate)
            kept = device.filter(frame, predicate)
            assert_equal(device.to_arrow(kept, fields_of(batch)), expected)
            found = device.matching_positions(predicate, frame)
            assert_equal(device.to_arrow(device.take(frame, found), fields_of(batch)), expected)
            places = device.read_positions(found)
            assert len(found) == len(places)
            assert places.dtype == np.int64
            assert places.tolist() == CpuDevice().matching_positions(predicate, batch).tolist()
            numbers: Any = pa.array(places[::-1])
            given = device.from_arrow(pa.RecordBatch.from_arrays([numbers], ["position"]))
            assert_equal(
                device.to_arrow(device.take(frame, device.as_positions(given)), fields_of(batch)), expected
            )


def check_sorting(device: Device[Any]) -> None:
    """Stable order by every type, both ways, nulls first and last."""
    batch = batch_of(257)
    frame = device.from_arrow(batch)
    for index in range(1, batch.num_columns):
        column = ColumnRef(index, "x", batch.schema.field(index).type)
        if pa.types.is_null(column.type):
            continue  # Arrow does not choose the least of nothing
        for descending in (False, True):
            for nulls_first in (False, True):
                keys = [SortKey(column, descending, nulls_first)]
                for limit in (None, 10):
                    expected = CpuDevice().sort(batch, keys, limit)
                    ours = device.to_arrow(device.sort(frame, keys, limit), fields_of(batch))
                    where = f"{column.type} {descending=} {nulls_first=} {limit=}"
                    assert ours.column(0).to_pylist() == expected.column(0).to_pylist(), where
    two = [SortKey(ColumnRef(i, "x", batch.schema.field(i).type), i % 2 == 0, True) for i in (1, 4)]
    ours = device.to_arrow(device.sort(frame, two), fields_of(batch))
    assert_equal(ours, CpuDevice().sort(batch, two))


def _calls(kind: pa.DataType) -> list[AggregateCall]:
    argument: tuple[Expression, ...] = (ColumnRef(2, "x", kind),)
    calls = [AggregateCall("count_star", (), pa.int64()), AggregateCall("count", argument, pa.int64())]
    calls += [AggregateCall(name, argument, kind) for name in ("min", "max", "any_value", "first", "last")]
    if pa.types.is_boolean(kind):
        calls += [AggregateCall(name, argument, kind) for name in ("bool_and", "bool_or")]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        exact = pa.decimal128(38, kind.scale if pa.types.is_decimal(kind) else 0)
        total = pa.float64() if pa.types.is_floating(kind) else exact
        calls.append(AggregateCall("sum", argument, total))
        names = ("avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")
        calls += [AggregateCall(name, argument, pa.float64()) for name in names]
    positive = Call("greater", (ColumnRef(0, "n", pa.int64()), ColumnRef(3, "m", pa.int64())), pa.bool_())
    return [*calls, *(AggregateCall(c.function, c.arguments, c.type, filter=positive) for c in calls[:4])]


def _gathered_calls(kind: pa.DataType) -> list[AggregateCall]:
    """Aggregates that look at all values of a group, or at one row by an order; and of moments."""
    argument = (ColumnRef(2, "x", kind),)
    number, other = ColumnRef(0, "n", pa.int64()), ColumnRef(3, "m", pa.int64())
    third, half = (Literal(pa.scalar(share, pa.float64())) for share in (0.3, -0.5))
    calls = [AggregateCall("mode", argument, kind), AggregateCall("entropy", argument, pa.float64())]
    calls += [AggregateCall("quantile_disc", argument, kind, parameter=share) for share in (third, half)]
    for name in ("arg_min", "arg_max", "arg_min_null", "arg_max_null"):
        calls.append(AggregateCall(name, (*argument, other), kind))
        calls.append(AggregateCall(name, (number, *argument), pa.int64()))
    keys = (SortKey(other, descending=True), SortKey(number))
    calls += [AggregateCall(name, argument, kind, order=keys) for name in ("first", "last", "any_value")]
    calls.append(AggregateCall("mode", argument, kind, order=(SortKey(*argument, descending=True),)))
    plain = value_type(kind)
    if pa.types.is_large_string(plain):
        comma = Literal(pa.scalar("+", plain))
        calls.append(AggregateCall("string_agg", argument, plain, parameter=comma))
        calls.append(AggregateCall("string_agg", argument, plain, parameter=comma, order=keys))
    if pa.types.is_integer(plain):
        calls += [AggregateCall(name, argument, kind) for name in ("bit_and", "bit_or", "bit_xor")]
    if kind == pa.int64():
        doubles, small = (Cast(column, pa.float64()) for column in (number, other))
        names = ("product", "skewness", "kurtosis", "kurtosis_pop", "sem")
        calls += [AggregateCall(name, (small,), pa.float64()) for name in names]
        pairs = ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2")
        pairs += ("regr_slope", "regr_sxx", "regr_sxy", "regr_syy")
        calls += [AggregateCall(name, (doubles, small), pa.float64()) for name in pairs]
        calls.append(AggregateCall("regr_count", (doubles, small), pa.uint32()))
    exact = pa.types.is_decimal(plain) and plain.precision < 18
    if pa.types.is_floating(plain) or exact:
        calls.append(AggregateCall("mad", argument, kind))
    if pa.types.is_floating(plain) or pa.types.is_temporal(plain) or exact:
        calls += [AggregateCall("quantile_cont", argument, kind, parameter=share) for share in (third, half)]
    return calls


def check_groups(device: Device[Any], rows: int = 700, types: Sequence[pa.DataType] = ALL_TYPES) -> None:
    """Every aggregate of every type, by keys of every type and by none, in one state and in several."""
    for index, kind in enumerate(types):
        keys_kind, batch = _keyed(index, kind, rows)
        calls = _calls(kind)
        for keys in (
            (),
            (ColumnRef(1, "k", keys_kind),),
            (ColumnRef(1, "k", keys_kind), ColumnRef(3, "m", pa.int64())),
        ):
            expected = _grouped(CpuDevice(), batch, keys, calls, [0, rows])
            for edges in ([0, rows], [0, 0, 31, 33, rows, rows]):
                ours = _grouped(device, batch, keys, calls, edges)
                assert_equal(ours, expected, 1e-9)


_REDUCED: Final = ("count_star", "count", "sum", "avg", "min", "max", "bool_and", "bool_or")


def check_reduced_groups(
    device: Device[Any], rows: int = 700, types: Sequence[pa.DataType] = ALL_TYPES
) -> None:
    """Aggregates that a device may find in one pass over the keys, and none: distinct keys."""
    for index, kind in enumerate(types):
        keys_kind, batch = _keyed(index, kind, rows)
        keys = (ColumnRef(1, "k", keys_kind), ColumnRef(3, "m", pa.int64()))
        calls = [call for call in _calls(kind) if call.function in _REDUCED and call.filter is None]
        for some in (calls, []):
            expected = _grouped(CpuDevice(), batch, keys, some, [0, rows])
            for edges in ([0, rows], [0, 0, 31, 33, rows, rows]):
                assert_equal(_grouped(device, batch, keys, some, edges), expected, 1e-9)


def check_gathered(device: Device[Any], rows: int = 700, types: Sequence[pa.DataType] = ALL_TYPES) -> None:
    """Aggregates that look at all values of a group, of every type: in one state, in several, and split."""
    for index, kind in enumerate(types):
        keys_kind, batch = _keyed(index, kind, rows)
        calls = _gathered_calls(kind)
        for keys, edges in (((), [0, rows]), ((ColumnRef(1, "k", keys_kind),), [0, 0, 31, rows])):
            expected = _grouped(CpuDevice(), batch, keys, calls, [0, rows])
            assert_equal(_grouped(device, batch, keys, calls, edges), expected, 1e-9)
            _check_values(device, batch, keys, [call for call in calls if _gathers(call)])


def _gathers(call: AggregateCall) -> bool:
    return call.function in {"mode", "entropy", "quantile_disc", "quantile_cont", "mad", "string_agg"}


def _check_values(
    device: Device[Any], batch: pa.RecordBatch, keys: Sequence[Expression], calls: Sequence[AggregateCall]
) -> None:
    """What is gathered comes back as rows, whole and in pieces, and can be left out of a state."""
    fields = [Field("key", value_type(key.type)) for key in keys]
    without_order = [i for i, call in enumerate(calls) if not call.order]
    found, left = [], []
    for each in (device, CpuDevice()):
        aggregation = each.aggregation(keys, calls)
        state = aggregation.partial(each.from_arrow(batch))
        for number, call in enumerate(calls):
            inputs = (*call.arguments, *(key.expression for key in call.order))
            columns = [*fields, *(Field("input", value_type(e.type)) for e in inputs)]
            count = aggregation.value_count(state, number)
            pieces = [aggregation.values(state, number, start, 40) for start in range(0, count, 40)]
            whole = each.to_arrow(aggregation.values(state, number, 0, count + 1), columns)
            assert whole.num_rows == count
            joined = each.concatenate([*pieces, aggregation.values(state, number, count, 5)])
            assert_equal(_plain_batch(each.to_arrow(joined, columns)), _plain_batch(whole))
            found.append(whole)
        answers = [*(Field("key", key.type) for key in keys), *(Field("x", call.type) for call in calls)]
        rest = aggregation.drop_values(state, without_order)
        assert all(aggregation.value_count(rest, number) == 0 for number in without_order)
        left.append(each.to_arrow(aggregation.final(rest), answers))
    for ours, theirs in zip(found[: len(calls)], found[len(calls) :], strict=True):
        assert_equal(ours, theirs)
    assert_equal(*left, 1e-9)


def _keyed(index: int, kind: pa.DataType, rows: int) -> tuple[pa.DataType, pa.RecordBatch]:
    """A row's number, a key of some type, which is given too, a value of the type, and a number."""
    keys_kind = ALL_TYPES[(index * 7 + 3) % len(ALL_TYPES)]
    columns = [
        pa.array(range(rows), pa.int64()),
        random_column(keys_kind, rows, 1),
        _without_extremes(kind, rows, index),
        random_column(pa.int64(), rows, 3, [5, 300, 10_000]),
    ]
    return keys_kind, pa.RecordBatch.from_arrays(columns, ["n", "k", "x", "m"])


def _without_extremes(kind: pa.DataType, rows: int, seed: int) -> pa.Array:
    """Sums of special values overflow, and variances of infinities are NaN on one device only."""
    if pa.types.is_floating(kind):
        return random_column(kind, rows, seed, [0.5, -2.25, 100.0, float("nan"), -0.0])
    if pa.types.is_decimal(kind) and kind.precision == 38:
        return random_column(kind, rows, seed, _small_decimals(kind))
    return random_column(kind, rows, seed)


def _small_decimals(kind: pa.DataType) -> list[Any]:
    return [scaled(n, kind.scale) for n in (0, 1, -7, 10**20, -(10**30), 10**35)]


def _grouped(
    device: Device[Any],
    batch: pa.RecordBatch,
    keys: Sequence[Expression],
    calls: Sequence[AggregateCall],
    edges: Sequence[int],
) -> pa.RecordBatch:
    aggregation = device.aggregation(keys, calls)
    states = [aggregation.partial(device.from_arrow(batch.slice(a, b - a))) for a, b in pairwise(edges)]
    half = len(states) // 2
    early = [aggregation.to_arrow(state) for state in states[:half] if state.groups]
    if early:  # as files join them, in which keys may be there more than once
        (joined,) = pa.Table.from_batches(early).combine_chunks().to_batches()
        states[:half] = [aggregation.merge([aggregation.from_arrow(joined)], repeated=True)]
    state = aggregation.merge(states)
    assert state.nbytes >= 0
    kinds = [*(key.type for key in keys), *(call.type for call in calls)]
    fields = [Field(f"c{i}", kind) for i, kind in enumerate(kinds)]
    whole = device.to_arrow(aggregation.final(state), fields)
    if keys:
        parts = [aggregation.final(part) for part in aggregation.split(state, 4, 0, apart=True)]
        assert sum(map(device.row_count, parts)) == whole.num_rows
    return whole
