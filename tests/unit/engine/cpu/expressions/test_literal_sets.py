"""Long lists after IN: the answers of short ones."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.plan.expressions import Call, ColumnRef, Literal

DAY = datetime.date(2024, 5, 1)
COLUMNS = [
    pa.array([1, None, 7, 40], pa.int32()),
    pa.array(["1", None, "7", "x"], pa.large_string()),
    pa.array([Decimal(1), None, Decimal(7), Decimal(40)], pa.decimal128(9, 2)),
    pa.array([DAY, None, DAY + datetime.timedelta(7), DAY + datetime.timedelta(40)], pa.date32()),
    pa.array([1.0, None, float("nan"), -0.0]),
]


def _member(kind: pa.DataType, number: int) -> pa.Scalar:
    if pa.types.is_large_string(kind):
        return pa.scalar(str(number), kind)
    if pa.types.is_date32(kind):
        return pa.scalar(DAY + datetime.timedelta(number - 1), kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(number), kind)
    return pa.scalar(number, kind)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
@pytest.mark.parametrize("null", [False, True])
def test_in_long_lists(column: pa.Array, null: bool) -> None:
    members = [Literal(_member(column.type, number)) for number in range(1, 20)]
    if null:
        members.append(Literal(pa.scalar(None, column.type)))
    call = Call("in", (ColumnRef(0, "x", column.type), *members), pa.bool_())
    batch = pa.RecordBatch.from_arrays([column], ["0"])
    wanted = [value in [m.value.as_py() for m in members] for value in column.to_pylist()]
    wanted = [
        None if value is None or (null and not found) else found
        for value, found in zip(column.to_pylist(), wanted, strict=True)
    ]
    for _ in range(2):
        assert evaluate_columns([call], batch)[0].to_pylist() == wanted
        assert evaluate_columns([call], batch.slice(2))[0].to_pylist() == wanted[2:]
