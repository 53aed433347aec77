"""Joins that a device does by itself, held against the CPU's: the same rows in the same order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.join import in_memory
from bamquery.engine.operators.join.device_join import DeviceJoin, DeviceJoinTable
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Rows, random_column, run
from tests.devices.frames import assert_equal, batch_of
from tests.strategies import ALL_TYPES, CHUNK_SIZES

KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti", "mark", "single")
_DENSE = [0, 1, 2, 3, 7]
_MANY = 10**6
_LEFT = 3
"""Columns of the left one of `_sides`."""
_LONGEST = 300
"""Bytes of texts."""


def check_kinds(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """Each kind with keys that are equal often, sometimes and never, some of them null, and none at all."""
    for rows, held in product(sizes, (0, 1, 33)):
        for values, equal in product((_DENSE, range(40), [1]), (False, True)):
            left, right = _sides(rows, held, values)
            for kind in KINDS:
                _check(device, left, right, kind, _condition(left, right, equal=equal))


def check_residuals(device: Device[Any], sizes: Sequence[int] = CHUNK_SIZES) -> None:
    """Conditions over both sides' columns, over one's, over none; true, false and null."""
    for rows, held in product(sizes, (0, 33)):
        for values, equal in product((_DENSE, range(40)), (False, True)):
            left, right = _sides(rows, held, values)
            for kind, residual in product(KINDS, _residuals()):
                if kind == "mark" and not equal:
                    continue  # nulls of its keys would have to be looked at, too: no such plan is made
                _check(device, left, right, kind, _condition(left, right, residual, equal=equal))


def check_types(device: Device[Any], rows: int = 40) -> None:
    """Keys of every type, and columns of every type beside keys."""
    for seed, kind in enumerate(kind for kind in ALL_TYPES if not pa.types.is_dictionary(kind)):
        left, right = (
            pa.table({"k": random_column(kind, count, seed + count), "n": pa.array(range(count))})
            for count in (rows, rows // 2)
        )
        for joined in ("full", "mark"):
            _check(device, left, right, joined, _condition(left, right))
    left, right = (pa.Table.from_batches([batch_of(count, seed=count)]) for count in (rows, rows // 2))
    left, right = (table.append_column("k", table.column(0)) for table in (left, right.slice(3)))
    reference = ColumnRef(left.num_columns - 1, "k", pa.int64())
    for joined in ("full", "right", "anti"):
        _check(device, left, right, joined, JoinCondition((reference,), (reference,), (False,)))


def check_several_partners(device: Device[Any]) -> None:
    """A single row with two is an error, however far apart they are; one that a condition leaves is none."""
    left = pa.table({"k": pa.array(range(20), pa.int64()), "n": pa.array([5] * 20, pa.int64())})
    for places in ((0, 39), (7, 8)):
        keys = list(range(100, 140))
        for place in places:
            keys[place] = 19
        right = pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(range(40), pa.int64())})
        with pytest.raises(ExecutionError, match="gave several rows"):
            run(_join(left, right, "single", _condition(left, right)), device)
        last = Call("greater_equal", (ColumnRef(3, "n", pa.int64()), _number(places[1])), pa.bool_())
        _check(device, left, right, "single", _condition(left, right, last))


def check_errors(device: Device[Any]) -> None:
    """A condition that cannot be computed fails where a pair has equal keys, and only there."""
    left = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "x": pa.array([1, 2**63 - 1, 3], pa.int64())})
    one_more = Call("add", (ColumnRef(1, "x", pa.int64()), _number(1)), pa.int64())
    residual = Call("greater", (one_more, _number(0)), pa.bool_())
    for kind in KINDS:
        for keys in ([1, 3, 4], [2]):
            right = pa.table({"k": pa.array(keys, pa.int64())})
            condition = _condition(left, right, residual, equal=True)
            if keys == [2]:
                with pytest.raises(ExecutionError, match="overflow"):
                    run(_join(left, right, kind, condition), device)
            else:
                _check(device, left, right, kind, condition)


def check_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in portions, in several frames on several threads, and in parts, are the same rows."""
    table = device.join_table(device.empty([Field("k", pa.int64())]), [False])
    module = sys.modules[type(table).__module__]
    monkeypatch.setattr(module, "_LARGEST", 64)
    for gathered, many in ((_MANY, _MANY), (4, _MANY), (4, 30)):
        monkeypatch.setattr(framing, "GATHERED_ROWS", gathered)
        monkeypatch.setattr(in_memory, "_MANY_ROWS", many // device.task_size)
        for values in (_DENSE, range(40)):
            left, right = _sides(200, 40, values)
            for kind, residual in product(KINDS, (None, _residuals()[0])):
                condition = _condition(left, right, residual, equal=True)
                _check(device, left, right, kind, condition, in_order=many == _MANY)


def check_texts_in_portions(device: Device[Any], monkeypatch: pytest.MonkeyPatch, most: int = 600) -> None:
    """Rows with texts of many lengths come by portions of few bytes, and are the same rows."""
    table = device.join_table(device.empty([Field("k", pa.int64())]), [False])
    home = sys.modules[type(table).__module__].__name__.rpartition(".")[0]
    monkeypatch.setattr(sys.modules[f"{home}.portions"], "_MOST", most)
    for values in (_DENSE, range(40)):
        left, right = (
            side.append_column("t", pa.array(_texts(side.num_rows, seed), pa.large_string()))
            for seed, side in enumerate(_sides(50, 40, values))
        )
        joined = _texts_differ()
        for kind, residual in product(KINDS, (None, _residuals()[0], joined)):
            condition = _condition(left, right, residual, equal=True)
            _check(device, left, right, kind, condition)
        sizes = _portions(device, left, right)
        assert len(sizes) > sum(sizes) // most
        assert max(sizes) < most + 2 * _LONGEST + 100


def _texts(rows: int, seed: int) -> list[str | None]:
    return [None if i % 7 == 3 else "xy" * ((i * 37 + seed) % (_LONGEST // 2)) for i in range(rows)]


def _texts_differ() -> Expression:
    mine, theirs = (ColumnRef(i, "t", pa.large_string()) for i in (_LEFT, 2 * _LEFT))
    return Call("not_equal", (mine, theirs), pa.bool_())


def _portions(device: Device[Any], left: pa.Table, right: pa.Table) -> list[int]:
    """Bytes of the frames that an inner join gives."""
    mine, theirs = (device.from_arrow(table.to_batches()[0]) for table in (left, right))
    table: Any = device.join_table(device.select(theirs, [0]), [True])
    rows = table.start_join(DeviceJoin("inner", theirs, None))
    return [device.nbytes(frame) for frame in rows.probe(mine, device.select(mine, [0]))]


def check_nothing_is_downloaded(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of joins with keys stay on the device."""
    table = device.join_table(device.empty([Field("k", pa.int64())]), [False])
    assert isinstance(table, DeviceJoinTable)

    def never(*arguments: object) -> None:
        raise AssertionError("pairs for the host")

    monkeypatch.setattr(type(table), "matches", never)
    left, right = _sides(60, 33, range(40))
    for kind, residual in product(KINDS, (None, _residuals()[0])):
        _check(device, left, right, kind, _condition(left, right, residual, equal=True))


def _sides(rows: int, held: int, values: Sequence[Any]) -> tuple[pa.Table, pa.Table]:
    """Keys `k` and values `v` with nulls, and on the left a row number `n`."""
    left, right = (
        pa.table(
            {
                "k": random_column(pa.int64(), count, seed, values),
                "v": random_column(pa.int64(), count, 10 + seed, _DENSE),
            }
        )
        for count, seed in ((rows, rows), (held, 1000 + held))
    )
    return left.append_column("n", pa.array(range(rows), pa.int64())), right


def _residuals() -> list[Expression]:
    mine, theirs = ColumnRef(1, "v", pa.int64()), ColumnRef(_LEFT + 1, "v", pa.int64())
    return [
        Call("less", (mine, theirs), pa.bool_()),
        Call("greater", (mine, _number(1)), pa.bool_()),
        Call("greater", (theirs, _number(1)), pa.bool_()),
        *(Literal(pa.scalar(value, pa.bool_())) for value in (True, False, None)),
    ]


def _number(value: int) -> Literal:
    return Literal(pa.scalar(value, pa.int64()))


def _condition(
    left: pa.Table, right: pa.Table, residual: Expression | None = None, *, equal: bool = False
) -> JoinCondition:
    mine, theirs = (ColumnRef(0, "k", table.column(0).type) for table in (left, right))
    return JoinCondition((mine,), (theirs,), (equal,), residual)


def _join(left: pa.Table, right: pa.Table, kind: JoinKind, condition: JoinCondition) -> Join[Any]:
    own, theirs = ([Field(field.name, field.type) for field in table.schema] for table in (left, right))
    beside = {"semi": [], "anti": [], "mark": [Field("mark", pa.bool_())]}.get(kind, theirs)
    return Join(Rows(left, [37]), Rows(right, [11]), kind, condition, (*own, *beside))


def _check(
    device: Device[Any],
    left: pa.Table,
    right: pa.Table,
    kind: JoinKind,
    condition: JoinCondition,
    *,
    in_order: bool = True,
) -> None:
    ours, theirs = (
        _answer(lambda: run(_join(left, right, kind, condition), one), in_order=in_order)  # noqa: B023
        for one in (device, CpuDevice())
    )
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs, f"{kind} {condition}"
        return
    assert_equal(ours, theirs)


def _answer(compute: Callable[[], pa.Table], *, in_order: bool) -> pa.RecordBatch | str:
    """The rows, or the error."""
    try:
        table = compute()
    except ExecutionError as error:
        return str(error)
    named = table.rename_columns([str(i) for i in range(table.num_columns)]).combine_chunks()
    if not in_order:
        named = named.sort_by([(name, "ascending") for name in named.column_names]).combine_chunks()
    batches = named.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], named.schema)
