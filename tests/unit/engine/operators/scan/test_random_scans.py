"""Random tables and conditions: the scan gives what filtering all rows in memory gives."""

from __future__ import annotations

import math
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.device import CpuDevice
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.storage.format.layout import Encoding
from tests.forced_forms import FORMS, forced_form
from tests.selection.effort import effort
from tests.stored import run_scan, stored

NAMES = ("i", "f", "s", "d")
OPERATORS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def make(rows: int, seed: int, ordered: bool) -> pa.Table:
    """An integer, a float with NaN and signed zeros, a string and a date; nulls in all of them."""
    random = np.random.default_rng(seed)
    numbers = random.integers(-5, 50, rows)
    if ordered:
        numbers.sort()
    floats = random.choice([0.0, -0.0, math.nan, math.inf, 1.5, -2.5, *random.random(5)], rows)

    def holes() -> np.ndarray:
        return random.random(rows) < random.choice([0.0, 0.1, 0.999])

    return pa.table(
        {
            "i": pa.array(numbers, pa.int32(), mask=holes()),
            "f": pa.array(floats, mask=holes()),
            "s": pa.array([f"{'prefix' * (n % 4)}{n}" for n in numbers], pa.large_string(), mask=holes()),
            "d": pa.array(numbers.astype("datetime64[D]"), pa.date32(), mask=holes()),
        }
    )


@st.composite
def conditions(draw: st.DrawFn, table: pa.Table) -> Expression:
    index = draw(st.integers(0, 3))
    field = table.schema.field(index)
    column = ColumnRef(index, field.name, field.type)
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "or"]))
    if kind == "null":
        return Call(draw(st.sampled_from(["is_null", "is_not_null"])), (column,), pa.bool_())
    if kind == "or":
        return Call("or", (draw(conditions(table)), draw(conditions(table))), pa.bool_())

    def literal() -> Literal:
        values = table.column(index)
        row = draw(st.integers(0, table.num_rows - 1))
        value: Any = values[row]
        return Literal(value.cast(field.type))

    if kind == "in":
        options = tuple(literal() for _ in range(draw(st.integers(1, 3))))
        return Call("in", (column, *options), pa.bool_())
    return Call(draw(st.sampled_from(OPERATORS)), (column, literal()), pa.bool_())


@pytest.mark.parametrize("form", ["plain", "auto", *FORMS])
@pytest.mark.long
@settings(max_examples=effort(10, 400), deadline=None)
@given(st.data())
def test_against_a_filter_in_memory(form: str, data: st.DataObject) -> None:
    """Over plain tables, and over packed ones as they choose and in vectors of each form."""
    rows = data.draw(st.sampled_from([1, 1023, 1025, 7000]), label="rows")
    table = make(
        rows, data.draw(st.integers(0, 2**32), label="seed"), data.draw(st.booleans(), label="ordered")
    )
    cuts = sorted(data.draw(st.sets(st.integers(1, rows - 1), max_size=3)) if rows > 1 else [])
    predicates = data.draw(st.lists(conditions(table), max_size=4), label="predicates")
    outputs = data.draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True), label="outputs")
    options = {
        "strategy": data.draw(st.sampled_from(["auto", "stream", "vectors", "blocks"])),
        "zone_maps": data.draw(st.booleans()),
        "threads": data.draw(st.sampled_from([1, 3])),
    }
    device = CpuDevice()
    expected = table.combine_chunks().to_batches()[0]
    for predicate in predicates:
        expected = device.filter(expected, predicate)
    encoding: Encoding = "plain" if form == "plain" else "auto"
    with (
        tempfile.TemporaryDirectory() as folder,
        forced_form(form) if form in FORMS else nullcontext(),
        stored(Path(folder) / "db", table, cuts, encoding=encoding) as snapshot,
    ):
        found, profile = run_scan(snapshot, (*outputs, "i"), predicates, **options)
        wanted = expected.select([NAMES.index(name) for name in (*outputs, "i")])
        assert found.num_rows == wanted.num_rows
        for mine, other in zip(found.columns, wanted.columns, strict=True):
            assert same(mine.to_pylist(), other.to_pylist())
        assert profile.rows_scanned == rows
        assert all(column.vectors_read <= column.vectors_total for column in profile.columns.values())


def same(ours: list[Any], theirs: list[Any]) -> bool:
    """Equal, with NaN equal to itself and -0 told from 0."""
    return list(map(repr, ours)) == list(map(repr, theirs))
