"""Columns of all types, with values that are hard to convert."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

import bamquery

EXPRESSIONS: Mapping[str, str] = MappingProxyType(
    {
        "BOOLEAN": "i % 2 = 0",
        "TINYINT": "(i - 128)::TINYINT",
        "SMALLINT": "(i * 250 - 32768)::SMALLINT",
        "INTEGER": "(i * 16000000 - 2147483648)::INTEGER",
        "BIGINT": "(i - 128) * 70000000000000000",
        "UTINYINT": "i::UTINYINT",
        "USMALLINT": "(i * 250)::USMALLINT",
        "UINTEGER": "(i * 16000000)::UINTEGER",
        "UBIGINT": "i::UBIGINT * 70000000000000000",
        "HUGEINT": "i::HUGEINT * 123456789012345678901234567",
        "FLOAT": "CASE i % 5 WHEN 0 THEN 'nan'::FLOAT WHEN 1 THEN '-inf'::FLOAT ELSE i / 3 END::FLOAT",
        "DOUBLE": "CASE i % 5 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-inf'::DOUBLE ELSE i / 3 END",
        "DECIMAL(9,2)": "(i * 12345.67)::DECIMAL(9,2)",
        "VARCHAR": "repeat('ä', (i % 4)::INTEGER) || i::VARCHAR",
        "BLOB": "('a\\x00' || i::VARCHAR)::BLOB",
        "DATE": "DATE '0001-01-01' + (i * 14000)::INTEGER",
        "TIME": "TIME '00:00:00.000001' + INTERVAL 1 SECOND * i",
        "TIMESTAMP_S": "(TIMESTAMP '1900-01-01' + INTERVAL 1 DAY * i)::TIMESTAMP_S",
        "TIMESTAMP_MS": "(TIMESTAMP '1900-01-01 00:00:00.123' + INTERVAL 1 DAY * i)::TIMESTAMP_MS",
        "TIMESTAMP": "TIMESTAMP '0001-01-01 00:00:00.123456' + INTERVAL 14000 DAY * i",
        "TIMESTAMP_NS": "(TIMESTAMP '1900-01-01 00:00:00.123456' + INTERVAL 1 DAY * i)::TIMESTAMP_NS",
        "TIMESTAMP WITH TIME ZONE": "(TIMESTAMP '1900-01-01' + INTERVAL 1 DAY * i)::TIMESTAMPTZ",
        "INTERVAL": "INTERVAL 1 MONTH * i - INTERVAL 40 DAY + INTERVAL 1 MICROSECOND * i",
    }
)
"""An expression over i, 0 to 255, for each type as docs/python/frames.md spells it."""
ROWS = 256
STATES = ("values", "some nulls", "only nulls", "no rows")


def query(kind: str, state: str) -> str:
    """A column `x` of that type."""
    value = EXPRESSIONS[kind]
    match state:
        case "some nulls":
            value = f"CASE WHEN i % 3 <> 0 THEN {value} END"
        case "only nulls":
            value = f"CASE WHEN i < 0 THEN {value} END"
    rows = 0 if state == "no rows" else ROWS
    return f"SELECT {value} AS x FROM range({rows}) r(i) ORDER BY i"


def dictionary(con: bamquery.Connection, values: list[str | None]) -> bamquery.Relation:
    """A relation of one column `x`, a dictionary."""
    kind = pa.dictionary(pa.int32(), pa.large_string())
    con.load("words", pa.table({"x": pa.array(values, kind)}), if_exists="replace")
    return con.table("words")
