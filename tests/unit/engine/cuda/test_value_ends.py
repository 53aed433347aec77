"""What the cuda device does not compute twice, and does not test row by row, over a stand-in for libcudf."""

from __future__ import annotations

import sys
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, run

WIDE: Any = pa.decimal128(38, 2)
LONG: Any = pa.int64()


@pytest.fixture
def passes(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each binary operation was asked for."""
    found: Counter[str] = Counter()
    kernels = sys.modules["bamquery.engine.cuda.kernels"]
    operate = kernels.binary_operation

    def counted(a: Any, b: Any, operator: Any, kind: Any, **more: Any) -> Any:
        found[f"{operator.name} {kind.id().name}"] += 1
        return operate(a, b, operator, kind, **more)

    monkeypatch.setattr(kernels, "binary_operation", counted)
    return found


def computed(device: Device[Any], name: str, kind: pa.DataType, *sides: list[Any]) -> list[Any]:
    columns = [pa.array(side, kind) for side in sides]
    frame = device.from_arrow(pa.RecordBatch.from_arrays(columns, names=["a", "b"]))
    call = Call(name, (ColumnRef(0, "a", kind), ColumnRef(1, "b", kind)), kind)
    answer: list[Any] = (
        device.to_arrow(device.evaluate([call], frame), [Field("c", kind)]).column(0).to_pylist()
    )
    return answer


def test_arithmetic_that_cannot_overflow_is_one_pass(device: Device[Any], passes: Counter[str]) -> None:
    long = [2**31, None, -(2**31)]
    assert computed(device, "multiply", LONG, long, long) == [2**62, None, 2**62]
    assert computed(device, "add", LONG, [2**62, -(2**62)], [2**62 - 1, -(2**62)]) == [2**63 - 1, -(2**63)]
    assert computed(device, "subtract", LONG, [0, -1], [2**63 - 1, 7]) == [1 - 2**63, -8]
    assert passes == {"MUL INT64": 1, "ADD INT64": 1, "SUB INT64": 1}
    passes.clear()
    wide = [Decimal(n) for n in (5 * 10**34, -(10**35))]
    assert computed(device, "add", WIDE, wide, wide) == [Decimal(10**35), Decimal(-2 * 10**35)]
    assert passes == {"ADD DECIMAL128": 1}


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("add", [1, 2**63 - 1], [0, 1]),
        ("add", [-(2**63)], [-1]),
        ("subtract", [-(2**63)], [1]),
        ("multiply", [2**32], [2**31]),
        ("multiply", [-(2**63)], [-1]),
    ],
)
def test_what_overflows_by_one_is_refused(device: Device[Any], name: str, a: list[int], b: list[int]) -> None:
    with pytest.raises(ExecutionError, match=r"[Oo]verflow"):
        computed(device, name, LONG, a, b)


def test_large_sides_on_different_rows_do_not_overflow(device: Device[Any]) -> None:
    """Their ends alone do not tell: each row is looked at."""
    assert computed(device, "add", LONG, [2**63 - 1, 0], [0, 2**63 - 1]) == [2**63 - 1] * 2
    assert computed(device, "multiply", LONG, [2**62, 1], [1, 2**62]) == [2**62] * 2
    most = Decimal(10**36 - 1)
    assert computed(device, "add", WIDE, [most, Decimal(0)], [Decimal(0), most]) == [most] * 2


@pytest.mark.parametrize("kind", [LONG, pa.uint64(), pa.decimal128(18, 0), pa.decimal128(38, 0)], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sums_around_a_word_are_exact(device: Device[Any], kind: Any, rows: int) -> None:
    reach = 10**18 - 1 if pa.types.is_decimal(kind) and kind.precision == 18 else 2**63 - 1
    ends = [reach, reach - 1, (2**63 - 1) // rows, (2**63 - 1) // rows + 1]
    if kind != pa.uint64():
        ends += [-end for end in ends]
    for end in ends:
        if abs(end) > reach:
            continue
        values = [end] * rows
        table = pa.table({"k": pa.array([0] * rows), "a": pa.array(values, kind)})
        assert grouped_sum(device, table, kind) == [sum(values)]


def grouped_sum(device: Device[Any], table: pa.Table, kind: pa.DataType) -> list[Any]:
    total: Any = pa.decimal128(38, 0)
    key, values = ColumnRef(0, "k", LONG), ColumnRef(1, "a", kind)
    calls = [AggregateCall("sum", (values,), total)]
    operator = Aggregate(Rows(table), [key], calls, (Field("k", LONG), Field("s", total)))
    answer: list[Any] = run(operator, device).column("s").to_pylist()
    return answer


def test_what_aggregates_share_is_computed_once(device: Any, passes: Counter[str]) -> None:
    """By the operators; a program computes each part once in any case."""
    table = pa.table({"a": pa.array([1, 2, 3, None]), "b": pa.array([5, 6, 7, 8])})
    a, b = ColumnRef(0, "a", LONG), ColumnRef(1, "b", LONG)
    product: Expression = Call("multiply", (a, b), LONG)
    more = Call("add", (product, b), LONG)
    total: Any = pa.decimal128(38, 0)
    calls = [
        AggregateCall("sum", (product,), total),
        AggregateCall("avg", (product,), pa.float64()),
        AggregateCall("count", (product,), LONG),
        AggregateCall("max", (more,), LONG),
    ]
    fields = tuple(Field(f"c{n}", call.type) for n, call in enumerate(calls))
    operators = type(device)(device.session, programs=False)
    answer = run(Aggregate(Rows(table), [], calls, fields), operators).to_pylist()
    assert answer == [{"c0": 38, "c1": 38 / 3, "c2": 3, "c3": 28}]
    assert passes["MUL INT64"] == 1
