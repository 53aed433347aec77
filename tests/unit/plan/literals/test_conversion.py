"""Constants convert as the device casts columns, and expressions over them fold to what it computes."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.data_types.type_groups import is_numeric
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.formulas.type_families import is_castable
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Literal
from bamquery.plan.literals.conversion import NotConvertedError, convert
from bamquery.plan.literals.evaluation import evaluate
from tests.oracle import plain, same
from tests.strategies import PLAIN_TYPES, arrays

ROW = pa.RecordBatch.from_arrays([pa.array([0])], names=["0"])
TEXTS = ["1", " 1 ", "-2.5", "1e3", "nan", "inf", "x", "", "true", "T", "2024-02-29", "2024-02-30"]
TEXTS += ["1969-12-31 23:59:59.999999999", "2024-1-5", "10:20:30", "0x1F", "1_000", "2024-01-01T00:00:00+02"]


def _computed(expression: Any, batch: pa.RecordBatch) -> Any:
    """The device's answer in the one row, or the error."""
    try:
        return plain(CpuDevice().evaluate([expression], batch).column(0))[0]
    except ExecutionError:
        return ExecutionError


def _check_cast(column: pa.Array, target: pa.DataType) -> None:
    for row in range(len(column)):
        value = column[row]
        batch = pa.RecordBatch.from_arrays([column.slice(row, 1)], names=["0"])
        expected = _computed(Cast(ColumnRef(0, "0", column.type), target), batch)
        try:
            given = convert(value, target)
        except NotConvertedError:
            continue
        except ValueError:
            assert expected is ExecutionError, f"{value!r} to {target}: device {expected!r}"
            continue
        assert given.type == target
        (ours,) = plain(pa.array([given], target))
        assert expected is not ExecutionError, f"{value!r} to {target}: {ours!r}, device fails"
        assert same(ours, expected), f"{value!r} to {target}: {ours!r}, device {expected!r}"


@pytest.mark.parametrize("source", PLAIN_TYPES, ids=str)
@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.data())
def test_casts(source: pa.DataType, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from([kind for kind in PLAIN_TYPES if is_castable(source, kind)]))
    _check_cast(data.draw(arrays(source, size=4)), target)


@pytest.mark.parametrize("target", PLAIN_TYPES, ids=str)
def test_texts(target: pa.DataType) -> None:
    _check_cast(pa.array(TEXTS, pa.large_string()), target)


@pytest.mark.parametrize(
    "function",
    [
        *(
            "add",
            "subtract",
            "multiply",
            "divide",
            "floor_divide",
            "modulo",
            "equal",
            "less",
            "greater_equal",
        ),
        *("is_distinct_from", "is_not_distinct_from", "in", "coalesce"),
    ],
)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.data())
def test_functions(function: str, data: st.DataObject) -> None:
    numbers = [kind for kind in PLAIN_TYPES if is_numeric(kind)]
    kind = data.draw(st.sampled_from(numbers if function in ARITHMETIC else PLAIN_TYPES))
    result = pa.bool_()
    if function in ARITHMETIC:
        if function == "divide":
            kind = pa.float64()
        if function == "floor_divide" and pa.types.is_decimal(kind):
            kind = pa.decimal128(38, 0)
        if function == "multiply" and pa.types.is_decimal(kind):
            kind = pa.decimal128(10, 2)
        result = pa.decimal128(20, 4) if function == "multiply" and pa.types.is_decimal(kind) else kind
    if function == "coalesce":
        result = kind
    values = data.draw(arrays(kind, size=2))
    call = Call(function, (Literal(values[0]), Literal(values[1])), result)
    folded = evaluate(call)
    expected = _computed(
        Call(function, (ColumnRef(0, "0", kind), Literal(values[1])), result),
        pa.RecordBatch.from_arrays([values.slice(0, 1)], names=["0"]),
    )
    if folded is None:
        assert expected is ExecutionError, f"{call}: not folded, device {expected!r}"
        return
    assert folded.type == result
    (ours,) = plain(pa.array([folded.value], result))
    assert same(ours, expected), f"{call}: {ours!r}, device {expected!r}"


ARITHMETIC = {"add", "subtract", "multiply", "divide", "floor_divide", "modulo"}


@pytest.mark.parametrize("value", [1e39, 1e79, 1.7e308, -1e300])
def test_floats_beyond_every_decimal(value: float) -> None:
    for target in (pa.decimal128(1, 1), pa.decimal128(38, 0), pa.decimal128(38, 38), pa.int64()):
        _check_cast(pa.array([value]), target)


def test_equal_values_are_not_taken_for_each_other() -> None:
    """What was converted before is known: of values whose equals say the same."""
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        for value in (first, second):
            found = convert(pa.scalar(value, pa.float64()), pa.float32())
            assert math.copysign(1, found.as_py()) == math.copysign(1, value)
