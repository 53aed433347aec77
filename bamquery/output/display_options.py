"""How answers are shown: one value that the command line makes of its flags and the shell of its commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "table": "the first rows with names and types, as wide as the terminal",
        "line": "a line for each value: name = value",
        "box": "all rows in a box, with names only",
        "csv": "comma-separated values; text that needs them in quotes, NULL is nothing",
        "tsv": "the same with tabs",
        "json": "an array of objects, one a row",
        "jsonl": "an object a line",
        "markdown": "a pipe table",
        "html": "a <table>",
        "latex": "a tabular",
        "insert": "INSERT statements",
        "parquet": "a Parquet file",
        "arrow": "an Arrow IPC file with --output, an IPC stream without",
    }
)
"""Names of formats, and what each of them is."""

BINARY_FORMATS: Final = frozenset({"parquet", "arrow"})
"""Of which an output holds one answer, and which no terminal gets."""

PAGED_FORMATS: Final = frozenset({"table", "box", "line"})
"""For people to look at: `max_rows` is for these."""

WIDTH_FORMATS: Final = frozenset({"table", "box"})
"""Whose lines are as wide as the terminal."""

HEADER_FORMATS: Final = frozenset({"table", "box", "csv", "tsv", "html", "latex"})
"""That may do without names of columns."""

NULL_FORMATS: Final = frozenset({*PAGED_FORMATS, *HEADER_FORMATS, "markdown"})
"""That have no spelling of NULL that programs expect."""

DEFAULT_MAX_ROWS: Final = 40
"""Rows that `table` shows where nothing is said."""

DEFAULT_WIDTH: Final = 120
"""Columns of a line where there is no terminal to ask."""


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """How answers are written; formats that an option means nothing to do not look at it.

    Attributes:
        format: one of `FORMATS`.
        headers: whether names of columns come first, in formats where that is a choice.
        null_value: text for NULL; None is each format's own: NULL in those for people, nothing in CSV.
        width: columns that a line of `table` and `box` may take; 0 is any number, None the terminal's,
            or for a `table` elsewhere 120.
        max_rows: rows that `table`, `box` and `line` show; 0 is all, None is 40 for `table`, all for others.
        column_widths: most columns that each column of a table takes; 0, or none, is as many as it needs.
        colour: whether to write colours; None is where the output is a terminal and NO_COLOR is not set.
        table_name: of the table that `insert` inserts into.
        timer: whether `table` says below an answer how long it took.
        statistics: whether `table` says below an answer what was read for it.
    """

    format: str = "table"
    headers: bool = True
    null_value: str | None = None
    width: int | None = None
    max_rows: int | None = None
    column_widths: tuple[int, ...] = ()
    colour: bool | None = None
    table_name: str = "table"
    timer: bool = True
    statistics: bool = False

    @property
    def row_limit(self) -> int:
        """Rows to show in the formats for people; 0 is all."""
        if self.max_rows is not None:
            return self.max_rows
        return DEFAULT_MAX_ROWS if self.format == "table" else 0
