"""duckdb_types(): the types under all their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from bamquery.catalog.system_tables.facts import CatalogFacts
from bamquery.catalog.system_tables.rows import (
    BIGINT,
    BOOLEAN,
    NO_TAGS,
    VARCHAR,
    SystemTable,
    columns,
    list_text,
)
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import value_type
from bamquery.sql_frontend.system_names import MAIN


class _Type(NamedTuple):
    """What DuckDB's catalogue says of a type: its number, its bytes, its category, other names."""

    number: int
    size: int | None
    category: str | None
    others: str = ""


_TYPES: Final[Mapping[str, _Type]] = MappingProxyType(
    {
        "BOOLEAN": _Type(10, 1, "BOOLEAN", "bool logical"),
        "TINYINT": _Type(11, 1, "NUMERIC", "int1"),
        "SMALLINT": _Type(12, 2, "NUMERIC", "int16 int2 short"),
        "INTEGER": _Type(13, 4, "NUMERIC", "int int32 int4 integral signed"),
        "BIGINT": _Type(14, 8, "NUMERIC", "int64 int8 long oid"),
        "HUGEINT": _Type(50, 16, "NUMERIC", "int128"),
        "UTINYINT": _Type(28, 1, "NUMERIC", "uint8"),
        "USMALLINT": _Type(29, 2, "NUMERIC", "uint16"),
        "UINTEGER": _Type(30, 4, "NUMERIC", "uint32"),
        "UBIGINT": _Type(31, 8, "NUMERIC", "uint64"),
        "FLOAT": _Type(22, 4, "NUMERIC", "float4 real"),
        "DOUBLE": _Type(23, 8, "NUMERIC", "float8"),
        "DECIMAL": _Type(21, None, "NUMERIC", "dec numeric"),
        "VARCHAR": _Type(25, 16, "STRING", "bpchar char nvarchar string text"),
        "BLOB": _Type(26, 16, None, "binary bytea varbinary"),
        "DATE": _Type(15, 4, "DATETIME"),
        "TIME": _Type(16, 8, "DATETIME"),
        "TIME_NS": _Type(35, 8, "DATETIME"),
        "TIMESTAMP": _Type(19, 8, "DATETIME", "datetime timestamp_us"),
        "TIMESTAMP_S": _Type(17, 8, "DATETIME"),
        "TIMESTAMP_MS": _Type(18, 8, "DATETIME"),
        "TIMESTAMP_NS": _Type(20, 8, "DATETIME"),
        "TIMESTAMP WITH TIME ZONE": _Type(32, 8, "DATETIME", "timestamptz"),
        "INTERVAL": _Type(27, 16, "DATETIME"),
    }
)


def type_id(kind: pa.DataType) -> int | None:
    """DuckDB's number of a column's type; None of one that it does not have."""
    found = _TYPES.get(type_name(value_type(kind)).partition("(")[0])
    return None if found is None else found.number


def _rows(facts: CatalogFacts) -> Iterator[tuple[Any, ...]]:
    named = sorted(
        (name, logical)
        for logical, kind in _TYPES.items()
        for name in (logical.lower(), *kind.others.split())
    )
    for name, logical in named:
        kind = _TYPES[logical]
        parameters = ["precision", "scale"] if logical == "DECIMAL" else []
        yield (
            *(
                facts.database,
                1,
                MAIN,
                2,
                kind.number,
                name,
                kind.size,
                logical,
                kind.category,
                None,
                NO_TAGS,
            ),
            *(True, None, None, list_text(parameters), list_text(["INTEGER" for _ in parameters]), None),
        )


TYPES: Final = SystemTable(
    columns(
        database_name=VARCHAR,
        database_oid=BIGINT,
        schema_name=VARCHAR,
        schema_oid=BIGINT,
        type_oid=BIGINT,
        type_name=VARCHAR,
        type_size=BIGINT,
        logical_type=VARCHAR,
        type_category=VARCHAR,
        comment=VARCHAR,
        tags=VARCHAR,
        internal=BOOLEAN,
        extension_name=VARCHAR,
        labels=VARCHAR,
        parameters=VARCHAR,
        parameter_types=VARCHAR,
        varargs=VARCHAR,
    ),
    _rows,
)
