"""What the tests of the CPU device share."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.oracle import connect


@pytest.fixture(scope="session")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB, the dialect's reference."""
    with connect() as connection:
        yield connection
