"""Random queries of several tables: BamQuery's answers are DuckDB's, and every rule keeps them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

import bamquery
from bamquery.connection.connection import Connection
from bamquery.plan.optimizer import Rule
from bamquery.plan.rules.order_joins import order_joins
from bamquery.plan.rules.prune_columns import prune_columns
from bamquery.plan.rules.push_down_predicates import push_down_predicates
from bamquery.plan.rules.simplify_joins import simplify_joins
from tests.oracle import connect
from tests.selection.effort import effort
from tests.sql.randomized import test_queries as shared
from tests.sql.randomized.joins import joins, set_operations, subqueries
from tests.sql.randomized.queries import table_of, tables

JOIN_RULES = (simplify_joins, push_down_predicates, order_joins, prune_columns)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def database(device_name: str) -> Iterator[Connection]:
    with bamquery.connect(threads=2, device=device_name) as connection:
        yield connection


@pytest.mark.long
@settings(max_examples=effort(30, 1000), derandomize=True, deadline=None, suppress_health_check=shared.QUIET)
@given(tables(), joins() | subqueries() | set_operations())
def test_answers(oracle: duckdb.DuckDBPyConnection, database: Connection, table: pa.Table, sql: str) -> None:
    shared._check(oracle, database, table, sql)


@pytest.fixture(scope="module")
def filled(database: Connection) -> Connection:
    """The database with a table of some rows, for queries that DuckDB is not asked."""
    database.load("r", table_of(rows=40, seed=7), if_exists="replace")
    return database


@pytest.mark.parametrize("rule", JOIN_RULES, ids=lambda rule: rule.__name__)
@pytest.mark.long
@settings(max_examples=effort(10, 300), derandomize=True, deadline=None, suppress_health_check=shared.QUIET)
@given(sql=joins() | subqueries() | set_operations())
def test_rules_keep_answers(filled: Connection, rule: Rule, sql: str) -> None:
    shared._check_rule(filled, rule, sql)
