"""Guesses of selectivity come near the truth where zone maps can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.engine.operators.scan.filter_order import filter_steps
from bamquery.engine.operators.scan.selectivity_guess import TYPICAL_SELECTIVITY, guess_selectivities
from bamquery.engine.sources.scan_predicates import split_conjuncts
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, Members
from tests.stored import stored

ROWS = 300_000


def guess(tmp_path: Path, values: np.ndarray, function: str, *literals: object) -> tuple[float, float]:
    """The guess, and the share of rows that pass among those of the vectors that are left."""
    table = pa.table({"x": values})
    kind = table.schema.field("x").type
    arguments: tuple[Expression, ...] = (ColumnRef(0, "x", kind),)
    arguments += tuple(Literal(pa.scalar(value, kind)) for value in literals)
    with stored(tmp_path / "db", table, [100_000]) as snapshot:
        conjuncts = split_conjuncts([Call(function, arguments, pa.bool_())], table.schema)
        (found,) = guess_selectivities(filter_steps(conjuncts), snapshot.fragments)
        left = sum(len(f.zone_map.surviving_vectors(conjuncts[0].ranges)) for f in snapshot.fragments)
    compare = {"greater": np.greater, "equal": np.equal, "less": np.less, "in": np.isin}[function]
    passing = np.count_nonzero(compare(values, literals if function == "in" else literals[0]))
    return found, passing / (left * 1024) if left else 0.0


def test_rare_rows_anywhere(tmp_path: Path) -> None:
    values = (np.random.default_rng(0).random(ROWS) < 3e-4).astype(np.int32)
    found, truth = guess(tmp_path, values, "equal", 1)
    assert found == pytest.approx(truth, rel=0.3)


def test_sorted_rows(tmp_path: Path) -> None:
    found, truth = guess(tmp_path, np.arange(ROWS), "greater", 200_000)
    assert found == pytest.approx(truth, rel=0.02)


def test_a_condition_that_always_holds(tmp_path: Path) -> None:
    found, _ = guess(tmp_path, np.arange(ROWS), "less", ROWS + 5)
    assert found == 1.0


def test_one_that_never_does(tmp_path: Path) -> None:
    assert guess(tmp_path, np.arange(ROWS), "less", -5) == (0.0, 0.0)


def test_a_coin_flip(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 2, ROWS)
    assert guess(tmp_path, values, "equal", 1)[0] == TYPICAL_SELECTIVITY


def test_a_list_of_values(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 5000, ROWS)
    found, truth = guess(tmp_path, values, "in", 3, 5)
    # Minima are above 3 in some vectors only: no more can be told.
    assert truth <= found < TYPICAL_SELECTIVITY / 10


@pytest.mark.parametrize("kind", [pa.int32(), pa.date32(), pa.uint64()])
def test_a_long_list(tmp_path: Path, kind: pa.DataType) -> None:
    """Of as many values as there are different ones, about that share of the rows passes."""
    values = np.random.default_rng(0).integers(1000, 11_000, ROWS).astype(np.int32)
    column: Any = pa.array(values)
    column = column.view(kind) if pa.types.is_date32(kind) else column.cast(kind)
    some = column.unique()[:500]
    table = pa.table({"x": column})
    condition = Call("in", (ColumnRef(0, "x", kind), Members(some)), pa.bool_())
    with stored(tmp_path / "db", table, [100_000]) as snapshot:
        (found,) = guess_selectivities(
            filter_steps(split_conjuncts([condition], table.schema)), snapshot.fragments
        )
    truth = pc.sum(pc.is_in(column, some)).as_py() / ROWS
    assert found == pytest.approx(truth, rel=0.1)


def test_a_long_list_of_texts(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([f"{n:04}" for n in range(5000)], pa.large_string())})
    condition = Call(
        "in", (ColumnRef(0, "x", pa.large_string()), Members(table["x"][:100].combine_chunks())), pa.bool_()
    )
    with stored(tmp_path / "db", table) as snapshot:
        assert guess_selectivities(
            filter_steps(split_conjuncts([condition], table.schema)), snapshot.fragments
        ) == [TYPICAL_SELECTIVITY]


def test_nothing_is_known_of_expressions(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(5000.0)})
    x = ColumnRef(0, "x", pa.float64())
    odd = Call("less", (Call("sqrt", (x,), pa.float64()), x), pa.bool_())
    with stored(tmp_path / "db", table) as snapshot:
        assert guess_selectivities(
            filter_steps(split_conjuncts([odd], table.schema)), snapshot.fragments
        ) == [TYPICAL_SELECTIVITY]
