"""Types of expressions are DuckDB's: every operator over every pair of types, literals, functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pytest

from bamquery.data_types.names import type_name
from bamquery.errors import SqlError
from tests.plans import EVERY_TYPE, plan_of

EVERY = EVERY_TYPE.schema.names
COLUMNS = [
    *("c_bool", "c_i8", "c_i32", "c_i64", "c_u16", "c_u64", "c_f32", "c_f64", "c_dec4", "c_dec38"),
    *("c_huge", "c_str", "c_blob", "c_date", "c_time", "c_ts", "c_ts_ns", "c_tz"),
]
"""Those that differ most; every pair of types there is takes a minute."""
NUMBERS = ["1", "200", "-1", "3000000000", "9223372036854775808", "1.5", ".25", "1e3", "TRUE"]

SPELLED = {"HUGEINT": "DECIMAL(38,0)", '"NULL"': "INTEGER"}
"""HUGEINT is kept as DECIMAL(38,0), and a column that is only NULL as INTEGER."""


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        columns = ", ".join(
            f"{field.name} {'HUGEINT' if field.name == 'c_huge' else type_name(field.type)}"
            for field in EVERY_TYPE.schema
        )
        connection.execute(f"CREATE TABLE types ({columns})")
        yield connection


def _theirs(oracle: duckdb.DuckDBPyConnection, expression: str) -> str | None:
    try:
        (row,) = oracle.execute(f"DESCRIBE SELECT {expression} FROM types").fetchall()
    except duckdb.Error:
        return None
    return SPELLED.get(row[1], row[1])


def _ours(expression: str) -> str | None:
    try:
        (field,) = plan_of(f"SELECT {expression} FROM types").fields
    except SqlError:
        return None
    return type_name(field.type)


def _compare(
    oracle: duckdb.DuckDBPyConnection, expressions: Sequence[str], unsupported: Sequence[str] = ()
) -> None:
    """Assert that we have DuckDB's type for what it has, but for the types that are not supported."""
    wrong = []
    known = 0
    for expression in expressions:
        ours, theirs = _ours(expression), _theirs(oracle, expression)
        known += ours is not None
        if ours != theirs and not (ours is None and theirs in unsupported):
            wrong.append(f"{expression}: {ours}, DuckDB {theirs}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(expressions)}", *wrong])
    assert known, "nothing was compared"


def _pairs(shape: str, columns: Sequence[str]) -> list[str]:
    return [shape.format(a=a, b=b) for a in columns for b in columns]


every_pair = pytest.mark.parametrize("columns", [COLUMNS, pytest.param(EVERY, marks=pytest.mark.slow)])


@pytest.mark.parametrize("operator", ["*", "/", "//", "%", "**"])
@every_pair
def test_arithmetic(oracle: duckdb.DuckDBPyConnection, columns: list[str], operator: str) -> None:
    _compare(oracle, _pairs(f"{{a}} {operator} {{b}}", columns))


@every_pair
def test_sums(oracle: duckdb.DuckDBPyConnection, columns: list[str]) -> None:
    pairs = [pair for pair in _pairs("{a} + {b}", columns) if {"c_date", "c_time"} - set(pair.split())]
    _compare(oracle, pairs)


@every_pair
def test_differences(oracle: duckdb.DuckDBPyConnection, columns: list[str]) -> None:
    _compare(oracle, _pairs("{a} - {b}", columns), unsupported=["INTERVAL"])


@every_pair
def test_concatenation(oracle: duckdb.DuckDBPyConnection, columns: list[str]) -> None:
    _compare(oracle, _pairs("{a} || {b}", columns), unsupported=["BLOB"])


@pytest.mark.parametrize("operator", ["<", ">="])
@every_pair
def test_comparisons(oracle: duckdb.DuckDBPyConnection, columns: list[str], operator: str) -> None:
    _compare(oracle, _pairs(f"{{a}} {operator} {{b}}", columns))


@pytest.mark.parametrize(
    "shape", ["COALESCE({a}, {b})", "CASE WHEN c_bool THEN {a} ELSE {b} END", "if(c_bool, {a}, {b})"]
)
@every_pair
def test_common_types(oracle: duckdb.DuckDBPyConnection, columns: list[str], shape: str) -> None:
    _compare(oracle, _pairs(shape, columns))


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "<"])
def test_numbers_in_the_text(oracle: duckdb.DuckDBPyConnection, operator: str) -> None:
    pairs = [f"{a} {operator} {b}" for a in COLUMNS for b in NUMBERS]
    _compare(oracle, pairs + [f"{b} {operator} {a}" for a in COLUMNS for b in NUMBERS])


