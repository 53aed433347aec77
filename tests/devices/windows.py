"""Calls over windows on a device, held against the CPU's: all functions, frames and types."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa
import pytest

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device, RestOfPartition
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, SingleRow, SortKey, Window
from bamquery.plan.windows import Bound, WindowCall, WindowFrame
from tests.conformance.harness import random_column
from tests.devices.frames import assert_equal
from tests.strategies import ALL_TYPES

INT, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.large_string()
KEY, ORDER, VALUE, NUMBER, SMALL = (
    ColumnRef(0, "k", pa.int32()),
    ColumnRef(1, "o", INT),
    ColumnRef(2, "x", DOUBLE),
    ColumnRef(3, "n", INT),
    ColumnRef(4, "s", INT),
)
ONE, TWO = (Literal(pa.scalar(n, INT)) for n in (1, 2))
START, END, HERE = (Bound("unbounded preceding"), Bound("unbounded following"), Bound("current row"))


def check_functions(device: Device[Any], sizes: tuple[int, ...] = (1, 2, 300)) -> None:
    """Every function over partitions, all rows, peers and rows without order."""
    for rows in sizes:
        for partition in ((KEY,), ()):
            for order in ((SortKey(ORDER),), (SortKey(ORDER, descending=True, nulls_first=True),), ()):
                _check(device, _batch(rows), partition, order, [*_ranked(), *_framed(WindowFrame())])


def check_frames(device: Device[Any], rows: int = 150, every: int = 1) -> None:
    """Frames of every unit and bound, each exclusion, with offsets that differ from row to row."""
    batch = _batch(rows)
    for descending in (False, True):
        order = (SortKey(ORDER, descending=descending, nulls_first=descending),)
        for frame in islice(_frames(descending=descending), 0, None, every):
            _check(device, batch, (KEY,), order, _framed(frame))


def check_types(
    device: Device[Any], rows: int = 120, kinds: Sequence[pa.DataType] = tuple(ALL_TYPES)
) -> None:
    """Values of every type, as partitions, orders and arguments."""
    frame = WindowFrame("rows", Bound("preceding", TWO), HERE)
    for index, kind in enumerate(kinds):
        value = ColumnRef(2, "x", kind)
        batch = _batch(rows, random_column(kind, rows, index))
        nothing = Literal(pa.scalar(None, kind))
        calls = [
            WindowCall(AggregateCall("lag", (value, ONE, nothing), kind)),
            WindowCall(AggregateCall("lead", (value, TWO, value), kind), ignore_nulls=True),
            WindowCall(AggregateCall("count", (value,), INT, distinct=True)),
        ]
        for name in ("first_value", "last_value", "min", "max", "mode", "any_value", "last"):
            calls += [WindowCall(AggregateCall(name, (value,), kind), f) for f in (frame, WindowFrame())]
        for partition, order in (((KEY,), (SortKey(ORDER),)), ((value,), ()), ((), (SortKey(value),))):
            _check(device, batch, partition, order, calls)


def check_texts_in_portions(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch, rows: int = 40, most: int = 900
) -> None:
    """Texts of many lengths come by portions of few bytes, and are the same texts."""
    home = type(device).__module__.rpartition(".")[0]
    monkeypatch.setattr(sys.modules[f"{home}.keys.portions"], "_MOST", most)
    cpu = CpuDevice()
    longest = 300
    texts: Any = [None if i % 5 == 2 else "ab" * (i * 37 % (longest // 2)) for i in range(rows)]
    few: Any = [None if i % 6 == 1 else "cde"[: i * 7 % 4] for i in range(rows)]
    batch = _batch(rows, pa.array(texts, TEXT))
    batch = batch.append_column("w", pa.array(few, TEXT))
    calls = _of_texts(Literal(pa.scalar("-" * longest, TEXT)))
    for partition, order in (((KEY,), (SortKey(ORDER),)), ((), (SortKey(SMALL),)), ((), ())):
        keys = [*(SortKey(key) for key in partition), *order]
        whole = cpu.sort(batch, keys) if keys else batch
        for call in calls:
            window = Window(SingleRow(), partition, order, (call,), ("c",))
            expected = cpu.window(window, whole)
            fields = [Field("c", call.type)]
            for first, count in ((0, rows), (3, rows - 7)):
                frames = list(device.window_portions(window, device.from_arrow(whole), None, first, count))
                given = device.to_arrow(device.concatenate(frames), fields)
                theirs = pa.RecordBatch.from_arrays([expected.column(0).slice(first, count)], [f"{call}"])
                assert_equal(given.rename_columns([f"{call}"]), theirs)
                sizes = [device.string_bytes(frame) for frame in frames]
                largest = max(
                    [len(text) for text in theirs.column(0).to_pylist() if isinstance(text, str)] + [0]
                )
                assert max(sizes) <= most + largest, call
                assert len(sizes) >= sum(sizes) // (most + largest), call


def _of_texts(default: Expression) -> list[WindowCall]:
    """Calls that give texts of rows, and those that join them."""
    value, short = ColumnRef(2, "x", TEXT), ColumnRef(5, "w", TEXT)
    frames = (
        WindowFrame(),
        WindowFrame("rows", START, END),
        WindowFrame("rows", Bound("preceding", TWO), Bound("following", SMALL), "current row"),
    )
    found = [
        WindowCall(AggregateCall(name, (value, offset, other), TEXT), ignore_nulls=nulls_out)
        for name, offset, other, nulls_out in (
            ("lag", ONE, default, False),
            ("lead", NUMBER, short, False),
            ("lag", SMALL, default, True),
        )
    ]
    kept = Call("greater", (NUMBER, ONE), pa.bool_())
    comma = Literal(pa.scalar(", ", TEXT))
    calls = [AggregateCall(name, (value,), TEXT) for name in ("first_value", "last_value", "min", "max")]
    calls += [
        AggregateCall(name, (value,), TEXT, filter=kept) for name in ("any_value", "last", "mode", "max")
    ]
    calls += [
        AggregateCall("nth_value", (value, TWO), TEXT),
        AggregateCall("arg_min", (value, short), TEXT),
        AggregateCall("arg_max", (ORDER, value), INT),
        AggregateCall("first", (value,), TEXT, order=(SortKey(short), SortKey(ORDER))),
        AggregateCall("string_agg", (value,), TEXT, parameter=comma, order=(SortKey(NUMBER),), filter=kept),
        AggregateCall("string_agg", (short,), TEXT, parameter=comma, order=(SortKey(value),)),
        AggregateCall("count", (value,), INT, distinct=True),
    ]
    return found + [WindowCall(call, frame) for call in calls for frame in frames]


def check_errors(device: Device[Any]) -> None:
    """Offsets that are null or below zero."""
    frame = device.from_arrow(_batch(10))
    below, missing = Literal(pa.scalar(-1, INT)), Literal(pa.scalar(None, INT))
    bad = [
        (AggregateCall("ntile", (below,), INT), WindowFrame(), "above zero"),
        (_sum(), WindowFrame("rows", Bound("preceding", below)), "not below zero"),
        (_sum(), WindowFrame("rows", Bound("preceding", missing)), "not NULL"),
        (_sum(), WindowFrame("range", Bound("preceding", _moved("add", ONE), ORDER)), "below zero"),
    ]
    for call, rows, words in bad:
        window = Window(SingleRow(), (), (SortKey(ORDER),), (WindowCall(call, rows),), ("c",))
        with pytest.raises(ExecutionError, match=words):
            device.window(window, frame)


def check_parts_of_a_partition(
    device: Device[Any], rows: int = 60, cuts: Sequence[int] = (0, 1, 17, 40)
) -> None:
    """Some of a partition's rows with the states of all others: what all of them together give."""
    cpu = CpuDevice()
    texts = random_column(TEXT, rows, 7, ["", "a", "b", "ba", "c" * 40])
    for descending, key in ((False, ORDER), (True, SMALL)):
        order = (SortKey(key, descending=descending, nulls_first=descending),)
        whole = cpu.sort(_batch(rows).append_column("w", texts), order)
        calls = [call for call in _ranked() if call.call.function not in ("lag", "lead")]
        for frame in _open_frames():
            calls += [call for call in _framed(frame) if _has_a_state(call.call)]
            calls += [WindowCall(call, frame) for call in _with_text_states()]
        window = Window(SingleRow(), (), order, tuple(calls), tuple(f"c{i}" for i in range(len(calls))))
        fields = [Field(name, call.type) for name, call in zip(window.names, calls, strict=True)]
        expected = cpu.window(window, whole)
        keys = whole.column(key.index).to_pylist()
        for start, end in zip(cuts, [*cuts[1:], rows], strict=True):
            part = device.from_arrow(whole.slice(start, end - start))
            rest = _rest(device, whole, keys, (start, end), calls)
            given = device.to_arrow(device.window(window, part, rest), fields)
            for i, call in enumerate(calls):
                pair = (given.column(i), expected.column(i).slice(start, end - start))
                mine, other = (pa.RecordBatch.from_arrays([column], [f"{call}"]) for column in pair)
                assert_equal(mine, other, 1e-9)


