"""GROUP BY and aggregates on every device against DuckDB."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate import group_states
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.aggregate.distinct_aggregate import DistinctAggregate
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.base.operator import Operator
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall, Call, Expression, Literal
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, assert_same, random_column, random_table, reference, run
from tests.oracle import ask, plain, same
from tests.selection.effort import spread
from tests.strategies import ALL_TYPES, CHUNK_SIZES, DECIMALS, FLOATS, INTEGERS, TEMPORALS, scaled

HUGEINT = pa.decimal128(38, 0)
ROWS = 4300
"""One round of the chunk sizes, and a bit."""


def result_type(function: str, kind: pa.DataType) -> pa.DataType:
    """As the binder types it."""
    if function in ("count", "count_star"):
        return pa.int64()
    if function == "sum":
        if pa.types.is_floating(kind):
            return pa.float64()
        return pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else HUGEINT
    if function in ("avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"):
        return pa.float64()
    return kind


def aggregate(
    child: Rows, keys: list[Expression], calls: list[AggregateCall], names: list[str] | None = None
) -> Operator[Any]:
    kinds = [key.type for key in keys] + [call.type for call in calls]
    fields = tuple(Field(f"c{i}", kind) for i, kind in enumerate(kinds))
    operator = DistinctAggregate if any(call.distinct for call in calls) else Aggregate
    return operator(child, keys, calls, fields)


def call(function: str, argument: Expression | None = None, **more: Any) -> AggregateCall:
    arguments = () if argument is None else (argument,)
    kind = result_type(function, argument.type if argument is not None else pa.null())
    return AggregateCall(function, arguments, kind, **more)


def shown(one: AggregateCall) -> str:
    """The call in SQL; first and last in the rows' order."""
    if one.function == "count_star":
        text = "count(*)"
    else:
        argument = one.arguments[0].name + (" ORDER BY row" if one.function in ("first", "last") else "")
        text = f"{one.function}({'DISTINCT ' if one.distinct else ''}{argument})"
    return f"{text} FILTER (WHERE f)" if one.filter is not None else text


def check(
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    table: pa.Table,
    keys: list[str],
    calls: list[AggregateCall],
    *,
    tolerance: float = 0.0,
) -> None:
    """The groups in order of first appearance."""
    operator = aggregate(Rows(table), [reference(table, key) for key in keys], calls)
    columns = ", ".join([*keys, *(shown(one) for one in calls)])
    sql = f"SELECT {columns} FROM t"
    if keys:
        sql += f" GROUP BY {', '.join(keys)} ORDER BY min(row)"
    assert_same(run(operator, device), ask(oracle, sql, t=table), tolerance)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_keys_of_every_type(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType
) -> None:
    table = random_table([kind, pa.int32()], ROWS)
    argument = reference(table, "b")
    check(oracle, device, table, ["a"], [call("count_star"), call("sum", argument), call("min", argument)])


def test_several_keys(oracle: duckdb.DuckDBPyConnection, device: Device[Any]) -> None:
    kinds = [pa.float64(), pa.large_string(), pa.bool_(), pa.decimal128(18, 3), pa.int64()]
    table = random_table(kinds, ROWS)
    check(
        oracle, device, table, ["a", "b", "c", "d"], [call("count_star"), call("sum", reference(table, "e"))]
    )


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["all", "by key"])
def test_functions_of_every_type(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType, keys: list[str]
) -> None:
    table = with_key_and_filter(random_column(kind, ROWS, 1))
    argument = reference(table, "a")
    calls = [call(name, argument) for name in ("count", "min", "max", "first", "last")]
    calls += [call("count", argument, distinct=True), call("first", argument, filter=reference(table, "f"))]
    if kind == pa.bool_():
        calls += [call("bool_and", argument), call("bool_or", argument)]
    check(oracle, device, table, keys, calls)


def with_key_and_filter(column: pa.Array) -> pa.Table:
    """Columns a, k (few values), f (booleans), row; one key has nulls only, one passes no filter."""
    rows = len(column)
    generator = random.Random(5)
    keys = generator.choices(range(20), k=rows)
    filters: list[bool | None] = generator.choices([True, False, None], k=rows)
    filters = [False if key == 3 else value for key, value in zip(keys, filters, strict=True)]
    empty = pa.array([key == 7 for key in keys])
    column = pa.compute.if_else(empty, pa.scalar(None, column.type), column) if rows else column
    positions = pa.array(range(rows), pa.int64())
    return pa.table(
        [column, pa.array(keys, pa.int8()), pa.array(filters, pa.bool_()), positions], ["a", "k", "f", "row"]
    )


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, *DECIMALS], ids=str)
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["all", "by key"])
def test_sums_and_means(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType, keys: list[str]
) -> None:
    column = random_column(kind, ROWS, 2, moderate(kind))
    table = with_key_and_filter(column)
    argument, filtered = reference(table, "a"), reference(table, "f")
    exact = not pa.types.is_floating(kind)
    calls = [
        call("sum", argument),
        call("sum", argument, filter=filtered),
        call("sum", argument, distinct=True),
    ]
    check(oracle, device, table, keys, calls, tolerance=0.0 if exact else 1e-9)
    means = [
        call("avg", argument),
        call("avg", argument, distinct=True),
        call("avg", argument, filter=filtered),
    ]
    check(oracle, device, table, keys, means, tolerance=1e-9)