@pytest.mark.parametrize("shape", ["COALESCE({a}, {b})", "{a} BETWEEN {b} AND {b}"])
def test_numbers_in_lists(oracle: duckdb.DuckDBPyConnection, shape: str) -> None:
    _compare(oracle, [shape.format(a=a, b=b) for a in COLUMNS for b in [*NUMBERS, "NULL"]])


@pytest.mark.parametrize("operator", ["*", "/", "//", "%", "<"])
def test_null(oracle: duckdb.DuckDBPyConnection, operator: str) -> None:
    _compare(oracle, [f"{a} {operator} NULL" for a in COLUMNS] + [f"NULL {operator} {a}" for a in COLUMNS])


TYPED_NULLS = [
    "NULL::INTEGER",
    "-(NULL)",
    "NULL::VARCHAR",
    "NULL::DATE",
    "NULL::DECIMAL(5,2)",
    "nullif(1, 1)",
]


@pytest.mark.parametrize("shape", ["COALESCE({a}, {b})", "{a} < {b}", "{a} * {b}"])
def test_nulls_of_a_type(oracle: duckdb.DuckDBPyConnection, shape: str) -> None:
    _compare(oracle, [shape.format(a=a, b=b) for a in COLUMNS for b in TYPED_NULLS])


@pytest.mark.parametrize(
    "function",
    [
        *("abs", "floor", "ceil", "ceiling", "round", "sqrt", "ln", "exp", "-", "lower", "length", "trim"),
        *("year", "hour", "dayofweek", "count", "sum", "min", "max", "stddev", "stddev_pop", "variance"),
        *("sign", "trunc", "cbrt", "even", "isnan", "isinf", "~", "reverse", "strlen", "md5", "unicode"),
        *("last_day", "dayname", "century", "yearweek", "julian", "epoch_us", "millisecond", "greatest"),
        *("to_days", "to_seconds", "age", "factorial", "chr", "to_timestamp", "make_date", "typeof"),
        *("var_pop", "bool_and", "bool_or", "any_value", "first", "last", "count_if"),
    ],
)
def test_functions(oracle: duckdb.DuckDBPyConnection, function: str) -> None:
    calls = [f"{function}({column})" for column in [*COLUMNS, "NULL"]]
    _compare(oracle, calls)


def test_epoch(oracle: duckdb.DuckDBPyConnection) -> None:
    _compare(oracle, [f"epoch({name})" for name in COLUMNS if not name.startswith("c_time")])


@pytest.mark.parametrize("function", ["avg", "mean"])
def test_mean(oracle: duckdb.DuckDBPyConnection, function: str) -> None:
    times = ["TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"]
    _compare(oracle, [f"{function}({column})" for column in [*COLUMNS, "NULL"]], unsupported=times)


@pytest.mark.parametrize("digits", [0, 1, 3, 12, -1, -5])
def test_round(oracle: duckdb.DuckDBPyConnection, digits: int) -> None:
    numbers = [name for name in COLUMNS if name.startswith(("c_i", "c_u", "c_f", "c_dec", "c_huge"))]
    _compare(oracle, [f"round({name}, {digits})" for name in numbers])


@pytest.mark.parametrize("unit", ["year", "month", "week", "day", "hour", "second", "quarter"])
def test_date_functions(oracle: duckdb.DuckDBPyConnection, unit: str) -> None:
    calls = [
        shape.format(unit, column)
        for shape in ("date_trunc('{}', {})", "date_part('{}', {})")
        for column in COLUMNS
    ]
    _compare(oracle, calls)


def test_casts(oracle: duckdb.DuckDBPyConnection) -> None:
    """DuckDB casts where we do, and not where we do not."""
    oracle.execute(
        "CREATE TABLE row AS SELECT true AS c_bool, 1 AS c_i32, 1.5 AS c_dec4, 1.5e0 AS c_f64, '1' AS c_str, "
        "'1'::BLOB AS c_blob, DATE '2024-01-01' AS c_date, TIME '10:00:00' AS c_time, "
        "TIMESTAMP '2024-01-01' AS c_ts, TIMESTAMPTZ '2024-01-01' AS c_tz"
    )
    columns = [row[0] for row in oracle.execute("DESCRIBE row").fetchall()]
    for column in columns:
        for target in columns:
            cast = f"CAST({column} AS {type_name(EVERY_TYPE.schema.field(target).type)})"
            try:
                oracle.execute(f"SELECT {cast} FROM row").fetchall()
                exists = True
            except duckdb.Error as error:
                exists = "Unimplemented" not in str(error)
            # DuckDB casts anything to BLOB, by way of its text.
            assert exists == (_ours(cast) is not None) or target == "c_blob", cast