def _with_text_states() -> list[AggregateCall]:
    text = ColumnRef(5, "w", TEXT)
    calls = [AggregateCall(name, (text,), TEXT) for name in ("min", "max", "first", "last", "any_value")]
    calls += [AggregateCall("arg_min", (text, ORDER), TEXT), AggregateCall("arg_max", (ORDER, text), INT)]
    return [*calls, AggregateCall("first", (text,), TEXT, order=(SortKey(text, descending=True),))]


def _rest(
    device: Device[Any],
    whole: pa.RecordBatch,
    keys: list[Any],
    part: tuple[int, int],
    calls: list[WindowCall],
) -> RestOfPartition:
    start, end = part
    rows = len(keys)

    def states(offset: int, count: int) -> list[Any]:
        others = device.from_arrow(whole.slice(offset, count))
        return [
            device.aggregation([], [call.call]).partial(others) if _has_a_state(call.call) and count else None
            for call in calls
        ]

    return RestOfPartition(
        rows_before=start,
        rows_after=rows - end,
        groups_before=sum(a != b for a, b in pairwise(keys[: start + 1])),
        peers_before=keys[:start].count(keys[start]),
        peers_after=keys[end:].count(keys[end - 1]),
        before=states(0, start),
        after=states(end, rows - end),
    )


