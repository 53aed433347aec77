"""Nested decimal arithmetic in 64 bits against the same arithmetic step by step."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.evaluation import evaluate
from bamquery.engine.cpu.expressions.nested_decimals import evaluate_nested, is_nested
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal

PRICE = pa.decimal128(15, 2)
A, B = ColumnRef(0, "a", PRICE), ColumnRef(1, "b", PRICE)
ONE = Literal(pa.scalar(Decimal("1.00"), pa.decimal128(16, 2)))
LESS = Call("subtract", (ONE, Cast(B, pa.decimal128(16, 2))), pa.decimal128(16, 2))
PRODUCT = Call("multiply", (A, LESS), pa.decimal128(31, 4))
MORE = Call(
    "add", (Cast(PRODUCT, pa.decimal128(36, 6)), Cast(LESS, pa.decimal128(36, 6))), pa.decimal128(36, 6)
)


def _batch(values: list[tuple[str | None, str | None]]) -> pa.RecordBatch:
    columns: list[Any] = [
        pa.array([None if v is None else Decimal(v) for v in column], PRICE)
        for column in zip(*values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=["a", "b"])


def _step_by_step(expression: Expression, batch: pa.RecordBatch) -> Any:
    """Each call over columns that are there."""
    if isinstance(expression, Cast):
        inner = _step_by_step(expression.argument, batch)
        return evaluate(
            Cast(ColumnRef(0, "", inner.type), expression.type), pa.RecordBatch.from_arrays([inner], ["0"])
        )
    if not isinstance(expression, Call):
        return evaluate(expression, batch)
    parts = [_step_by_step(argument, batch) for argument in expression.arguments]
    arrays = [
        part if isinstance(part, pa.Array) else pa.array([part.as_py()] * batch.num_rows, part.type)
        for part in parts
    ]
    places = tuple(ColumnRef(i, "", array.type) for i, array in enumerate(arrays))
    own = pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])
    return evaluate(Call(expression.function, places, expression.type), own)


@pytest.mark.parametrize("expression", [PRODUCT, MORE], ids=["product", "sum"])
def test_as_step_by_step(expression: Call) -> None:
    choose = random.Random(5)
    rows = [
        (
            None if choose.random() < 0.2 else str(choose.randint(-(10**9), 10**9) / 100),
            choose.choice([None, "0.07", "-3"]),
        )
        for _ in range(300)
    ]
    for values in (rows, rows[:1], [(None, None)]):
        batch = _batch(values)
        assert is_nested(expression)
        small = evaluate_nested(expression, batch)
        assert small is not None
        assert small.equals(_step_by_step(expression, batch))
        assert small.equals(evaluate(expression, batch))
        assert small.slice(1).equals(evaluate(expression, batch.slice(1))) or batch.num_rows == 1


def test_what_64_bits_do_not_hold_is_computed_in_128() -> None:
    batch = _batch([("9999999999999.99", "-9999999999.00"), ("1.00", "0.50")])
    assert evaluate_nested(PRODUCT, batch) is None
    assert evaluate(PRODUCT, batch).to_pylist()[1] == Decimal("0.5000")
    assert evaluate(PRODUCT, batch).to_pylist()[0] == Decimal("9999999999999.99") * Decimal("10000000000.00")


def test_what_the_type_does_not_hold_fails_as_before() -> None:
    narrow = Call("multiply", (A, LESS), pa.decimal128(5, 4))
    with pytest.raises(ExecutionError, match="overflow"):
        evaluate(narrow, _batch([("500.00", "-1.00")]))


def test_a_column_alone_is_no_nested_arithmetic() -> None:
    assert not is_nested(A)
    assert not is_nested(LESS)
    assert not is_nested(Call("equal", (PRODUCT, PRODUCT), pa.bool_()))
