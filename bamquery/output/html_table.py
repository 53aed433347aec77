"""Rows as a table of HTML, whose values are text and never markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.output.cells import cell_strings, is_number
from bamquery.text.html_elements import element

_LONGEST_VALUE: Final = 200


@dataclass(frozen=True)
class ShownColumn:
    """A column of an answer: its name, SQL type, whether numbers, and values as text."""

    name: str
    type: str
    numeric: bool
    values: tuple[str | None, ...]


def shown_columns(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> tuple[ShownColumn, ...]:
    """All rows of the batches."""
    return tuple(
        ShownColumn(
            field.name,
            type_name(field.type),
            is_number(field.type),
            tuple(value for batch in batches for value in cell_strings(batch.column(place)).to_pylist()),
        )
        for place, field in enumerate(schema)
    )


def row_table(columns: Sequence[ShownColumn]) -> ET.Element:
    """All rows (classes `scroll` and `answer`), types below the names; long values are cut."""
    head = element("tr")
    for column in columns:
        title = element("th", column.name, element("small", column.type), class_=_alignment(column))
        head.append(title)
    body = element("tbody")
    for values in zip(*(column.values for column in columns), strict=True):
        line = element("tr")
        for column, value in zip(columns, values, strict=True):
            text = element("em", "NULL") if value is None else _truncate(value)
            line.append(element("td", text, class_=_alignment(column)))
        body.append(line)
    table = element("table", element("thead", head), body, class_="answer")
    return element("div", table, class_="scroll")


def _alignment(column: ShownColumn) -> str | None:
    return "number" if column.numeric else None


def _truncate(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
