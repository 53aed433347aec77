"""Every function and cast of the cuda device, over a stand-in for libcudf, against the CPU device."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Members
from bamquery.plan.nodes import Field
from tests.devices import cases as device_cases
from tests.devices import together
from tests.devices.cases import expected_values
from tests.devices.together import check_together

EVERY = {
    "arithmetic": 13,
    "comparisons": 29,
    "conditions": 3,
    "strings": 3,
    "temporal": 2,
    "mathematics": 9,
    "texts": 2,
    "instants": 4,
}
"""Each so manieth case; a GPU sees all of them (tests/gpu/engine)."""


@pytest.mark.parametrize("family", EVERY)
def test_functions(device: Device[Any], family: str) -> None:
    for case in islice(getattr(device_cases, family)(), 0, None, EVERY[family]):
        device_cases.check(device, case)


def test_casts(device: Device[Any]) -> None:
    for case in islice(device_cases.casts(device), 0, None, 5):
        device_cases.check(device, case)


def test_cases_side_by_side_are_the_same(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU is asked, which compiles one kernel for many; what differs is told."""
    operators = type(device)(device.session, programs=False)  # type: ignore[attr-defined, call-arg]
    some = list(islice(device_cases.arithmetic(), 5, None, 97))
    assert check_together(device, operators, some) == []
    first = next(device_cases.comparisons())
    monkeypatch.setattr(together, "expected_values", lambda expression, batch: [None] * batch.num_rows)
    found = check_together(device, operators, [first])
    assert [one.partition(" of ")[0] for one in found] == [first.name] * 4
    monkeypatch.setattr(together, "expected_values", _all_but_one_fail)
    assert [one.partition(":")[0] for one in check_together(device, operators, [first])] == [first.name] * 3


def _all_but_one_fail(expression: Expression, batch: pa.RecordBatch) -> list[Any]:
    value, *others = expected_values(expression, batch)
    return [value, *(ExecutionError("not said") for _ in others)]


def test_many_members(device: Device[Any]) -> None:
    values: Any = pa.array([5, None, 300, -1, 7], pa.int64())
    wanted: Any = pa.array(range(7, 400), pa.int64())
    condition = Call("in", (ColumnRef(0, "k", pa.int64()), Members(wanted)), pa.bool_())
    assert not device.capabilities.expression_refusals(condition)
    frame = device.from_arrow(pa.RecordBatch.from_arrays([values], names=["k"]))
    found = device.to_arrow(device.evaluate([condition], frame), [Field("found", pa.bool_())])
    assert found.column(0).to_pylist() == [False, None, True, False, True]
