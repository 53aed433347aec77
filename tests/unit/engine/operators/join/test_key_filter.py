"""What is known of the keys of build rows that come in several frames."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.join import key_filter
from bamquery.engine.operators.join.key_filter import KeySummary
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef

KEY = (ColumnRef(0, "k", pa.int64()),)


def _published(
    frames: Sequence[Sequence[int | None]], *, nulls_equal: bool = False, limit: str = "10MB"
) -> list[str]:
    """The conditions, as they are shown."""
    condition, known = JoinCondition(KEY, KEY, (nulls_equal,)), DynamicFilter("a test")
    with (
        ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", limit)) as context,
        KeySummary(context, condition, {0: known}) as summary,
    ):
        for keys in frames:
            summary.add(pa.record_batch([pa.array(keys, pa.int64())], ["k"]))
        summary.publish()
    assert context.memory.used == 0
    return [
        f"k IN ({', '.join(sorted(str(literal.value) for literal in one.literals))})"
        if one.function == "in" and one.members is None
        else one.text("k")
        for one in known.conditions
    ]


BOUNDS = ["(k >= 1)", "(k <= 9)"]


def test_keys_of_all_frames_are_named_once() -> None:
    assert _published([[7, 7, 1], [None], [9, 1]]) == ["k IN (1, 7, 9)"]
    assert _published([[7, 7, 1]]) == ["k IN (1, 7)"]
    assert _published([[7, 7], [7]]) == ["(k = 7)"]


def test_nulls_that_are_equal_are_wanted() -> None:
    assert _published([[7], [7, None]], nulls_equal=True) == ["(k = 7) OR k IS NULL"]
    assert _published([[7], [7]], nulls_equal=True) == ["(k = 7)"]
    assert _published([[None], [None]], nulls_equal=True) == ["k IS NULL"]
    assert _published([[None], [None]]) == []
    assert _published([]) == []


def test_many_keys_are_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_VALUES", 3)
    assert _published([[1, 2], [2, 9]]) == ["k IN (1, 2, 9)"]
    assert _published([[1, 2], [3, 9]]) == ["k IN (4 values)"]


def test_of_too_many_rows_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_ROWS", 4)
    assert _published([[1, 9], [1, 9]]) == ["k IN (1, 9)"]
    assert _published([[1, 9], [1, 9], [5], [5]]) == BOUNDS


def test_of_too_many_bytes_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_MOST_BYTES", 32)
    assert _published([[1, 9], [1, 9]]) == ["k IN (1, 9)"]
    assert _published([[1, 9], [1, 9], [5], [5]]) == BOUNDS


def test_keys_beyond_the_memory_are_not_named() -> None:
    assert _published([[*range(1, 10_000)], [5], [5]]) == ["k IN (9,999 values)"]
    assert _published([[*range(1, 10_000)], [5], [5]], limit="100kB") == ["(k >= 1)", "(k <= 9999)"]
