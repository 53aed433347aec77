"""Expressions of many conditions are asked whether the query goes on, however few the rows are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.errors import CancelledError
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.statement_context.cancellation import use_cancellation_check

_BIGINT, _BOOLEAN = pa.int64(), pa.bool_()


def test_each_condition_asks() -> None:
    x = ColumnRef(0, "x", _BIGINT)
    conditions = [Call("greater", (x, Literal(pa.scalar(i, _BIGINT))), _BOOLEAN) for i in range(50)]
    left = 25

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CancelledError("stop")

    batch = pa.record_batch({"x": pa.array([1, 2, 3], _BIGINT)})
    with use_cancellation_check(check), pytest.raises(CancelledError):
        evaluate_columns([Call("or", tuple(conditions), _BOOLEAN)], batch)
