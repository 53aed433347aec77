"""A join's keys that stay in a device's memory, as a list in which conditions look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.key_keeping_device import keeps_keys
from bamquery.plan.expressions import Call, ColumnRef, Members
from bamquery.storage.statistics.late_values import LateValues

KINDS = (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.date32(), pa.timestamp("us"))


def keys_of(kind: pa.DataType, rows: int, seed: int, nulls: float) -> pa.Array[Any]:
    """Few different ones, some more than once."""
    random = np.random.default_rng(seed)
    stored = random.integers(3, 110, rows)
    mask = random.random(rows) < nulls
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(stored, width, mask=mask).view(kind)
    return pa.array(stored, kind, mask=mask)


def frame_of(device: Device[Any], *columns: pa.Array[Any]) -> Any:
    return device.from_arrow(
        pa.RecordBatch.from_arrays(list(columns), [f"c{i}" for i in range(len(columns))])
    )


def late_values_of(device: Device[Any], columns: list[pa.Array[Any]]) -> LateValues:
    """What the device makes of them."""
    assert keeps_keys(device)
    ends = pc.min_max(pa.concat_arrays(columns))
    found = device.late_values([frame_of(device, one) for one in columns], ends["min"], ends["max"])
    assert found is not None
    return found


def check_late_keys(device: Device[Any], rows: int) -> None:
    """Of every type, of one frame and of two, with nulls and without."""
    for seed, kind in enumerate(KINDS):
        for nulls in (0.0, 0.2):
            columns = [keys_of(kind, rows, seed, nulls), keys_of(kind, rows, seed + 50, 0.0)[2:]]
            for some in (columns, columns[:1]):
                late = late_values_of(device, some)
                valid = pc.drop_null(pa.concat_arrays(some))
                assert len(late) == len(valid)
                assert late.type == kind
                assert sorted(late.values.to_pylist()) == sorted(pc.unique(valid).to_pylist())
                _check_conditions(device, late, pc.unique(valid), keys_of(kind, rows + 3, seed + 9, 0.1))


def _check_conditions(
    device: Device[Any], late: LateValues, values: pa.Array[Any], probe: pa.Array[Any]
) -> None:
    column = ColumnRef(0, "c0", probe.type)
    others = ColumnRef(1, "c1", pa.int64())
    for other in (None, Call("less", (others, others), pa.bool_())):
        both = frame_of(device, probe, pa.array(range(len(probe)), pa.int64()))
        found, wanted = (_condition(column, one, other) for one in (late, values))
        chosen = device.read_positions(device.matching_positions(found, both)).tolist()
        batch = pa.RecordBatch.from_arrays([probe, pa.array(range(len(probe)), pa.int64())], ["c0", "c1"])
        assert chosen == np.asarray(CpuDevice().matching_positions(wanted, batch)).tolist(), probe.type


def _condition(column: ColumnRef, values: Any, other: Any) -> Any:
    member = Call("in", (column, Members(values)), pa.bool_())
    return member if other is None else Call("or", (member, other), pa.bool_())