def _has_a_state(call: AggregateCall) -> bool:
    in_memory = ("first_value", "last_value", "nth_value", "quantile_cont")
    return call.function not in (*_RANKED, *in_memory) and not call.distinct


def _open_frames() -> Iterator[WindowFrame]:
    """Frames that begin or end with the partition, and do not reach beyond a part of it otherwise."""
    yield WindowFrame("rows", START, HERE)
    yield WindowFrame("rows", HERE, END)
    yield WindowFrame("rows", START, END)
    yield WindowFrame("rows", START, END, "current row")


_RANKED = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def _batch(rows: int, values: pa.Array | None = None) -> pa.RecordBatch:
    column = (
        random_column(DOUBLE, rows, 2, [0.5, -2.25, 8.0, float("nan"), -0.0]) if values is None else values
    )
    columns = [
        random_column(pa.int32(), rows, 0, [1, 2, 3, 50]),
        random_column(INT, rows, 1, [-7, 0, 1, 2, 3, 9, 10, 40]),
        column,
        random_column(INT, rows, 3, [1, 2, 3, 2**62]),
        pa.array([i % 4 for i in range(rows)], INT),
    ]
    return pa.RecordBatch.from_arrays(columns, ["k", "o", "x", "n", "s"])


def _ranked() -> Iterator[WindowCall]:
    for name in ("row_number", "rank", "dense_rank"):
        yield WindowCall(AggregateCall(name, (), INT))
    for name in ("percent_rank", "cume_dist"):
        yield WindowCall(AggregateCall(name, (), DOUBLE))
    for parts in (TWO, Literal(pa.scalar(5, INT)), NUMBER):
        yield WindowCall(AggregateCall("ntile", (parts,), INT))
    for name in ("lag", "lead"):
        for offset in (ONE, SMALL, NUMBER):
            for nulls_out in (False, True):
                yield WindowCall(AggregateCall(name, (VALUE, offset, VALUE), DOUBLE), ignore_nulls=nulls_out)


