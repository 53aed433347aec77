"""The format `line`: a line for each value, for rows that are too wide for a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa

from bamquery.output.cells import cell_strings
from bamquery.output.display_options import DisplayOptions
from bamquery.text.terminal import cell_width, escape_line


def write_lines(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """`name = value`, names flush right, and an empty line between rows."""
    names = [escape_line(name) for name in schema.names]
    width = max(map(cell_width, names), default=0)
    labels = [" " * (width - cell_width(name)) + name for name in names]
    null = "NULL" if options.null_value is None else escape_line(options.null_value)
    rows = 0
    for batch in batches:
        for values in zip(*(cell_strings(column).to_pylist() for column in batch.columns), strict=True):
            lines = [
                f"{label} = {null if value is None else escape_line(value)}\n"
                for label, value in zip(labels, values, strict=True)
            ]
            out.write(("\n" if rows else "").encode() + "".join(lines).encode())
            rows += 1
    return rows
