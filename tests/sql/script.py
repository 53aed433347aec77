"""Files of SQL with the answers they must have, in the manner of sqllogictest.

A file is a list of records, set apart by blank lines:

    statement ok            the SQL below runs
    statement error         it fails; after ----, what BamQuery's message must contain
    query [sorted]          the SQL below gives the types and rows after ----; `sorted`: in any order

`only bamquery` before a record keeps DuckDB out of it, where it has no such statement or another answer; a
comment says why. Lines that begin with # are comments.

Values are written as text, columns set apart by ` | `: NULL for null, strings in quotes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.data_types.names import type_name


@dataclass
class Record:
    """One statement or query with what is expected of it."""

    kind: str
    sql: str = ""
    expected: list[str] = field(default_factory=list)
    ordered: bool = True
    duckdb: bool = True
    lead: list[str] = field(default_factory=list)
    line: int = 0

    def text(self) -> str:
        """As it stands in the file."""
        head = {"ok": "statement ok", "error": "statement error", "query": "query"}[self.kind]
        lines = [*self.lead, head if self.ordered else f"{head} sorted", self.sql]
        return "\n".join([*lines, "----", *self.expected] if self.kind != "ok" else lines)


def read_records(path: Path) -> list[Record]:
    """The records of a file."""
    return list(_records(path.read_text().splitlines()))


def write(path: Path, records: list[Record]) -> None:
    """Put records back, with other answers."""
    path.write_text("\n\n".join(record.text() for record in records) + "\n")


def _records(lines: list[str]) -> Iterator[Record]:
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line:
            block.append(line)
        elif block:
            yield _record(block, number - len(block))
            block = []


def _record(block: list[str], line: int) -> Record:
    lead = []
    while block[0].startswith(("#", "only ")):
        lead.append(block.pop(0))
        assert block, f"line {line}: a comment needs a record in the same paragraph"
    words = block[0].split()
    kind = words[1] if words[0] == "statement" else words[0]
    assert kind in ("ok", "error", "query"), f"line {line}: {block[0]}"
    body = block[1:]
    split = body.index("----") if "----" in body else len(body)
    return Record(
        kind,
        "\n".join(body[:split]),
        body[split + 1 :],
        "sorted" not in words,
        "only bamquery" not in lead,
        lead,
        line,
    )


def render_table(table: pa.Table) -> list[str]:
    """Types, then rows, as files have them."""
    # A column of nothing but NULL has a type with us: INTEGER.
    kinds = [pa.int32() if pa.types.is_null(column.type) else column.type for column in table.schema]
    types = " | ".join(type_name(kind) for kind in kinds)
    columns = [[_value(value) for value in _plain(column)] for column in table.columns]
    return [types, *(" | ".join(row) for row in zip(*columns, strict=True))]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    kind: Any = column.type
    if pa.types.is_dictionary(kind):
        return _plain(
            pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], kind.value_type)
        )
    if pa.types.is_temporal(kind):
        return [Moment(str(value)) if value.is_valid else None for value in column]
    return column.to_pylist()


class Moment(str):
    """The text of a date or time: written without quotes."""


def _value(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case Moment():
            return str(value)
        case str():
            return repr(value)
        case bytes():
            return repr(value)
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def answers_agree(given: list[str], expected: list[str], *, ordered: bool) -> bool:
    """Whether two answers agree: floating-point numbers to 12 digits, all else exactly."""
    if not ordered:
        given, expected = [*given[:1], *sorted(given[1:])], [*expected[:1], *sorted(expected[1:])]
    if len(given) != len(expected) or given[:1] != expected[:1]:
        return False
    types = expected[0].split(" | ") if expected else []
    for mine, theirs in zip(given[1:], expected[1:], strict=True):
        pairs = zip(types, mine.split(" | "), theirs.split(" | "), strict=False)
        if not all(_same_value(kind, a, b) for kind, a, b in pairs):
            return False
    return True


def _same_value(kind: str, mine: str, theirs: str) -> bool:
    if mine == theirs or kind not in ("DOUBLE", "FLOAT") or "NULL" in (mine, theirs):
        return mine == theirs
    return math.isclose(float(mine), float(theirs), rel_tol=1e-12 if kind == "DOUBLE" else 1e-6)
