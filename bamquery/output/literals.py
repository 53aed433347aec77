"""Values as SQL writes them, for BamQuery and DuckDB to read back as the same values of the same types."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.output.arrow_batches import plain_column
from bamquery.output.cells import cell_strings

_NOUGHT: Final = "' || chr(0) || '"
"""Some readers of SQL end at a character of code 0."""


def literals(column: pa.Array[Any]) -> list[str]:
    """Each value as an expression of SQL; NULL where it is null."""
    column = plain_column(column)
    kind = column.type
    if pa.types.is_floating(kind):
        return [_float(value, type_name(kind)) for value in column.to_pylist()]
    written = cell_strings(column).to_pylist()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return ["NULL" if text is None else text for text in written]
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return ["NULL" if text is None else _string_literal(text) for text in written]
    if kind == pa.null():
        return ["NULL"] * len(column)
    name = type_name(kind)
    return ["NULL" if text is None else f"'{text}'::{name}" for text in written]


def identifier(name: str) -> str:
    """The name in quotes."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _string_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''").replace("\0", _NOUGHT) + "'"
    return f"({quoted})" if "\0" in text else quoted


def _float(value: float | None, kind: str) -> str:
    """Always with an exponent: without one it would be a DECIMAL, and rounded on its way to a float."""
    if value is None:
        return "NULL"
    text = repr(value)
    if text in ("nan", "inf", "-inf"):
        return f"'{text}'::{kind}"
    return text if "e" in text else f"{text}e0"
