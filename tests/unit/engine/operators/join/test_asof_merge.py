"""ASOF joins of rows that do not fit: sides of other columns, frames of a row, rows without a partner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base import frame_sizing
from bamquery.engine.operators.join.asof_join import AsofJoin
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows

TIMES, KEYS, WORDS = pa.float64(), pa.int32(), pa.large_string()
LEFT = (Field("word", WORDS), Field("t", TIMES), Field("k", KEYS))
RIGHT = (Field("k", KEYS), Field("t", TIMES))
Left = tuple[str, float | None, int | None]
Right = tuple[int | None, float | None]


def _table(fields: Sequence[Field], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(fields)],
        [field.name for field in fields],
    )


@pytest.fixture(autouse=True)
def nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are merged from the first on, in frames of one."""
    monkeypatch.setattr(AsofJoin, "_collect_sorted", lambda *_: False)
    monkeypatch.setattr(frame_sizing, "GATHERED_ROWS", 1)
    monkeypatch.setattr(frame_sizing, "FRAME_ROWS", 1)


def _join(
    folder: Path,
    left: Sequence[Left],
    right: Sequence[Right],
    *,
    by_key: bool,
    keeps_left: bool,
) -> list[tuple[Any, ...]]:
    """Of each left row the last right one that is no later."""
    keys = [(ColumnRef(2, "k", KEYS), ColumnRef(0, "k", KEYS), False)] if by_key else []
    inequality = ("greater_equal", ColumnRef(1, "t", TIMES), ColumnRef(1, "t", TIMES))
    sides = Rows(_table(LEFT, left), [1]), Rows(_table(RIGHT, right), [1])
    join = AsofJoin(*sides, keys, inequality, (*LEFT, *RIGHT), keeps_left=keeps_left)
    with ExecutionContext(CpuDevice(), Settings(), spill_folder=folder) as context:
        frames = list(join.frames(context))
        assert context.memory.used == 0
    return [row for frame in frames for row in zip(*(c.to_pylist() for c in frame.columns), strict=True)]


def test_sides_of_different_columns(tmp_path: Path) -> None:
    """In the order of times; a row at the same time counts, and a partner may have as many as there are."""
    left = [("d", 9.0, 4), ("a", 1.0, 4), ("b", 2.0, 5), ("c", 2.5, 4)]
    right = [(7, 2.0), (8, 1.5), (9, 20.0)]
    expected = [("b", 2.0, 5, 7, 2.0), ("c", 2.5, 4, 7, 2.0), ("d", 9.0, 4, 7, 2.0)]
    assert _join(tmp_path, left, right, by_key=False, keeps_left=False) == expected
    expected.insert(0, ("a", 1.0, 4, None, None))
    assert _join(tmp_path, left, right, by_key=False, keeps_left=True) == expected


def test_keys_and_nulls(tmp_path: Path) -> None:
    """Rows whose key or time is null have no partner, and are none."""
    left = [("a", 5.0, 1), ("b", None, 1), ("c", 5.0, None), ("d", 5.0, 2), ("e", 1.0, 1), ("f", 5.0, 3)]
    right = [(1, 4.0), (1, None), (None, 3.0), (1, 3.0), (2, 6.0), (0, 1.0)]
    assert _join(tmp_path, left, right, by_key=True, keeps_left=False) == [("a", 5.0, 1, 1, 4.0)]
    found = _join(tmp_path, left, right, by_key=True, keeps_left=True)
    assert sorted(found) == [("a", 5.0, 1, 1, 4.0), *[(*row, None, None) for row in sorted(left[1:])]]


@pytest.mark.parametrize("keeps_left", [False, True])
@pytest.mark.parametrize("right", [[], [(1, 3.0)]])
def test_one_row_before_all_others(tmp_path: Path, right: list[Right], keeps_left: bool) -> None:
    found = _join(tmp_path, [("a", 1.0, 1)], right, by_key=False, keeps_left=keeps_left)
    assert found == [("a", 1.0, 1, None, None)] * keeps_left
