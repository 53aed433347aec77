"""Joins that are cancelled from outside amid what takes long: no further step is begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.keys import join_table
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join import pairs as pairs_module
from bamquery.engine.operators.join import probe as probe_module
from bamquery.engine.operators.join.asof_join import AsofJoin
from bamquery.engine.operators.join.join import Join
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.mark_join import MarkJoinProbe
from bamquery.engine.operators.join.pairs import JoinCondition, JoinPairFinder
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError
from bamquery.plan.expressions import Call, ColumnRef
from bamquery.plan.nodes import Field, JoinKind
from tests.conformance.harness import Rows

K, N = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "n", pa.int64())
LESS = Call("less", (N, ColumnRef(3, "n", pa.int64())), pa.bool_())
BY_K = JoinCondition((K,), (K,), (False,))
TABLE = pa.table(
    {
        "k": pa.array([None if n == 5 else n % 3 for n in range(30)], pa.int64()),
        "n": pa.array([None if n == 7 else n for n in range(30)], pa.int64()),
    }
)
COMPARED = JoinCondition(residual=LESS, compared=((K, K), (N, N)))


class _Filtered(Rows):
    def push_dynamic_filter(self, value: Any, dynamic_filter: DynamicFilter) -> bool:
        return True


def _join(kind: JoinKind, condition: JoinCondition) -> Join[Any]:
    own = tuple(Field(field.name, field.type) for field in TABLE.schema)
    fields = {"semi": own, "mark": (*own, Field("mark", pa.bool_()))}.get(kind, (*own, *own))
    return Join(_Filtered(TABLE, [10]), _Filtered(TABLE, [10]), kind, condition, fields)


def _asof() -> AsofJoin[Any]:
    own = tuple(Field(field.name, field.type) for field in TABLE.schema)
    sides = Rows(TABLE, [10]), Rows(TABLE, [10])
    return AsofJoin(*sides, [(K, K, False)], ("greater", N, N), (*own, *own), keeps_left=False)


def _probe_first() -> Join[Any]:
    join = _join("semi", BY_K)
    assert join.filter_build()
    return join


def _with_filters() -> Join[Any]:
    join = _join("inner", BY_K)
    join.filter_probe()
    return join


@pytest.mark.parametrize(
    ("make", "owner", "name", "most"),
    [
        (_with_filters, KeySummary, "add_all", 1),
        (_probe_first, KeySummary, "add", 1),
        (
            lambda: _join("inner", JoinCondition((K,), (K,), (False,), LESS)),
            JoinPairFinder,
            "_true_and_null",
            1,
        ),
        (lambda: _join("semi", JoinCondition(residual=LESS)), JoinPairFinder, "_filter_pairs", 1),
        (lambda: _join("inner", BY_K), join_table.CpuJoinTable, "_find_pairs", 1),
        (lambda: _join("mark", COMPARED), MarkJoinProbe, "_table", 1),
        (lambda: _join("left", BY_K), probe_module.JoinProbe, "_pair_rows", 1),
        (lambda: _join("inner", BY_K), CpuDevice, "join_columns", 1),
        (lambda: _join("semi", JoinCondition()), probe_module.JoinProbe, "_filter_rows", 1),
        (_asof, CpuDevice, "take_or_null", 1),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_no_step_is_begun_after_a_cancel(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], owner: Any, name: str, most: int
) -> None:
    """Cancelled in one step, it begins no other; one more may be on its way to another thread."""
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 10)
    for module in (join_table, pairs_module):
        monkeypatch.setattr(module, "_PORTION", 4)
    operator = make()
    calls: list[int] = []
    original = getattr(owner, name)
    with ExecutionContext(CpuDevice(), Settings().with_value("threads", 1)) as context:
        context.string_limits = StringLimits(piece=64)

        def step(*arguments: Any, **options: Any) -> Any:
            calls.append(1)
            context.cancelled.set()
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, step)
        with pytest.raises(CancelledError):
            list(operator.produce(context))
        monkeypatch.undo()
        assert context.memory.used == 0
    assert 1 <= len(calls) <= most
