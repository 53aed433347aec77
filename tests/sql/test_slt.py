"""Every .slt file against BamQuery and against DuckDB: the answers written down are DuckDB's.

With BAMQUERY_UPDATE_SLT set in the environment, answers are written anew, from DuckDB where it takes part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import BamQueryError, UnsupportedError
from tests.oracle import connect
from tests.sql import script
from tests.sql.script import Record

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.rglob("*.slt"))


def _refusal(database: Connection, record: Record) -> str:
    """Why the device does not do it, "" if it does; what every device refuses does not count."""
    try:
        database.sql(record.sql).explain()
    except UnsupportedError as error:
        return str(error) if "the cuda device" in str(error) else ""
    except BamQueryError:
        pass
    return ""


def _run_ok(database: Connection, record: Record, device_name: str) -> str:
    """Run a statement that prepares others; on the CPU where the device refuses it, and then why it does."""
    try:
        database.sql(record.sql)
    except UnsupportedError as error:
        if device_name == "cpu" or "the cuda device" not in str(error):
            raise
        database.sql("SET device = 'cpu'")
        database.sql(record.sql)
        database.sql(f"SET device = '{device_name}'")
        return str(error)
    return ""


def _run(record: Record, run: Callable[[str], pa.Table | None], error: type[Exception]) -> list[str]:
    """The answer in the file's form: rows, or the lines of an error."""
    if record.kind == "error":
        with pytest.raises(error) as caught:
            run(record.sql)
        return str(caught.value).splitlines()
    table = run(record.sql)
    return script.render_table(table) if record.kind == "query" and table is not None else []


@pytest.mark.whole
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_bamquery(path: Path, device_name: str, record_property: Callable[[str, object], None]) -> None:
    records = script.read_records(path)
    if os.environ.get("BAMQUERY_UPDATE_SLT"):
        _update(path, records)
    with bamquery.connect(device=device_name) as database:
        for record in records:
            place = f"{path.name}:{record.line}: {record.sql}"
            if record.kind == "ok":
                refusal = _run_ok(database, record, device_name)
            else:
                refusal = _refusal(database, record) if device_name != "cpu" else ""
            if refusal:
                record_property("refused", f"{place}: {refusal}")
            if refusal or record.kind == "ok":
                continue
            given = _run(record, lambda sql: database.sql(sql).to_arrow(), BamQueryError)
            if record.kind == "error":
                message = "\n".join(given)
                assert all(words in message for words in record.expected), f"{place}\n{message}"
            else:
                assert script.answers_agree(given, record.expected, ordered=record.ordered), "\n".join(
                    [place, *given]
                )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_duckdb(path: Path) -> None:
    with connect() as oracle:
        for record in script.read_records(path):
            if not record.duckdb:
                continue
            place = f"{path.name}:{record.line}: {record.sql}"
            given = _run(record, lambda sql: _ask(oracle, sql), duckdb.Error)
            if record.kind == "query":
                assert script.answers_agree(given, record.expected, ordered=record.ordered), "\n".join(
                    [place, *given]
                )


def _ask(oracle: duckdb.DuckDBPyConnection, sql: str) -> pa.Table | None:
    if "$" in sql:  # sql() finds no variables; it is what is quick, execute() warns
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            return oracle.execute(sql).to_arrow_table()
    answer = oracle.sql(sql)
    return None if answer is None else answer.to_arrow_table()


def _update(path: Path, records: list[Record]) -> None:
    with connect() as oracle, bamquery.connect() as database:
        for record in records:
            ours: list[str] = []
            theirs: list[str] = []
            if record.kind != "query" or not record.duckdb:
                ours = _run(record, lambda sql: database.sql(sql).to_arrow(), BamQueryError)
            if record.duckdb:
                theirs = _run(record, lambda sql: _ask(oracle, sql), duckdb.Error)
            if record.kind == "error":
                record.expected = record.expected or ours[:1]
            elif record.kind == "query":
                record.expected = theirs if record.duckdb else ours
    script.write(path, records)