def moderate(kind: pa.DataType) -> list[Any]:
    """Values whose sums DuckDB's types hold, extremes included where they cannot overflow."""
    if pa.types.is_decimal(kind):
        reach = 10 ** min(kind.precision, 33) - 1
        return [scaled(n, kind.scale) for n in (0, 1, -1, 7, reach, -reach, reach // 3)]
    if pa.types.is_floating(kind):
        return [0.0, -0.0, 1.0, -2.5, 0.1, 1e-5, 1234.5678, 1e10, -1e10, 3e5]
    low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
    return [0, 1, 3, 100, low, low + 2**kind.bit_width - 1]


@pytest.mark.parametrize("kind", [pa.int32(), pa.float32(), pa.float64(), pa.decimal128(18, 3)], ids=str)
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["all", "by key"])
def test_variances(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType, keys: list[str]
) -> None:
    values = [Decimal(n) for n in (1, 2, 5)] if pa.types.is_decimal(kind) else [1, 2, 5, -7, 1000]
    table = with_key_and_filter(random_column(kind, ROWS, 3, values))
    names = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
    check(oracle, device, table, keys, [call(name, reference(table, "a")) for name in names], tolerance=1e-9)


def test_variance_far_from_zero(device: Device[Any]) -> None:
    """Squares of such values have no digits left for a variance of 2/3."""
    table = pa.table({"a": pa.array([1e9 + n % 3 for n in range(3 * 1025)])})
    operator = aggregate(Rows(table), [], [call("var_pop", reference(table, "a"))])
    assert run(operator, device).column(0)[0].as_py() == pytest.approx(2 / 3, rel=1e-12)


def test_nan_and_infinity(oracle: duckdb.DuckDBPyConnection, device: Device[Any]) -> None:
    nan, infinity = float("nan"), float("inf")
    groups = [
        [nan],
        [1.0, nan],
        [infinity, 1.0],
        [infinity, -infinity],
        [-infinity],
        [1.0, 2.0],
        [None],
        [nan, None],
    ]
    keys = [i for i, values in enumerate(groups) for _ in values]
    values = [value for group in groups for value in group]
    table = pa.table({"a": values, "k": keys, "row": pa.array(range(len(values)), pa.int64())})
    names = ("sum", "avg", "min", "max", "count", "var_samp", "any_value")
    check(oracle, device, table, ["k"], [call(name, reference(table, "a")) for name in names])


@pytest.mark.parametrize("kind", [*INTEGERS, *TEMPORALS[:2], pa.large_string()], ids=str)
def test_any_value_is_one_of_the_group(device: Device[Any], kind: pa.DataType) -> None:
    table = with_key_and_filter(random_column(kind, ROWS, 4))
    operator = aggregate(Rows(table), [reference(table, "k")], [call("any_value", reference(table, "a"))])
    keys, values = (plain(table.column(name)) for name in ("k", "a"))
    for key, value in zip(*(plain(column) for column in run(operator, device).columns), strict=True):
        group = [v for k, v in zip(keys, values, strict=True) if k == key and v is not None]
        assert value in group if group else value is None


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["all", "by key"])
def test_no_rows(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], kind: pa.DataType, keys: list[str]
) -> None:
    table = with_key_and_filter(random_column(kind, 0, 0))
    argument = reference(table, "a")
    calls = [call(name, argument) for name in ("count", "min", "max", "first")]
    check(oracle, device, table, keys, [call("count_star"), *calls, call("count", argument, distinct=True)])


def test_keys_without_aggregates_are_the_distinct_rows(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any]
) -> None:
    check(oracle, device, random_table([pa.float64(), pa.bool_()], ROWS), ["a", "b"], [])


@pytest.mark.parametrize("sizes", [[size, 1025] for size in CHUNK_SIZES], ids=str)
def test_chunks_do_not_show(oracle: duckdb.DuckDBPyConnection, device: Device[Any], sizes: list[int]) -> None:
    table = random_table([pa.int16(), pa.float64(), pa.large_string()], 2100)
    calls = [
        call("sum", reference(table, "a")),
        call("max", reference(table, "b")),
        call("last", reference(table, "c")),
    ]
    operator = aggregate(Rows(table, sizes), [reference(table, "a")], calls)
    columns = ", ".join(["a", *(shown(one) for one in calls)])
    assert_same(
        run(operator, device), ask(oracle, f"SELECT {columns} FROM t GROUP BY a ORDER BY min(row)", t=table)
    )


