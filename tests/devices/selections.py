"""Rows that conditions select, on a device against the CPU's: sets of values, and conditions beside them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, Members

BOOL = pa.bool_()
SIZES = (1, 31, 32, 33, 1023, 1024, 1025, 3000)
KINDS: tuple[Any, ...] = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.date32(), pa.timestamp("us"), pa.time64("us")),
)


def _values(kind: Any, rows: int, random: np.random.Generator) -> pa.Array[Any]:
    """A few different ones, some of them null; of signed types, on both sides of zero."""
    signed = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    numbers = random.integers(-60 if signed else 0, 60, rows)
    width = kind.bit_width
    stored = numbers.astype(f"{'u' if pa.types.is_unsigned_integer(kind) else 'i'}{width // 8}")
    missing = random.random(rows) < 0.1
    plain: Any = pa.array(stored, mask=missing)
    return plain if pa.types.is_integer(kind) else plain.view(kind)


def _member(column: ColumnRef, values: pa.Array[Any]) -> Expression:
    return Call("in", (column, Members(values)), BOOL)


def _check(device: Device[Any], condition: Expression, batch: pa.RecordBatch) -> None:
    found = device.read_positions(device.matching_positions(condition, device.from_arrow(batch)))
    wanted = CpuDevice().matching_positions(condition, batch)
    assert found.tolist() == np.asarray(wanted).tolist(), condition


def check_sets(device: Device[Any], sizes: tuple[int, ...] = SIZES) -> None:
    """Columns of every type whose values are in a set; of several sets; with other conditions; of slices."""
    random = np.random.default_rng(3)
    for rows in sizes:
        columns = [_values(kind, rows + 3, random) for kind in KINDS]
        names = [str(i) for i in range(len(KINDS))]
        batch = pa.RecordBatch.from_arrays(columns, names).slice(3)
        references = [ColumnRef(i, str(i), kind) for i, kind in enumerate(KINDS)]
        tests = []
        for reference, column in zip(references, columns, strict=True):
            some = column.drop_null().unique()
            tests.append(_member(reference, some[: max(len(some) // 2, 1)]))
        nothing = _member(references[3], pa.array([], pa.int64()))
        small = Call("less", (references[3], Literal(pa.scalar(20, pa.int64()))), BOOL)
        odd = Call("not_equal", (references[2], Literal(pa.scalar(1, pa.int32()))), BOOL)
        conditions = [
            *tests,
            nothing,
            Call("and", (tests[2], tests[3]), BOOL),
            Call("and", (small, odd), BOOL),
            Call("and", (Call("and", (small, tests[8]), BOOL), tests[9], odd), BOOL),
        ]
        for condition in conditions:
            _check(device, condition, batch)


def check_far_values(device: Device[Any]) -> None:
    """Sets whose ends are far from each other, up to the ends of their type."""
    kind = pa.int64()
    reference = ColumnRef(0, "0", kind)
    ends = [-(2**63), 2**63 - 1, 0, 5, 2**40]
    batch = pa.RecordBatch.from_arrays([pa.array([*ends, None, 6], kind)], ["0"])
    for some in ([ends[0]], [ends[1]], ends[:2], ends[2:], [ends[0] + 1, ends[0]], [2**63 - 2]):
        _check(device, _member(reference, pa.array(some, kind)), batch)


def check_lost_values(device: Device[Any]) -> None:
    """A condition whose arithmetic needs more than 64 bits is computed otherwise."""
    kind: Any = pa.decimal128(38, 0)
    big = ColumnRef(0, "0", kind)
    batch = pa.RecordBatch.from_arrays([pa.array([Decimal(10) ** 30, Decimal(5), None], kind)], ["0"])
    limit = Literal(pa.scalar(Decimal(7), kind))
    above = Call("greater", (big, limit), BOOL)
    known = Call("is_not_null", (big,), BOOL)
    for _ in range(3):  # the last time nobody tries
        _check(device, Call("and", (above, known), BOOL), batch)
