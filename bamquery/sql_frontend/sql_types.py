"""Types as statements write them, and as Arrow has them: the map that docs/sql.md publishes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import HUGEINT, INTERVAL
from bamquery.text.identifiers import suggestion

__all__ = ["HUGEINT", "from_syntax", "type_name"]

_FROM_SYNTAX: Final[Mapping[exp.DType, pa.DataType]] = MappingProxyType(
    {
        exp.DType.BOOLEAN: pa.bool_(),
        exp.DType.TINYINT: pa.int8(),
        exp.DType.SMALLINT: pa.int16(),
        exp.DType.INT: pa.int32(),
        exp.DType.BIGINT: pa.int64(),
        exp.DType.INT128: HUGEINT,
        exp.DType.UTINYINT: pa.uint8(),
        exp.DType.USMALLINT: pa.uint16(),
        exp.DType.UINT: pa.uint32(),
        exp.DType.UBIGINT: pa.uint64(),
        exp.DType.FLOAT: pa.float32(),
        exp.DType.DOUBLE: pa.float64(),
        exp.DType.TEXT: pa.large_string(),
        exp.DType.VARCHAR: pa.large_string(),
        exp.DType.VARBINARY: pa.large_binary(),
        exp.DType.DATE: pa.date32(),
        exp.DType.TIME: pa.time64("us"),
        exp.DType.TIME_NS: pa.time64("ns"),
        exp.DType.TIMESTAMP: pa.timestamp("us"),
        exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
        exp.DType.TIMESTAMP_S: pa.timestamp("s"),
        exp.DType.TIMESTAMP_MS: pa.timestamp("ms"),
        exp.DType.TIMESTAMP_NS: pa.timestamp("ns"),
        exp.DType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
        exp.DType.INTERVAL: INTERVAL,
    }
)

_BY_NAME: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {"uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64()}
)
"""Names of DuckDB that sqlglot takes for a user's own types."""

_WITH_PARAMETERS: Final = (exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR)
_FLOAT_BITS: Final = 24
_DOUBLE_BITS: Final = 53
_TIMESTAMP_UNITS: Final = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
"""Of TIMESTAMP(n): with so many digits of a second at least."""
_WRITTEN: Final[Mapping[str, str]] = MappingProxyType(
    {"UINT128": "UHUGEINT", "TIMETZ": "TIME WITH TIME ZONE", "TIMESTAMPNTZ": "TIMESTAMP"}
)
"""What sqlglot calls otherwise than DuckDB's users do."""


_NAMES: Final = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "TEXT", "BLOB", "DATE", "TIME", "TIMESTAMP"),
    *("TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "INTERVAL"),
)


def unknown_type(name: str) -> str:
    """What to say of a type that BamQuery has not."""
    name = _WRITTEN.get(name, name)
    return f"there is no type {name}.{suggestion(name, _NAMES)}"


def from_syntax(node: exp.DataType) -> pa.DataType | None:
    """The Arrow type of a type in a statement, or None where BamQuery has no such type.

    Raises:
        ValueError: parameters that the type cannot have, in words.
    """
    if any(not p.name.isdigit() or getattr(p.this, "is_string", False) for p in node.expressions):
        if node.this == exp.DType.DECIMAL:
            raise ValueError("DECIMAL(width, scale): both are whole numbers")
        return None
    parameters = [int(parameter.name) for parameter in node.expressions]
    kind = node.this
    if kind == exp.DType.DECIMAL:
        precision, scale = (*parameters, 0)[:2]
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValueError(
                f"DECIMAL({precision},{scale}): the width must be 1 to 38, the scale 0 to the width"
            )
        return pa.decimal128(precision, scale)
    if parameters and kind in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
        if len(parameters) > 1 or not 0 <= parameters[0] < len(_TIMESTAMP_UNITS):
            raise ValueError("TIMESTAMP(n): the digits of a second must be 0 to 9")
        return pa.timestamp(_TIMESTAMP_UNITS[parameters[0]])
    if parameters and kind == exp.DType.FLOAT:
        if len(parameters) > 1 or not 1 <= parameters[0] <= _DOUBLE_BITS:
            raise ValueError(f"FLOAT(n): the bits of its digits must be 1 to {_DOUBLE_BITS}")
        return pa.float32() if parameters[0] <= _FLOAT_BITS else pa.float64()
    if parameters and kind not in _WITH_PARAMETERS:
        return None
    if kind == exp.DType.USERDEFINED:
        return _BY_NAME.get(str(node.args.get("kind")).lower())
    return _FROM_SYNTAX.get(kind)
