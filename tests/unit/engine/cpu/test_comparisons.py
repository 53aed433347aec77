"""Comparisons, IN and tests for null against DuckDB, on every type."""

from __future__ import annotations

from itertools import product

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery.data_types.names import type_name
from bamquery.plan.expressions import Call, ColumnRef, Literal
from tests.oracle import check, evaluate
from tests.selection.effort import spread
from tests.strategies import ALL_TYPES, PLAIN_TYPES, array, arrays, specials

OPERATORS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "is_distinct_from": "IS DISTINCT FROM",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
}


def reference(kind: pa.DataType, index: int = 0) -> ColumnRef:
    return ColumnRef(index, "abc"[index], kind)


def literals(values: list[object], kind: pa.DataType) -> tuple[Literal, ...]:
    return tuple(Literal(value) for value in array(values, kind))


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("function", OPERATORS)
def test_all_pairs(oracle: duckdb.DuckDBPyConnection, function: str, kind: pa.DataType) -> None:
    chosen = [*specials(kind), None]
    left, right = zip(*product(chosen, chosen), strict=True)
    call = Call(function, (reference(kind), reference(kind, 1)), pa.bool_())
    check(oracle, call, f"a {OPERATORS[function]} b", [array(left, kind), array(right, kind)])


@pytest.mark.parametrize("kind", PLAIN_TYPES, ids=type_name)
@pytest.mark.parametrize("function", OPERATORS)
def test_with_constants(function: str, kind: pa.DataType) -> None:
    """A constant compares as a column of it, on either side."""
    chosen = [*specials(kind), None]
    values = array(chosen, kind)
    for constant in literals(chosen, kind):
        known = constant.value.is_valid
        other = pa.repeat(constant.value, len(chosen)) if known else pa.nulls(len(chosen), kind)
        for swapped in (False, True):
            both = (reference(kind, 1), reference(kind)) if swapped else (reference(kind), reference(kind, 1))
            alone = (constant, reference(kind)) if swapped else (reference(kind), constant)
            batch = pa.record_batch([values, other], ["a", "b"])
            expected = evaluate(Call(function, both, pa.bool_()), batch)
            assert evaluate(Call(function, alone, pa.bool_()), batch) == expected


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "with_null", "count"), spread(product(ALL_TYPES, [False, True], [1, 3, 12]), 5), ids=str
)
def test_in(oracle: duckdb.DuckDBPyConnection, kind: pa.DataType, count: int, with_null: bool) -> None:
    chosen = specials(kind)
    values = array([*chosen, None], kind)
    plain_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    for start in range(0, len(chosen), count):
        candidates = [*chosen[start : start + count], *([None] if with_null else [])]
        call = Call("in", (reference(kind), *literals(candidates, plain_kind)), pa.bool_())
        others = [
            pa.repeat(c, len(values)) if c.is_valid else pa.nulls(len(values), plain_kind)
            for c in array(candidates, plain_kind)
        ]
        names = ", ".join("bcdefghijklmnop"[: len(others)])
        check(oracle, call, f"a IN ({names})", [values, *others])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), function=st.sampled_from(sorted(OPERATORS)))
def test_random_values(oracle: duckdb.DuckDBPyConnection, data: st.DataObject, function: str) -> None:
    kind = data.draw(st.sampled_from(ALL_TYPES))
    columns = [data.draw(arrays(kind, size=12)) for _ in range(2)]
    call = Call(function, (reference(kind), reference(kind, 1)), pa.bool_())
    check(oracle, call, f"a {OPERATORS[function]} b", columns)


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize(("function", "sql"), [("is_null", "a IS NULL"), ("is_not_null", "a IS NOT NULL")])
def test_nulls(oracle: duckdb.DuckDBPyConnection, function: str, sql: str, kind: pa.DataType) -> None:
    call = Call(function, (reference(kind),), pa.bool_())
    check(oracle, call, sql, [array([*specials(kind), None], kind)])


def test_a_null_among_dictionary_values_is_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None], pa.large_string()))
    batch = pa.record_batch([column], ["a"])
    assert evaluate(Call("is_null", (reference(column.type),), pa.bool_()), batch) == [False, True, True]
    literal = Literal(pa.scalar("a", pa.large_string()))
    call = Call("equal", (reference(column.type), literal), pa.bool_())
    assert evaluate(call, batch) == [True, None, None]
