"""Random queries over random tables: BamQuery's answers are DuckDB's, optimised or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

import bamquery
from bamquery.connection.connection import Connection
from bamquery.data_types.names import type_name
from bamquery.errors import ExecutionError, UnsupportedError
from bamquery.plan.nodes import Plan
from bamquery.plan.optimizer import RULES, Rule
from bamquery.plan.rules.factor_conditions import factor_conditions
from bamquery.plan.rules.fold_constants import fold_constants
from bamquery.plan.rules.measure_durations import measure_durations
from bamquery.plan.rules.merge_equalities import merge_equalities
from bamquery.plan.rules.narrow_comparisons import narrow_comparisons
from bamquery.plan.rules.simplify_logic import simplify_logic
from tests.oracle import connect, plain, same
from tests.selection.effort import effort
from tests.sql.randomized.queries import queries, simple_conditions, table_of, tables

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def database(device_name: str) -> Iterator[Connection]:
    with bamquery.connect(threads=2, device=device_name) as connection:
        yield connection


def _theirs(oracle: duckdb.DuckDBPyConnection, table: pa.Table, sql: str) -> pa.Table | None:
    """DuckDB's answer, None where it fails on a value or has no such operator."""
    decoded = table.set_column(
        table.column_names.index("g"), "g", table["g"].combine_chunks().dictionary_decode()
    )
    oracle.register("given", decoded)
    oracle.execute("CREATE OR REPLACE TABLE r AS SELECT * FROM given")
    try:
        return oracle.sql(sql).to_arrow_table()
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.BinderException):
        return None


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(plain(column) for column in table.columns), strict=True))


def _key(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Sorts rows of unknown order; near floats sort alike, and so do both zeros."""
    return tuple(f"{value + 0.0:.6g}" if isinstance(value, float) else str(value) for value in row)


def _compare(sql: str, ours: pa.Table, theirs: pa.Table) -> None:
    kinds = [pa.int32() if pa.types.is_null(field.type) else field.type for field in theirs.schema]
    assert [type_name(f.type) for f in ours.schema] == [type_name(kind) for kind in kinds], sql
    mine, other = _rows(ours), _rows(theirs)
    if "ORDER BY" not in sql:
        mine, other = sorted(mine, key=_key), sorted(other, key=_key)
    assert len(mine) == len(other), sql
    for one, two in zip(mine, other, strict=True):
        assert all(same(a, b, 1e-9) for a, b in zip(one, two, strict=True)), f"{sql}\n{one}\n{two}"


def refused_by_gpu(database: Connection, sql: str) -> bool:
    """Whether it is a GPU that does not do this; see `bamquery.engine.cuda.capabilities`."""
    try:
        database.sql(sql).explain()
    except UnsupportedError as error:
        return "the cuda device" in str(error)
    except ExecutionError:
        pass
    return False


def _check(oracle: duckdb.DuckDBPyConnection, database: Connection, table: pa.Table, sql: str) -> None:
    theirs = _theirs(oracle, table, sql)
    assume(theirs is not None)
    assert theirs is not None
    database.load("r", table, if_exists="replace")
    if refused_by_gpu(database, sql):
        return
    try:
        ours = database.sql(sql).to_arrow()
    except ExecutionError:
        # DuckDB makes k = -100 of 100 + k = 0, which does not overflow. As written it must fail there too.
        oracle.execute("PRAGMA disable_optimizer")
        try:
            assert _theirs(oracle, table, sql) is None, sql
        finally:
            oracle.execute("PRAGMA enable_optimizer")
        return
    _compare(sql, ours, theirs)


@pytest.mark.long
@settings(max_examples=effort(40, 2000), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(tables(), queries() | simple_conditions())
def test_answers(oracle: duckdb.DuckDBPyConnection, database: Connection, table: pa.Table, sql: str) -> None:
    _check(oracle, database, table, sql)


def _answer(database: Connection, sql: str, *, plan: Any) -> pa.Table | None:
    """The answer with `plan` in the optimiser's place, None where it fails on a value."""
    database.set("plan_cache", False)
    with mock.patch("bamquery.session.optimized_plans.optimize", plan):
        try:
            return database.sql(sql).to_arrow()
        except (ExecutionError, UnsupportedError):
            return None
        finally:
            database.set("plan_cache", True)


@pytest.fixture(scope="module")
def filled(database: Connection) -> Connection:
    """The database with one table of many rows, for queries that DuckDB is not asked."""
    database.load("r", table_of(rows=120, seed=7), if_exists="replace")
    return database


def _check_rule(database: Connection, rule: Rule, sql: str) -> None:
    """The plan that the rule gives has the answer of the plan it was given; so has it after itself."""

    def as_bound(plan: Plan) -> Plan:
        return plan

    expected = _answer(database, sql, plan=as_bound)
    assume(expected is not None)
    assert expected is not None
    for rewritten in (rule, lambda plan: rule(rule(plan))):
        found = _answer(database, sql, plan=rewritten)
        assert found is not None, sql
        _compare(sql, found, expected)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.long
@settings(max_examples=effort(10, 300), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(sql=queries())
def test_rules_keep_answers(filled: Connection, rule: Rule, sql: str) -> None:
    _check_rule(filled, rule, sql)


@pytest.mark.parametrize(
    "rule",
    [
        fold_constants,
        simplify_logic,
        narrow_comparisons,
        factor_conditions,
        merge_equalities,
        measure_durations,
    ],
    ids=lambda rule: rule.__name__,
)
@pytest.mark.long
@settings(max_examples=effort(10, 300), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(sql=simple_conditions())
def test_rules_keep_conditions(filled: Connection, rule: Rule, sql: str) -> None:
    _check_rule(filled, rule, sql)
