"""Answers as tables for people: bounded in rows and in width, and honest about what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.engine.human_units import plural
from bamquery.output.cells import cell_strings, is_number
from bamquery.output.display_options import DEFAULT_WIDTH
from bamquery.text.terminal import cell_width, escape_line, truncate

LEAST_CUT: Final = 20
"""Columns of a terminal that a text has at least where a table does not fit; before that, columns go."""

_BORDERS: Final = 3  # between two columns, and a share of the edges
_MOST_CHARACTERS: Final = 4
"""Characters of a text that are looked at for a column of a terminal, some of which take none."""
_WHOLE: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How a table looks.

    Attributes:
        width: columns of the terminal that it may take; 0 is any number.
        headers: whether names come first.
        types: whether types come below them.
        null: for NULL.
        colour: whether types and NULL are dim.
        square: whether corners are.
        column_widths: most columns that each of the first columns takes; 0 is as many as it needs.
    """

    width: int = DEFAULT_WIDTH
    headers: bool = True
    types: bool = True
    null: str = "NULL"
    colour: bool = False
    square: bool = False
    column_widths: tuple[int, ...] = ()


def preview(rows: pa.Table, limit: int, width: int = DEFAULT_WIDTH) -> str:
    """The first `limit` rows, and whether there are more."""
    if rows.num_rows > limit:
        return f"{render(rows.slice(0, limit), width)}\nthe first {plural(limit, 'row')}"
    return f"{render(rows, width)}\n{plural(rows.num_rows, 'row')}"


