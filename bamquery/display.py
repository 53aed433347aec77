"""Answers as tables for people: bounded in rows and in width."""

from __future__ import annotations

import io
from typing import Final

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bamquery.cells import is_number, printable, texts
from bamquery.engine.units import plural
from bamquery.type_names import type_name

CELL_WIDTH: Final = 40
"""Most characters of a value or name where a table does not fit otherwise."""

DEFAULT_WIDTH: Final = 120
"""Columns of a line where there is no terminal to ask."""

_BORDERS: Final = 3  # between two columns, and a share of the edges


def preview(rows: pa.Table, limit: int, width: int = DEFAULT_WIDTH) -> str:
    """The first `limit` rows, and whether there are more."""
    if rows.num_rows > limit:
        return f"{render(rows.slice(0, limit), width)}\nthe first {plural(limit, 'row')}"
    return f"{render(rows, width)}\n{plural(rows.num_rows, 'row')}"


def render(rows: pa.Table, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
    """A table of all rows; columns that do not fit into the width are left out in the middle."""
    titles, cells, widths = _contents(rows, max(width - _BORDERS - 1, CELL_WIDTH))
    if sum(widths) + _BORDERS * len(widths) + 1 > width:
        titles, cells, widths = _contents(rows, CELL_WIDTH)
    shown = _fitting(widths, width)
    table = Table(box=box.ROUNDED, header_style="")
    for position in shown:
        if position is None:
            table.add_column("…")
        else:
            title, kind = titles[position]
            right = is_number(rows.schema.field(position).type)
            header = Text(f"{title}\n").append(kind, style="dim")
            table.add_column(header, justify="right" if right else "left", no_wrap=True)
    for row in range(rows.num_rows):
        table.add_row(*(_cell("…") if p is None else _cell(cells[p][row]) for p in shown))
    out = io.StringIO()
    console = Console(file=out, width=max(width, 20), force_terminal=colour, legacy_windows=False)
    console.print(table)
    lines = out.getvalue().splitlines()
    left_out = rows.num_columns - sum(position is not None for position in shown)
    if left_out:
        lines.append(f"{left_out} of {plural(rows.num_columns, 'column')} left out")
    return "\n".join(line.rstrip() for line in lines)


def _contents(rows: pa.Table, most: int) -> tuple[list[tuple[str, str]], list[list[str | None]], list[int]]:
    """Name and type of each column, its cells of at most `most` characters, and the width of them all."""
    titles = [(printable(field.name, most), type_name(field.type)) for field in rows.schema]
    cells = [
        [
            None if text is None else printable(text, most)
            for chunk in column.chunks
            for text in texts(chunk).to_pylist()
        ]
        for column in rows.columns
    ]
    widths = [
        max(len(name), len(kind), *(len("NULL" if cell is None else cell) for cell in column), 0)
        for (name, kind), column in zip(titles, cells, strict=True)
    ]
    return titles, cells, widths


def _cell(text: str | None) -> Text:
    return Text("NULL", style="dim") if text is None else Text(text)


def _fitting(widths: list[int], width: int) -> list[int | None]:
    """Positions of the columns to show, with None where some are left out; at least one is shown."""
    if sum(widths) + _BORDERS * len(widths) + 1 <= width:
        return list(range(len(widths)))
    room = width - 1 - _BORDERS - 1  # an ellipsis takes a column of its own
    left: list[int | None] = []
    right: list[int | None] = []
    low, high = 0, len(widths) - 1
    while low <= high:
        from_left = len(left) <= len(right)
        position = low if from_left else high
        room -= widths[position] + _BORDERS
        if room < 0 and left:
            break
        if from_left:
            left.append(position)
            low += 1
        else:
            right.append(position)
            high -= 1
    return [*left, *([None] if low <= high else []), *reversed(right)]
