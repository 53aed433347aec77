"""Plans to operators, and everything a device refuses, at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.lowering import lower
from bamquery.engine.settings import Settings
from bamquery.errors import UnsupportedError
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, Call, Cast, ColumnRef
from bamquery.plan.windows import WindowCall
from tests.conformance.harness import run

BATCH = pa.record_batch(
    [pa.array([3, 1, 2, 1], pa.int64()), pa.array(["c", "a", "b", "a"], pa.large_string())], ["a", "b"]
)
A, B = ColumnRef(0, "a", pa.int64()), ColumnRef(1, "b", pa.large_string())
COUNT = AggregateCall("count_star", (), pa.int64())
KEYS = (nodes.SortKey(A),)


def answer(plan: nodes.Plan) -> dict[str, list[Any]]:
    device = CpuDevice()
    return run(lower(plan, device, Settings()), device).to_pydict()


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (nodes.Values(BATCH), {"a": [3, 1, 2, 1], "b": ["c", "a", "b", "a"]}),
        (nodes.Limit(nodes.Values(BATCH), 2, 1), {"a": [1, 2], "b": ["a", "b"]}),
        (nodes.Sort(nodes.Values(BATCH), KEYS), {"a": [1, 1, 2, 3], "b": ["a", "a", "b", "c"]}),
        (nodes.Sort(nodes.Values(BATCH), KEYS, None, 3), {"a": [3], "b": ["c"]}),
        (nodes.Sort(nodes.Values(BATCH), KEYS, 1, 2), {"a": [2], "b": ["b"]}),
        (nodes.Project(nodes.Values(BATCH), (B,), ("x",)), {"x": ["c", "a", "b", "a"]}),
        (nodes.Filter(nodes.Values(BATCH), Call("less", (A, A), pa.bool_())), {"a": [], "b": []}),
        (
            nodes.Aggregate(nodes.Values(BATCH), (A,), (COUNT,), ("k", "n")),
            {"k": [3, 1, 2], "n": [1, 2, 1]},
        ),
        (
            nodes.Aggregate(nodes.Values(BATCH), (A,), (COUNT,), ("k", "n", "set"), ((0,), ())),
            {"k": [3, 1, 2, None], "n": [1, 2, 1, 4], "set": [0, 0, 0, 1]},
        ),
        (
            nodes.Window(nodes.Values(BATCH), (B,), KEYS, (WindowCall(COUNT),), ("n",)),
            {"a": [1, 1, 2, 3], "b": ["a", "a", "b", "c"], "n": [2, 2, 1, 1]},
        ),
    ],
)
def test_every_node_runs(plan: nodes.Plan, expected: dict[str, list[Any]]) -> None:
    assert answer(plan) == expected


def test_every_refusal_is_given_at_once() -> None:
    child = nodes.Values(BATCH)
    plan = nodes.Project(
        nodes.Filter(child, Call("soundex", (B,), pa.bool_())),
        (Cast(B, pa.list_(pa.int8())), Call("metaphone", (B, B), pa.int64())),
        ("x", "y"),
    )
    aggregate = nodes.Aggregate(plan, (), (AggregateCall("histogram", (B,), pa.float64()),), ("e",))
    with pytest.raises(UnsupportedError) as refused:
        lower(aggregate, CpuDevice(), Settings())
    assert [reason.message for reason in refused.value.reasons] == [
        "the cpu device has no aggregate histogram",
        "the cpu device has no columns of type list<item: int8> (column x)",
        "the cpu device has no columns of type list<item: int8>",
        "the cpu device cannot cast VARCHAR to list<item: int8>",
        "the cpu device has no function metaphone",
        "the cpu device has no function soundex",
    ]