def _framed(frame: WindowFrame) -> list[WindowCall]:
    kept = Call("greater", (NUMBER, ONE), pa.bool_())
    half = Literal(pa.scalar(0.5, DOUBLE))
    calls = [
        AggregateCall("count_star", (), INT),
        AggregateCall("count", (VALUE,), INT, filter=kept),
        AggregateCall("count", (ORDER,), INT, distinct=True),
        _sum(),
        AggregateCall("sum", (SMALL,), HUGEINT),
        AggregateCall("avg", (SMALL,), DOUBLE, filter=Call("greater", (SMALL, TWO), pa.bool_())),
        AggregateCall("sum", (VALUE,), DOUBLE),
        AggregateCall("avg", (ORDER,), DOUBLE, filter=kept),
        AggregateCall("avg", (VALUE,), DOUBLE),
        AggregateCall("min", (VALUE,), DOUBLE),
        AggregateCall("max", (ORDER,), INT),
        AggregateCall("stddev_pop", (ORDER,), DOUBLE),
        AggregateCall("quantile_cont", (VALUE,), DOUBLE, parameter=half),
        AggregateCall("arg_max", (ORDER, VALUE), INT),
        AggregateCall("last", (NUMBER,), INT, order=(SortKey(ORDER), SortKey(VALUE))),
    ]
    values = [AggregateCall(name, (VALUE,), DOUBLE) for name in ("first_value", "last_value")]
    values += [AggregateCall("nth_value", (VALUE, n), DOUBLE) for n in (TWO, NUMBER)]
    found = [WindowCall(call, frame) for call in (*calls, *values)]
    return [*found, *(WindowCall(call, frame, ignore_nulls=True) for call in values)]


def _sum() -> AggregateCall:
    return AggregateCall("sum", (ORDER,), HUGEINT)


def _moved(function: str, by: Expression) -> Call:
    return Call(function, (ORDER, by), INT)


def _frames(*, descending: bool) -> Iterator[WindowFrame]:
    back, forth = ("add", "subtract") if descending else ("subtract", "add")
    near = [
        (Bound("preceding", ONE), Bound("following", SMALL)),
        (Bound("following", ONE), Bound("following", TWO)),
        (Bound("preceding", NUMBER_OR_ONE), Bound("preceding", ONE)),
    ]
    for unit in ("rows", "groups"):
        for start, end in [*near, (START, HERE), (HERE, END)]:
            yield WindowFrame(unit, start, end)
    for exclude in ("current row", "group", "ties"):
        yield WindowFrame("rows", Bound("preceding", TWO), Bound("following", TWO), exclude)
        yield WindowFrame("range", START, END, exclude)
    before = Bound("preceding", _moved(back, TWO), ORDER)
    after = Bound("following", _moved(forth, SMALL), ORDER)
    for start, end in ((before, HERE), (before, after), (HERE, after), (after, END), (START, before)):
        yield WindowFrame("range", start, end)


NUMBER_OR_ONE = Call("coalesce", (NUMBER, ONE), INT)


def _check(
    device: Device[Any],
    batch: pa.RecordBatch,
    partition: tuple[ColumnRef, ...],
    order: tuple[SortKey, ...],
    calls: list[WindowCall],
) -> None:
    cpu = CpuDevice()
    rows = cpu.sort(batch, [*(SortKey(key) for key in partition), *order])
    names = tuple(f"c{i}" for i in range(len(calls)))
    window = Window(SingleRow(), partition, order, tuple(calls), names)
    expected = cpu.window(window, rows)
    found = device.window(window, device.from_arrow(rows))
    fields = [Field(name, call.type) for name, call in zip(names, calls, strict=True)]
    given = device.to_arrow(found, fields)
    theirs = pa.RecordBatch.from_arrays(expected.columns, list(names))
    for i, call in enumerate(calls):
        one = [pa.RecordBatch.from_arrays([b.column(i)], [f"{call}"]) for b in (given, theirs)]
        assert_equal(one[0], one[1], 1e-9)
