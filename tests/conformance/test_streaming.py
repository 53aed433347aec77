"""Filter, projection, LIMIT, VALUES and the single row, on every device."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.filter import Filter
from bamquery.engine.operators.limit import Limit
from bamquery.engine.operators.project import Project
from bamquery.engine.operators.single_row import SingleRow
from bamquery.engine.operators.values import Values
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field
from tests.conformance.harness import Forever, Rows, assert_same, random_table, reference, run
from tests.oracle import ask
from tests.strategies import ALL_TYPES, CHUNK_SIZES

ROWS = 4300


def literal(value: object, kind: pa.DataType) -> Literal:
    return Literal(pa.scalar(value, kind))


def project(child: Any, expressions: list[Expression]) -> Project[Any]:
    return Project(child, expressions, tuple(Field(f"c{i}", e.type) for i, e in enumerate(expressions)))


@pytest.mark.parametrize("sizes", [[size, 1025] for size in CHUNK_SIZES], ids=str)
def test_filter(oracle: duckdb.DuckDBPyConnection, device: Device[Any], sizes: list[int]) -> None:
    table = random_table(ALL_TYPES, ROWS)
    name = table.column_names[ALL_TYPES.index(pa.float64())]
    predicate = Call("greater", (reference(table, name), literal(1.0, pa.float64())), pa.bool_())
    expected = ask(oracle, f'SELECT * FROM t WHERE "{name}" > 1 ORDER BY row', t=table)
    assert_same(run(Filter(Rows(table, sizes), predicate), device), expected)


@pytest.mark.parametrize(("value", "rows"), [(True, 100), (False, 0), (None, 0)])
def test_filter_by_a_constant(device: Device[Any], value: bool | None, rows: int) -> None:
    table = random_table([pa.int8()], 100)
    assert run(Filter(Rows(table), literal(value, pa.bool_())), device).num_rows == rows


def test_projection(oracle: duckdb.DuckDBPyConnection, device: Device[Any]) -> None:
    table = random_table([pa.int32(), pa.large_string()], ROWS)
    a, b = reference(table, "a"), reference(table, "b")
    wide = Cast(a, pa.int64())
    expressions = [
        Call("add", (wide, wide), pa.int64()),
        b,
        b,
        literal(7, pa.int8()),
        literal(None, pa.date32()),
    ]
    expected = ask(oracle, "SELECT a::BIGINT + a, b, b, 7::TINYINT, NULL::DATE FROM t ORDER BY row", t=table)
    assert_same(run(project(Rows(table), expressions), device), expected)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_columns_are_moved_as_they_are(device: Device[Any], kind: pa.DataType) -> None:
    table = random_table([kind], ROWS)
    moved = run(
        project(Rows(table), [reference(table, "row"), reference(table, "a"), reference(table, "a")]), device
    )
    assert_same(moved, table.select(["row", "a", "a"]))
    assert moved.schema.types == [pa.int64(), kind, kind]


def test_rows_without_columns(device: Device[Any]) -> None:
    """Their number is all there is of them."""
    table = random_table([pa.int8()], 100)
    constant = literal("x", pa.large_string())
    none = Project(Rows(table), (), ())
    assert run(project(none, [constant]), device).column(0).to_pylist() == ["x"] * 100
    assert run(project(SingleRow(), [constant]), device).column(0).to_pylist() == ["x"]


def test_values(device: Device[Any]) -> None:
    table = random_table(ALL_TYPES, 50)
    fields = tuple(Field(f.name, f.type) for f in table.schema)
    assert_same(run(Values(table.combine_chunks().to_batches()[0], fields), device), table)


@pytest.mark.parametrize("sizes", [[size, 1025] for size in CHUNK_SIZES], ids=str)
@pytest.mark.parametrize(
    ("count", "offset"), [(0, 0), (1, 0), (1, 1), (40, 31), (1025, 1024), (None, 7), (9, 9999)]
)
def test_limit(device: Device[Any], sizes: list[int], count: int | None, offset: int) -> None:
    table = random_table([pa.int64(), pa.large_string()], ROWS)
    expected = table.slice(offset) if count is None else table.slice(offset, count)
    assert_same(run(Limit(Rows(table, sizes), count, offset), device), expected)


def test_limit_stops_its_child(device: Device[Any]) -> None:
    table = random_table([pa.int8()], 1000)
    child = Forever(table.combine_chunks().to_batches()[0])
    assert run(Limit(child, 2500, 400), device).num_rows == 2500
    assert child.frames_given == 3
    assert child.closed


def test_limit_stops_what_is_below_a_filter(device: Device[Any]) -> None:
    table = random_table([pa.int8()], 1000)
    child = Forever(table.combine_chunks().to_batches()[0])
    predicate = Call("is_not_null", (ColumnRef(0, "a", pa.int8()),), pa.bool_())
    assert run(Limit(Filter(child, predicate), 10, 0), device).num_rows == 10
    assert child.frames_given < 10
    assert child.closed


def test_limit_zero_asks_for_nothing(device: Device[Any]) -> None:
    child = Forever(random_table([pa.int8()], 10).combine_chunks().to_batches()[0])
    assert run(Limit(child, 0, 0), device).num_rows == 0
    assert child.frames_given == 0


def test_an_error_closes_the_child(device: Device[Any]) -> None:
    child = Forever(pa.record_batch([pa.array([1, 1234], pa.int64())], ["a"]))
    failing = project(child, [Cast(ColumnRef(0, "a", pa.int64()), pa.int8())])
    with pytest.raises(ExecutionError, match="1234"):
        run(failing, device)
    assert child.closed
