"""JSON: an array of objects, or an object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from bamquery.output.arrow_batches import plain_column
from bamquery.output.cells import cell_strings, is_number
from bamquery.output.display_options import DisplayOptions
from bamquery.text.identifiers import unique_names

_LEAST_PLAIN: Final = 1e-6
_FIRST_WITH_EXPONENT: Final = 1e21


def write_json(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """An array with one object a row and line. NaN and infinities, which JSON has not, become null."""
    del options
    rows = 0
    out.write(b"[")
    for line in _objects(batches, schema):
        out.write(f"{',' if rows else ''}\n{line}".encode())
        rows += 1
    out.write(b"\n]\n" if rows else b"]\n")
    return rows


def write_json_lines(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """One object a row and line, and nothing else."""
    del options
    rows = 0
    for line in _objects(batches, schema):
        out.write(f"{line}\n".encode())
        rows += 1
    return rows


def _objects(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[str]:
    names = [json.dumps(name, ensure_ascii=False) for name in unique_names(schema.names)]
    for batch in batches:
        columns = [json_values(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
            yield f"{{{row}}}"


def json_values(column: pa.Array[Any]) -> list[str]:
    """Each value as JSON; NaN and infinities, which JSON has not, as null."""
    column = plain_column(column)
    if pa.types.is_floating(column.type):
        return ["null" if v is None else _json_number(v) for v in column.to_pylist()]
    values = cell_strings(column).to_pylist()
    if pa.types.is_decimal(column.type):
        return ["null" if value is None else _add_leading_zero(value) for value in values]
    if is_number(column.type) or pa.types.is_boolean(column.type):
        return ["null" if value is None else value for value in values]
    return ["null" if value is None else json.dumps(value, ensure_ascii=False) for value in values]


def _add_leading_zero(number: str) -> str:
    """The decimal with a digit before its point, which JSON wants."""
    if number.startswith("."):
        return f"0{number}"
    return f"-0{number[1:]}" if number.startswith("-.") else number


def _json_number(value: float) -> str:
    """As DuckDB and JavaScript write it: no exponent from 1e-6 to 1e21, but always a point or an exponent."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    if _LEAST_PLAIN <= abs(value) < _FIRST_WITH_EXPONENT:
        return np.format_float_positional(value, trim="0")
    return f"{mantissa}e{int(exponent)}"