def render(rows: pa.Table, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
    """A table of all rows; columns that do not fit into the width are left out in the middle."""
    layout = TableLayout(rows, TableStyle(width, colour=colour))
    return "\n".join([*layout.top(), *layout.body(rows), *layout.bottom()])


class TableLayout:
    """Which columns a table shows and how wide, by its first rows; later rows are cut to that."""

    def __init__(self, first: pa.Table, style: TableStyle) -> None:
        """Look at the first rows, of which there may be none."""
        self._schema = first.schema
        self._style = style
        self._null = escape_line(style.null)
        self._names = [escape_line(name) for name in first.schema.names]
        self._kinds = [type_name(field.type) if style.types else "" for field in first.schema]
        self._sizes = self._fit_sizes(self._measure(first))
        self._shown = _choose_columns(self._sizes, style.width)
        if self._shown.count(None) or len(self._shown) == 1:
            self._narrow()

    def _measure(self, first: pa.Table) -> list[_Size]:
        """What each column needs; a name is cut as a text is, a number never."""
        sizes = []
        for position, column in enumerate(first.columns):
            most = _width_at(self._style.column_widths, position) or self._style.width or _WHOLE
            cells = [
                cell_width(self._null if text is None else _start(text, most))
                for chunk in column.chunks
                for text in cell_strings(chunk).to_pylist()
            ]
            name = cell_width(self._names[position]) if self._style.headers else 0
            kind = len(self._kinds[position]) if self._style.headers else 0
            is_string = _is_string(self._schema.field(position).type)
            widest = max(cells, default=0)
            firm = max(kind, 0 if is_string else widest, min(name, LEAST_CUT), 1)
            sizes.append(_Size(firm, max(firm, widest, name)))
        return sizes

    def _fit_sizes(self, sizes: Sequence[_Size]) -> list[int]:
        """As wide as the contents are where that fits; else texts are cut to the largest size that does."""
        limits = [_width_at(self._style.column_widths, position) for position in range(len(sizes))]

        def sizes_at_most(most: int) -> list[int]:
            cut_to = (max(size.firm, min(size.whole, most)) for size in sizes)
            return [min(size, limit) if limit else size for size, limit in zip(cut_to, limits, strict=True)]

        room = (self._style.width or _WHOLE) - 1 - _BORDERS * len(sizes)
        low, high = LEAST_CUT, max([LEAST_CUT, *(size.whole for size in sizes)])
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if sum(sizes_at_most(middle)) <= room else (low, middle - 1)
        return sizes_at_most(low)

    def _narrow(self) -> None:
        """One column is shown however narrow the terminal is."""
        shown = [position for position in self._shown if position is not None]
        if len(shown) == 1 and self._style.width:
            room = self._style.width - _BORDERS * len(self._shown) - 1 - (len(self._shown) - 1)
            self._sizes[shown[0]] = max(min(self._sizes[shown[0]], room), 1)

    def top(self) -> Iterator[str]:
        """Lines before the rows."""
        left, middle, right = "┌┬┐" if self._style.square else "╭┬╮"
        yield self._rule(left, middle, right)
        if self._style.headers:
            yield self._line(self._header_cells(self._names, " "))
            if self._style.types:
                yield self._line(self._header_cells(self._kinds, "…", dim=True))
            yield self._rule("├", "┼", "┤")

    def body(self, rows: pa.Table | pa.RecordBatch) -> Iterator[str]:
        """A line for each of these rows."""
        columns = [self._cells(rows, position) for position in self._shown]
        for cells in zip(*columns, strict=True):
            yield self._line(cells)

    def bottom(self) -> Iterator[str]:
        """Lines after the rows: the edge, and the names of columns that were left out."""
        left, middle, right = "└┴┘" if self._style.square else "╰┴╯"
        yield self._rule(left, middle, right)
        missing = [name for position, name in enumerate(self._names) if position not in self._shown]
        if missing:
            whole = f"{len(missing):,} of {plural(len(self._names), 'column')} left out: {', '.join(missing)}"
            yield truncate(whole, self._style.width or _WHOLE)

    def _header_cells(self, heads: Sequence[str], between: str, *, dim: bool = False) -> list[str]:
        return [
            between if position is None else self._pad_cell(heads[position], position, dim=dim)
            for position in self._shown
        ]

    def _cells(self, rows: pa.Table | pa.RecordBatch, position: int | None) -> list[str]:
        if position is None:
            return ["…"] * rows.num_rows
        column: Any = rows.column(position)
        size = self._sizes[position]
        null = self._pad_cell(self._null, position, dim=True)
        return [
            null if text is None else self._pad_cell(_start(text, size), position)
            for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
            for text in cell_strings(chunk).to_pylist()
        ]

    def _pad_cell(self, text: str, position: int, *, dim: bool = False) -> str:
        size = self._sizes[position]
        text = truncate(text, size)
        space = " " * (size - cell_width(text))
        put = space + text if is_number(self._schema.field(position).type) else text + space
        return f"\x1b[2m{put}\x1b[0m" if dim and self._style.colour else put

    def _line(self, cells: Sequence[str]) -> str:
        return f"│ {' │ '.join(cells)} │"

    def _rule(self, left: str, middle: str, right: str) -> str:
        sizes = [1 if position is None else self._sizes[position] for position in self._shown]
        return left + middle.join("─" * (size + 2) for size in sizes) + right


@dataclass(frozen=True, slots=True)
class _Size:
    """Columns of a terminal: that a table's column must have, and with which nothing of it is cut."""

    firm: int
    whole: int


def _is_string(kind: pa.DataType) -> bool:
    """Whether values may be cut: what is left of them still says something."""
    if pa.types.is_dictionary(kind):
        return _is_string(kind.value_type)
    return bool(
        pa.types.is_large_string(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_interval(kind)
    )


def _width_at(widths: Sequence[int], position: int) -> int:
    return widths[position] if position < len(widths) else 0


def _start(text: str, width: int) -> str:
    """Enough of the text to fill so many columns and be cut, however long it is, as terminals may have it."""
    return escape_line(text[: _MOST_CHARACTERS * (width + 1)])


def _choose_columns(widths: Sequence[int], width: int) -> list[int | None]:
    """Positions of the columns to show, with None where some are left out; at least one is shown."""
    if not width or sum(widths) + _BORDERS * len(widths) + 1 <= width:
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