def test_many_groups_are_merged_as_they_come(oracle: duckdb.DuckDBPyConnection, device: Device[Any]) -> None:
    """Every key of every chunk is new, then they all come again."""
    rows = 600_000
    table = pa.table(
        {"a": pa.array([i % 200_000 for i in range(rows)]), "row": pa.array(range(rows), pa.int64())}
    )
    operator = aggregate(
        Rows(table, [70_000]), [reference(table, "a")], [call("sum", reference(table, "row"))]
    )
    assert_same(
        run(operator, device), ask(oracle, "SELECT a, sum(row) FROM t GROUP BY a ORDER BY min(row)", t=table)
    )


SPLITS = [("_SPLIT_GROUPS", 10), ("_SPLIT_BYTES", 2_000)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "most", "of_them"),
    spread(((kind, *split) for kind in ALL_TYPES for split in SPLITS), 5),
    ids=str,
)
def test_groups_in_places(
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    kind: pa.DataType,
    most: str,
    of_them: int,
) -> None:
    """More groups, or bytes, than are merged at once: equal keys of all chunks must come together."""
    monkeypatch.setattr(group_states, most, of_them // device.task_size)
    monkeypatch.setattr(group_states, "_PENDING_GROUPS", 50 // device.task_size)
    monkeypatch.setattr(framing, "GATHERED_ROWS", 100 // device.task_size)
    if device.name != "cpu":  # where each step of a merge, however small, is a launch
        monkeypatch.setattr(group_states, "_PENDING_GROUPS", 500 // device.task_size)
        monkeypatch.setattr(framing, "GATHERED_ROWS", 500 // device.task_size)
    table = random_table([kind, pa.int32(), pa.large_string()], ROWS)
    a, b, c = (reference(table, name) for name in "abc")
    calls = [
        call("sum", b),
        call("last", c),
        call("var_pop", b),
        call("min", c),
        call("count", b, distinct=True),
    ]
    operator = aggregate(Rows(table), [a, c], calls)
    groups = run(operator, device)
    columns = ", ".join(shown(one) for one in calls)
    expected = ask(oracle, f"SELECT a, c, {columns} FROM t GROUP BY a, c ORDER BY min(row)", t=table)
    assert groups.num_rows == expected.num_rows
    order = [by_key(answer) for answer in (groups, expected)]
    assert order[0].keys() == order[1].keys()
    for key, values in order[0].items():
        pairs = zip(values, order[1][key], strict=True)
        assert all(same(mine, other, 1e-9) for mine, other in pairs), key


def by_key(table: pa.Table) -> dict[str, list[Any]]:
    """Rows by their first two columns; -0.0 and 0.0 are one key."""
    rows = list(zip(*(plain(column) for column in table.columns), strict=True))
    return {
        str([value + 0.0 if isinstance(value, float) else value for value in row[:2]]): row[2:]
        for row in rows
    }


def test_distinct_arguments_are_merged_as_they_come(device: Device[Any]) -> None:
    """Without keys there is one group, but its distinct values are many: they may not pile up."""
    values = pa.array([i % 100_000 for i in range(2_000_000)], pa.int64())
    table = pa.table({"a": values})
    operator = aggregate(Rows(table, [100_000]), [], [call("count", reference(table, "a"), distinct=True)])
    assert run(operator, device, memory_limit="16MB").column(0).to_pylist() == [100_000]


@pytest.mark.parametrize("most", [10**38 - 1, -(10**38) + 1])
def test_a_sum_of_too_many_digits_is_an_error(device: Device[Any], most: int) -> None:
    one = 1 if most > 0 else -1
    table = pa.table({"a": pa.array([Decimal(most), Decimal(one), None], HUGEINT)})
    with pytest.raises(ExecutionError, match=r"DECIMAL\(38,0\) overflow: a sum has more than 38 digits"):
        run(aggregate(Rows(table), [], [call("sum", reference(table, "a"))]), device)
    exact = pa.table({"a": pa.array([Decimal(most), Decimal(one), Decimal(-one)], HUGEINT)})
    assert (
        run(aggregate(Rows(exact), [], [call("sum", reference(exact, "a"))]), device).column(0)[0].as_py()
        == most
    )


def test_a_filter_spares_its_rows_from_errors(device: Device[Any]) -> None:
    table = pa.table({"a": pa.array([1, 127, 2], pa.int8()), "f": [True, False, True]})
    one = Literal(pa.scalar(1, pa.int8()))
    argument = Call("add", (reference(table, "a"), one), pa.int8())
    total = AggregateCall("sum", (argument,), HUGEINT, filter=reference(table, "f"))
    assert run(aggregate(Rows(table), [], [total]), device).column(0)[0].as_py() == 5
    with pytest.raises(ExecutionError, match="overflow"):
        run(aggregate(Rows(table), [], [call("sum", argument)]), device)
