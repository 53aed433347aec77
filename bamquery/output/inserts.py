"""INSERT statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import pyarrow as pa

from bamquery.output.display_options import DisplayOptions
from bamquery.output.literals import identifier, literals
from bamquery.text.identifiers import unique_names

_MOST_ROWS: Final = 1000
"""Of a statement; each one is a commit to who reads it."""
_MOST_CHARACTERS: Final = 1 << 20


def write_inserts(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO, options: DisplayOptions
) -> int:
    """Statements that put the rows into a table of the name that the options give."""
    names = ", ".join(map(identifier, unique_names(schema.names)))
    head = f"INSERT INTO {identifier(options.table_name)} ({names}) VALUES"
    rows = length = in_statement = 0
    for row in _rows(batches):
        if in_statement == _MOST_ROWS or length > _MOST_CHARACTERS:
            out.write(b";\n")
            length = in_statement = 0
        out.write(f",\n{row}".encode() if in_statement else f"{head}\n{row}".encode())
        rows, length, in_statement = rows + 1, length + len(row), in_statement + 1
    if rows:
        out.write(b";\n")
    return rows


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        for values in zip(*map(literals, batch.columns), strict=True):
            yield f"({', '.join(values)})"
