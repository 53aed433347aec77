"""Steps are taken alike where columns are stored alike, and a column is read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.engine.operators.scan.stored_filters.step_plans import StepPlans
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from tests.stored import run_scan, stored

ROWS = 40_000
"""Of a fragment."""


def unlike_fragments() -> pa.Table:
    """Three fragments' rows: each has its own dictionary of `word`; the last one's `number` is wide."""
    random = np.random.default_rng(11)
    words = [random.choice(known, ROWS) for known in (["a", "b", "c"], ["b", "c", "d", "e"], ["c", "0"])]
    numbers = [random.integers(0, most, ROWS) for most in (50, 50, 1 << 62)]
    small = random.integers(0, 9, 3 * ROWS)
    return pa.table({"word": np.concatenate(words), "number": np.concatenate(numbers), "small": small})


def condition(function: str, column: int, name: str, value: Any) -> Call:
    literal = Literal(pa.scalar(value, pa.large_string() if isinstance(value, str) else pa.int64()))
    return Call(function, (ColumnRef(column, name, literal.type), literal), pa.bool_())


CASES: list[tuple[list[Expression], pc.Expression]] = [
    ([condition("equal", 0, "word", "c")], pc.field("word") == "c"),
    ([condition("less", 1, "number", 7)], pc.field("number") < 7),
    (
        [condition("equal", 0, "word", "c"), condition("greater", 1, "number", 20)],
        (pc.field("word") == "c") & (pc.field("number") > 20),
    ),
    (
        [condition("less", 2, "small", 6), condition("less", 1, "number", 1 << 40)],
        (pc.field("small") < 6) & (pc.field("number") < 1 << 40),
    ),
]


@pytest.mark.parametrize(("predicates", "expected"), CASES)
def test_each_fragment_is_asked_as_it_is_stored(
    tmp_path: Path, predicates: list[Expression], expected: pc.Expression
) -> None:
    table = unlike_fragments()
    with stored(tmp_path / "db", table, [ROWS, 2 * ROWS], encoding="auto") as snapshot:
        found, _ = run_scan(snapshot, ("number", "word", "small"), predicates, threads=1)
    wanted = table.filter(expected)
    for name in ("number", "small", "word"):
        assert found.column(name).to_pylist() == wanted.column(name).to_pylist()


def test_numbers_are_planned_once_for_all_fragments(tmp_path: Path) -> None:
    table = unlike_fragments().select(["small", "word"])
    less = condition("less", 0, "small", 6)
    with (
        stored(tmp_path / "db", table, [ROWS, 2 * ROWS], encoding="auto") as snapshot,
        mock.patch.object(StepPlans, "_find", autospec=True, side_effect=StepPlans._find) as find,
    ):
        run_scan(snapshot, ("small",), [less], threads=1)
    assert find.call_count == 1


def test_a_column_that_is_given_out_twice_is_read_once(tmp_path: Path) -> None:
    table = unlike_fragments()
    with stored(tmp_path / "db", table, encoding="auto") as snapshot:
        for predicates in ([], [condition("less", 2, "small", 6)]):
            found, profile = run_scan(snapshot, ("small", "number", "small"), predicates, threads=1)
            wanted = table.filter(pc.field("small") < 6) if predicates else table
            for place, name in enumerate(("small", "number", "small")):
                assert found.column(place).to_pylist() == wanted.column(name).to_pylist()
            for column in profile.columns.values():
                assert column.vectors_read == column.vectors_total
