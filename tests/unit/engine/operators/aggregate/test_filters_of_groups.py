"""Conditions on groups that become known while a query runs: which of them rows may be left out by."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.aggregate.distinct_aggregate import DistinctAggregate
from bamquery.engine.operators.aggregate.distinct_on import DistinctOnPrefilter
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal, SortKey
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, reference

TABLE = pa.table({"a": pa.array([1], pa.int64()), "b": pa.array([2], pa.int64())})
A, B = reference(TABLE, "a"), reference(TABLE, "b")
FILTER: Any = object()


class _Asked(Rows):
    def __init__(self) -> None:
        super().__init__(TABLE)
        self.given: list[Expression] = []

    def push_dynamic_filter(self, value: Expression, dynamic_filter: Any) -> bool:
        assert dynamic_filter is FILTER
        self.given.append(value)
        return True


@pytest.mark.parametrize("operator", [Aggregate, DistinctAggregate])
def test_rows_are_left_out_by_keys_only(operator: Any) -> None:
    """Groups as a whole are gone then; without one of its rows an aggregate would be another one."""
    child = _Asked()
    total = AggregateCall("count", (A,), pa.int64(), distinct=operator is DistinctAggregate)
    fields = tuple(Field(name, pa.int64()) for name in ("b", "a", "n"))
    grouping = operator(child, (B, A), (total,), fields)
    keys = [ColumnRef(i, field.name, field.type) for i, field in enumerate(fields)]
    both = Call("add", (keys[0], keys[1]), pa.int64())
    assert grouping.push_dynamic_filter(keys[0], FILTER)
    assert grouping.push_dynamic_filter(both, FILTER)
    assert child.given == [B, Call("add", (B, A), pa.int64())]
    assert not grouping.push_dynamic_filter(keys[2], FILTER)
    assert not grouping.push_dynamic_filter(Call("add", (keys[0], keys[2]), pa.int64()), FILTER)
    assert not grouping.push_dynamic_filter(Literal(pa.scalar(1)), FILTER)
    assert len(child.given) == 2


def test_first_rows_pass_conditions_on() -> None:
    child = _Asked()
    assert DistinctOnPrefilter(child, [A], [SortKey(B)]).push_dynamic_filter(A, FILTER)
    assert child.given == [A]
