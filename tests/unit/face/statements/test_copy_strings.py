"""What COPY TO writes for each type: DuckDB's text to the byte, which reads back as the same values."""

from __future__ import annotations

from pathlib import Path

import pytest

import bamquery
from tests.oracle import connect

VALUES = [
    "TIMESTAMPTZ '2020-01-01 07:00:00.5'",
    "TIMESTAMP '2020-01-01 07:00:00.123'",
    "TIMESTAMP_NS '2020-01-01 07:00:00.123456789'",
    "TIMESTAMP '12024-01-01 07:00:00'",
    "DATE '0044-01-01 (BC)'",
    "TIME '01:02:03.0005'",
    "TIME '24:00:00'",
    "INTERVAL '1 year 2 months 3 days 04:05:06.5'",
    *(f"{text}::{kind}" for kind in ("FLOAT", "DOUBLE") for text in ("1e10", "1e-5", "1e15", "1e16", "-0.0")),
    *(f"{text}::DOUBLE" for text in ("1e-6", "1.5e-7", "9.999999999999999e20", "1e21", "1e100", "5e-324")),
    "0.0001::FLOAT",
    "3.4e38::FLOAT",
    "1e-45::FLOAT",
    "99999999999999999999999999999999999999::HUGEINT",
    "0.00000000012::DECIMAL(20,12)",
    "18446744073709551615::UBIGINT",
    "TRUE",
    "'#c'",
    "'a#'",
    "' a '",
    "''",
    "NULL",
    "'null'",
    "'say \"so\"'",
    "'two\nlines, one\r'",
    r"'back\slash'",
    "'ü'",
    r"'\x00a\x22\x5C#\xFF'::BLOB",
    "''::BLOB",
]
ROUNDED_BY_JSON = ["99999999999999999999999999999999999999::HUGEINT", "18446744073709551615::UBIGINT"]
NOT_IN_JSON = ["0.5::DECIMAL(3,3)", "1.50::DECIMAL(10,2)", "'inf'::DOUBLE", "'-inf'::FLOAT", "'nan'::DOUBLE"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("suffix", "value"),
    [("csv", value) for value in VALUES + NOT_IN_JSON] + [("json", value) for value in VALUES],
)
def test_text_is_duckdbs_and_reads_back(tmp_path: Path, suffix: str, value: str) -> None:
    query = f'SELECT {value} AS "x#", 1 AS y'
    with bamquery.connect(device="cpu") as ours, connect() as theirs:
        ours.sql(f"COPY ({query}) TO 'ours.{suffix}'")
        theirs.execute(f"COPY ({query}) TO 'theirs.{suffix}'")
        assert (tmp_path / f"ours.{suffix}").read_bytes() == (tmp_path / f"theirs.{suffix}").read_bytes()
        kind = ours.sql(f"SELECT typeof({value})").fetchall()[0][0]
        if kind == '"NULL"' or (suffix == "json" and value in ROUNDED_BY_JSON):
            return
        declared = f"columns={{'x#': '{kind}', 'y': 'INTEGER'}}"
        if suffix == "csv":
            # An empty text and no value are one to readers of CSV, unless all is quoted and NULL named.
            ours.sql(f"COPY ({query}) TO 'ours.csv' (NULLSTR 'none')")
            declared += ", header=true, nullstr='none'"
        # Compared by SQL: Python has no years before 1 and after 9999.
        files = f"FROM read_{suffix}('ours.{suffix}', {declared}) f, ({query}) q"
        assert ours.sql(f'SELECT f."x#" = q."x#" {files}').fetchall() == [(True,)]


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.5::DECIMAL(3,3)", "0.500"), ("1.50::DECIMAL(10,2)", "1.50"), ("'inf'::DOUBLE", "null")],
)
def test_json_is_json(tmp_path: Path, value: str, text: str) -> None:
    with bamquery.connect(device="cpu") as ours:
        ours.sql(f"COPY (SELECT {value} AS x) TO 'x.json'")
        assert (tmp_path / "x.json").read_text() == f'{{"x":{text}}}\n'
