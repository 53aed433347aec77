"""Answers as tables for people: bounded in rows and in width."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from bamquery.engine.units import plural
from bamquery.output.cells import is_number, printable, texts
from bamquery.output.display_options import DEFAULT_WIDTH
from bamquery.type_names import type_name

CELL_WIDTH: Final = 40
"""Most characters of a value or name where a table does not fit otherwise."""

_NARROWEST: Final = 20
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
    names: list[list[str]] = []
    bodies: list[list[str]] = []
    sizes: list[int] = []
    for position in shown:
        if position is None:
            names.append([" ", "…"])
            bodies.append(["…"] * rows.num_rows)
            sizes.append(1)
            continue
        # One column is shown however narrow the terminal is.
        room = max(width, _NARROWEST) - _BORDERS * len(shown) - 1 - (len(shown) - 1)
        size = widths[position] if len(shown) > 2 else max(min(widths[position], room), 1)
        put = _right if is_number(rows.schema.field(position).type) else _left
        name, kind = titles[position]
        names.append([put(name, size), _dim(put(kind, size), colour)])
        null = _dim(put("NULL", size), colour)
        bodies.append([null if cell is None else put(cell, size) for cell in cells[position]])
        sizes.append(size)
    rules = ["─" * (size + 2) for size in sizes]
    lines = [f"╭{'┬'.join(rules)}╮"]
    lines += [f"│ {' │ '.join(header)} │" for header in zip(*names, strict=True)]
    lines.append(f"├{'┼'.join(rules)}┤")
    lines += [f"│ {' │ '.join(row)} │" for row in zip(*bodies, strict=True)]
    lines.append(f"╰{'┴'.join(rules)}╯")
    left_out = rows.num_columns - sum(position is not None for position in shown)
    if left_out:
        lines.append(f"{left_out} of {plural(rows.num_columns, 'column')} left out")
    return "\n".join(lines)


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
        max(_cells(name), len(kind), max((4 if cell is None else _cells(cell) for cell in column), default=0))
        for (name, kind), column in zip(titles, cells, strict=True)
    ]
    return titles, cells, widths


def _cells(text: str) -> int:
    """How many columns of a terminal it takes: letters of East Asia take two."""
    return len(text) if text.isascii() else cell_len(text)


def _left(text: str, size: int) -> str:
    return text.ljust(size) if text.isascii() and len(text) <= size else set_cell_size(_cut(text, size), size)


def _right(text: str, size: int) -> str:
    cut = _cut(text, size)
    return " " * (size - _cells(cut)) + cut


def _cut(text: str, size: int) -> str:
    return text if _cells(text) <= size else set_cell_size(text, size - 1).rstrip() + "…"


def _dim(text: str, colour: bool) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colour else text


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
