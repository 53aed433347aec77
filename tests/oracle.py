"""DuckDB as the oracle: the same question asked of both, row by row where one of them refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import Expression
from tests.values import plain, same

__all__ = ["ERROR", "ask", "check", "connect", "evaluate", "plain", "same", "tabulate"]

ERROR = "<error>"


def connect() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB whose divisions by zero are null and whose zone is UTC."""
    connection = duckdb.connect()
    connection.execute("SET error_on_division_by_zero = false; SET threads = 1; SET TimeZone = 'UTC'")
    return connection


def ask(connection: duckdb.DuckDBPyConnection, sql: str, **tables: pa.Table) -> pa.Table:
    """The answer to a query over tables by name."""
    for name, table in tables.items():
        connection.register(name, table)
    return connection.sql(sql).to_arrow_table()


def evaluate(expression: Expression, batch: pa.RecordBatch) -> list[Any]:
    """The expression's values on the CPU device, ERROR for rows on which it raises."""
    device = CpuDevice()
    try:
        column = device.evaluate([expression], batch).column(0)
        assert column.type == expression.type
        return plain(column)
    except ExecutionError:
        if batch.num_rows == 1:
            return [ERROR]
        return [value for i in range(batch.num_rows) for value in evaluate(expression, batch.slice(i, 1))]


def check(
    connection: duckdb.DuckDBPyConnection,
    expression: Expression,
    sql: str,
    columns: Sequence[pa.Array],
    tolerance: float = 0.0,
) -> None:
    """Assert that the expression over `columns` is DuckDB's `sql` over columns a, b, c: values and errors."""
    names = [chr(ord("a") + i) for i in range(len(columns))]
    batch = pa.RecordBatch.from_arrays(list(columns), names)
    if not batch.num_rows:
        assert evaluate(expression, batch) == []
        return
    table = pa.Table.from_batches([batch]).append_column("row", pa.array(range(batch.num_rows)))
    ours = evaluate(expression, batch)
    theirs = plain(ask(connection, f"SELECT TRY({sql}) FROM t ORDER BY row", t=table).column(0))
    for row, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        given = [plain(value)[0] for value in batch.slice(row, 1).columns]
        if mine == ERROR:
            assert other is None, f"{sql} of {given}: we fail, DuckDB gives {other!r}"
        else:
            assert same(mine, other, tolerance), f"{sql} of {given}: {mine!r}, DuckDB gives {other!r}"
    failing = [row for row, value in enumerate(ours) if value == ERROR]
    fine = pa.array([value != ERROR for value in ours])
    ask(connection, f"SELECT {sql} FROM t ORDER BY row", t=table.filter(fine))
    for row in failing[:3]:
        with pytest.raises(duckdb.Error):
            ask(connection, f"SELECT {sql} FROM t", t=table.slice(row, 1))


def tabulate(columns: Sequence[pa.Array]) -> pa.Table:
    """Columns a, b, c, ... and `row`, their position."""
    names = [chr(ord("a") + i) for i in range(len(columns))]
    rows = pa.array(range(len(columns[0])), pa.int64())
    return pa.table([*columns, rows], names=[*names, "row"])
