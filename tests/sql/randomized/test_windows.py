"""Random calls over windows, groups and grouping sets: BamQuery's answers are DuckDB's."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from bamquery.connection.connection import Connection
from tests.selection.effort import effort
from tests.sql.randomized.test_queries import QUIET, _check, database, oracle
from tests.sql.randomized.windows import group_queries, numbered_tables, window_queries

__all__ = ["database", "oracle"]


@pytest.mark.long
@settings(max_examples=effort(20, 1000), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(numbered_tables(), window_queries())
def test_windows(oracle: duckdb.DuckDBPyConnection, database: Connection, table: pa.Table, sql: str) -> None:
    _check(oracle, database, table, sql)


@pytest.mark.long
@settings(max_examples=effort(20, 1000), derandomize=True, deadline=None, suppress_health_check=QUIET)
@given(numbered_tables(), group_queries())
def test_groups(oracle: duckdb.DuckDBPyConnection, database: Connection, table: pa.Table, sql: str) -> None:
    _check(oracle, database, table, sql)
