"""A table that accepts a value can read it: extremes of every type, by every way in and both readers."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bamquery
from bamquery.connection.connection import Connection
from tests.sql.randomized.casts.compare import values_agree
from tests.sql.randomized.casts.extremes import TYPES, Value, column, extremes
from tests.values import plain

STORED = [name for name in TYPES if name != "INTERVAL"]
READERS = ("mapped", "direct")
APART = 1000
"""Rows of one way in are numbered from a multiple of this."""


def _values(name: str) -> list[Value]:
    """Those that texts of SQL and CSV can say, too."""
    kept = [value for value in extremes(name) if "\0" not in value.sql]
    return kept if name != "VARCHAR" else [*kept[:40], *kept[-40:]]


def _by_values(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    rows = ", ".join(f"({row}, {value.sql})" for row, value in enumerate(values, first))
    connection.sql(f"INSERT INTO t VALUES {rows}")


def _table(name: str, values: Sequence[Value], first: int) -> pa.Table:
    rows = pa.array(range(first, first + len(values)), pa.int32())
    return pa.table({"row": rows, "x": column(name, values)})


def _by_arrow(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    connection.register("given", _table(name, values, first))
    connection.sql("INSERT INTO t SELECT * FROM given")
    connection.unregister("given")


def _by_load(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    connection.load("t", _table(name, values, first), if_exists="append")


def _by_pandas(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    frame = _table(name, values, first).to_pandas(types_mapper=_pandas_type)
    connection.load("t", frame, if_exists="append")


def _pandas_type(kind: pa.DataType) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)


def _by_parquet(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    pq.write_table(_table(name, values, first), folder / "x.parquet")
    connection.sql(f"INSERT INTO t SELECT * FROM '{folder / 'x.parquet'}'")


def _by_file(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    rows = _table(name, values, first)
    with pa.OSFile(str(folder / "x.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    connection.load("t", folder / "x.arrow", if_exists="append")


def _texts(connection: Connection, name: str, values: Sequence[Value]) -> list[str | None]:
    """As SQL writes them."""
    connection.register("given", _table(name, values, 0))
    found = connection.sql("SELECT CAST(x AS VARCHAR) FROM given ORDER BY row").fetchall()
    connection.unregister("given")
    return [text for (text,) in found]


def _by_csv(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    texts = _texts(connection, name, values)
    with (folder / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([row, "<null>" if text is None else text] for row, text in enumerate(texts, first))
    connection.sql(f"COPY t FROM '{folder / 'x.csv'}' (HEADER false, NULLSTR '<null>')")


def _by_json(connection: Connection, name: str, values: Sequence[Value], first: int, folder: Path) -> None:
    texts = _texts(connection, name, values)
    lines = [json.dumps({"row": row, "x": text}) for row, text in enumerate(texts, first)]
    (folder / "x.json").write_text("\n".join(lines))
    query = f"SELECT * FROM read_json('{folder / 'x.json'}', columns = {{'row': 'INTEGER', 'x': '{name}'}})"
    connection.sql(f"INSERT INTO t {query}")


WAYS = {
    way.__name__.removeprefix("_"): way
    for way in (_by_values, _by_arrow, _by_load, _by_pandas, _by_parquet, _by_file, _by_csv, _by_json)
}


def _read(connection: Connection, sql: str) -> list[Any]:
    return plain(connection.sql(sql).to_arrow().column(0))


def _require_all(connection: Connection, name: str, values: Sequence[Value]) -> None:
    """Each value as often as there are ways in, whole and filtered, by the statistics' answers, too."""
    expected = plain(column(name, values))
    starts = [APART * place for place in range(len(WAYS))]
    found = dict(
        zip(*(plain(c) for c in connection.sql("SELECT row, x FROM t").to_arrow().columns), strict=True)
    )
    assert sorted(found) == [start + row for start in starts for row in range(len(values))]
    for place, way in enumerate(WAYS):
        for row, value in enumerate(values):
            assert values_agree(found[place * APART + row], expected[row]), f"{value} {way}"
    some = [row for row, value in enumerate(values) if not value.is_null][:: max(len(values) // 12, 1)]
    wanted = ", ".join(values[row].sql for row in some)
    kept = set(_read(connection, f"SELECT row FROM t WHERE x IN ({wanted})"))
    assert {start + row for start in starts for row in some} <= kept
    kept = set(_read(connection, f"SELECT row FROM t WHERE x = {values[some[0]].sql}"))
    assert {start + some[0] for start in starts} <= kept
    assert len(_read(connection, "SELECT row FROM t WHERE x IS NULL")) == len(WAYS)
    for word in ("min", "max"):
        answers = (
            _read(connection, f"SELECT {word}(x) FROM t"),
            _read(connection, f"SELECT {word}(x) FROM t WHERE row >= 0"),
        )
        assert values_agree(answers[0][0], answers[1][0]), word


@pytest.mark.parametrize("name", STORED)
def test_what_comes_in_can_be_read(name: str, tmp_path: Path) -> None:
    values = _values(name)
    with bamquery.connect(tmp_path / "db", threads=1, device="cpu") as connection:
        connection.sql(f"CREATE TABLE t (row INTEGER, x {name})")
        for place, write in enumerate(WAYS.values()):
            write(connection, name, values, place * APART, tmp_path)
        _require_all(connection, name, values)
    for reader in READERS:
        with bamquery.connect(tmp_path / "db", threads=1, device="cpu") as connection:
            connection.sql(f"SET reader = '{reader}'")
            _require_all(connection, name, values)
