"""case, coalesce, and, or: three-valued logic, and errors on the rows that count only."""

from __future__ import annotations

from itertools import product

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal
from tests.oracle import check, evaluate
from tests.strategies import ALL_TYPES, array, specials

BOOLEAN = pa.bool_()
INTEGER = pa.int64()
VARCHAR = pa.large_string()
NUMBER = ColumnRef(0, "a", INTEGER)
TEXT = ColumnRef(1, "b", VARCHAR)
AS_NUMBER = Cast(TEXT, INTEGER)  # fails where TEXT is no number


def literal(value: object, kind: pa.DataType = INTEGER) -> Literal:
    return Literal(pa.scalar(value, kind))


def call(function: str, *arguments: Expression, kind: pa.DataType = BOOLEAN) -> Call:
    return Call(function, arguments, kind)


TRUTHS = [True, False, None]


@pytest.mark.parametrize(("function", "sql"), [("and", "a AND b AND c"), ("or", "a OR b OR c")])
def test_three_valued_logic(oracle: duckdb.DuckDBPyConnection, function: str, sql: str) -> None:
    columns = [pa.array(values, BOOLEAN) for values in zip(*product(TRUTHS, repeat=3), strict=True)]
    references = [ColumnRef(i, "abc"[i], BOOLEAN) for i in range(3)]
    check(oracle, call(function, *references), sql, columns)
    for constant in TRUTHS:
        shown = "NULL" if constant is None else str(constant)
        two = call(function, literal(constant, BOOLEAN), references[0], references[1])
        check(oracle, two, sql.replace("a", shown, 1).replace("b", "a").replace("c", "b"), columns[:2])


def test_not(oracle: duckdb.DuckDBPyConnection) -> None:
    check(oracle, call("not", ColumnRef(0, "a", BOOLEAN)), "NOT a", [pa.array(TRUTHS)])


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_case_and_coalesce_of_every_type(oracle: duckdb.DuckDBPyConnection, kind: pa.DataType) -> None:
    chosen = [*specials(kind), None]
    size = len(chosen)
    columns = [array(chosen, kind), array(chosen[::-1], kind), pa.array((TRUTHS * size)[:size])]
    a, b, condition = ColumnRef(0, "a", kind), ColumnRef(1, "b", kind), ColumnRef(2, "c", BOOLEAN)
    check(oracle, call("case", condition, a, b, kind=kind), "CASE WHEN c THEN a ELSE b END", columns)
    check(oracle, call("coalesce", a, b, kind=kind), "coalesce(a, b)", columns)
    null = Literal(pa.scalar(None, kind.value_type if pa.types.is_dictionary(kind) else kind))
    two = call("case", condition, null, call("is_null", a), b, a, kind=kind)
    check(oracle, two, "CASE WHEN c THEN NULL WHEN a IS NULL THEN b ELSE a END", columns)


NUMBERS = pa.array([0, 1, None, 2, 0], INTEGER)
TEXTS = pa.array(["zero", "10", "none", "20", "0x"], VARCHAR)


def test_a_branch_fails_only_for_rows_that_take_it() -> None:
    batch = pa.record_batch([NUMBERS, TEXTS], ["a", "b"])
    positive = call("greater", NUMBER, literal(0))
    assert evaluate(call("case", positive, AS_NUMBER, literal(-1), kind=INTEGER), batch) == [
        -1,
        10,
        -1,
        20,
        -1,
    ]
    reached = call("case", call("is_null", NUMBER), literal(7), positive, AS_NUMBER, NUMBER, kind=INTEGER)
    assert evaluate(reached, batch) == [0, 10, 7, 20, 0]
    in_condition = call(
        "case", call("not", positive), literal(1), call("is_null", NUMBER), literal(2),
        call("greater", AS_NUMBER, literal(15)), literal(3), literal(4), kind=INTEGER,
    )  # fmt: skip
    assert evaluate(in_condition, batch) == [1, 4, 2, 3, 1]


def test_a_branch_that_no_row_takes_never_fails() -> None:
    batch = pa.record_batch([NUMBERS, TEXTS], ["a", "b"])
    never = call("greater", NUMBER, literal(99))
    failing = Cast(literal("x", VARCHAR), INTEGER)
    assert evaluate(call("case", never, failing, NUMBER, kind=INTEGER), batch) == [0, 1, None, 2, 0]


def test_a_branch_fails_for_a_row_that_takes_it() -> None:
    batch = pa.record_batch([NUMBERS, TEXTS], ["a", "b"])
    with pytest.raises(ExecutionError, match="'zero'"):
        CpuDevice().evaluate(
            [call("case", call("equal", NUMBER, literal(0)), AS_NUMBER, NUMBER, kind=INTEGER)], batch
        )


def test_coalesce_looks_no_further_than_it_must() -> None:
    texts = pa.array(["zero", "10", "30", "20", "0x"], VARCHAR)
    batch = pa.record_batch([NUMBERS, texts], ["a", "b"])
    assert evaluate(call("coalesce", NUMBER, AS_NUMBER, kind=INTEGER), batch) == [0, 1, 30, 2, 0]
    with pytest.raises(ExecutionError, match="'none'"):
        CpuDevice().evaluate(
            [call("coalesce", NUMBER, AS_NUMBER, kind=INTEGER)], pa.record_batch([NUMBERS, TEXTS], ["a", "b"])
        )


def test_and_or_look_no_further_than_they_must() -> None:
    batch = pa.record_batch([pa.array([0, 1, 0, 2, 0], INTEGER), TEXTS], ["a", "b"])
    large = call("greater", AS_NUMBER, literal(15))
    both = call("and", call("greater", NUMBER, literal(0)), large)
    assert evaluate(both, batch) == [False, False, False, True, False]
    either = call("or", call("equal", NUMBER, literal(0)), large)
    assert evaluate(either, batch) == [True, False, True, True, True]


def test_an_unknown_condition_does_not_excuse_an_error() -> None:
    batch = pa.record_batch([NUMBERS, TEXTS], ["a", "b"])
    with pytest.raises(ExecutionError, match="'none'"):
        CpuDevice().evaluate(
            [call("and", call("greater", NUMBER, literal(0)), call("greater", AS_NUMBER, literal(15)))], batch
        )


def test_no_rows_no_errors() -> None:
    batch = pa.record_batch([NUMBERS, TEXTS], ["a", "b"]).slice(0, 0)
    failing = Cast(literal("x", VARCHAR), INTEGER)
    assert evaluate(failing, batch) == []
