"""SQL's types as JDBC and ODBC describe them: the answer of `CommandGetXdbcTypeInfo`."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

_NULLABLE: Final = 1
_SEARCHABLE: Final = 3
_TYPES: Final = (
    ("BOOLEAN", -7, 1, None),
    ("TINYINT", -6, 3, 10),
    ("SMALLINT", 5, 5, 10),
    ("INTEGER", 4, 10, 10),
    ("BIGINT", -5, 19, 10),
    ("HUGEINT", 2, 38, 10),
    ("DECIMAL", 3, 38, 10),
    ("FLOAT", 7, 24, 2),
    ("DOUBLE", 8, 53, 2),
    ("VARCHAR", 12, None, None),
    ("BLOB", -3, None, None),
    ("DATE", 91, 10, None),
    ("TIME", 92, 15, None),
    ("TIMESTAMP", 93, 26, None),
)
"""Name, number in JDBC, digits or characters or bits, and base of these."""
_FIELDS: Final[list[pa.Field[Any]]] = [
    pa.field("type_name", pa.utf8(), nullable=False),
    pa.field("data_type", pa.int32(), nullable=False),
    pa.field("column_size", pa.int32()),
    pa.field("literal_prefix", pa.utf8()),
    pa.field("literal_suffix", pa.utf8()),
    pa.field("create_params", pa.list_(pa.field("item", pa.utf8(), nullable=False))),
    pa.field("nullable", pa.int32(), nullable=False),
    pa.field("case_sensitive", pa.bool_(), nullable=False),
    pa.field("searchable", pa.int32(), nullable=False),
    pa.field("unsigned_attribute", pa.bool_()),
    pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
    pa.field("auto_increment", pa.bool_()),
    pa.field("local_type_name", pa.utf8()),
    pa.field("minimum_scale", pa.int32()),
    pa.field("maximum_scale", pa.int32()),
    pa.field("sql_data_type", pa.int32(), nullable=False),
    pa.field("datetime_subcode", pa.int32()),
    pa.field("num_prec_radix", pa.int32()),
    pa.field("interval_precision", pa.int32()),
]
_SCHEMA: Final = pa.schema(_FIELDS)


def xdbc_types(data_type: int | None) -> pa.Table:
    """All types, or those of one number."""
    rows = [_row(*kind) for kind in sorted(_TYPES, key=lambda kind: kind[1]) if data_type in (None, kind[1])]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(name: str, number: int, size: int | None, base: int | None) -> dict[str, Any]:
    quote = "'" if base is None and name != "BOOLEAN" else None
    scale = 38 if name == "DECIMAL" else None
    return {
        "type_name": name,
        "data_type": number,
        "column_size": size,
        "literal_prefix": quote,
        "literal_suffix": quote,
        "create_params": ["precision", "scale"] if name == "DECIMAL" else None,
        "nullable": _NULLABLE,
        "case_sensitive": name == "VARCHAR",
        "searchable": _SEARCHABLE,
        "unsigned_attribute": None if base is None else False,
        "fixed_prec_scale": False,
        "auto_increment": False,
        "local_type_name": name,
        "minimum_scale": None if scale is None else 0,
        "maximum_scale": scale,
        "sql_data_type": number,
        "num_prec_radix": base,
    }
