"""Places in statements: where in what a user wrote, shown with a caret below."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from bamquery.text.terminal import cell_width, escape_line, prefix_of_width, suffix_of_width

DEFAULT_WIDTH: Final = 120
"""Columns of a line where nobody says how wide the terminal is."""

_LEAST_WINDOW: Final = 12
_TAB: Final = 8
_WORD: Final = re.compile(r"""\w+|"[^"]*"|'[^']*'|.""", re.DOTALL)
_MARKED: Final = "\x1b[1;31m"
_PLAIN: Final = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class _Origin:
    """A piece of a statement that a user wrote: the lines of the statement that it takes."""

    first: int
    text: str

    @property
    def last_line(self) -> int:
        return self.first + _line_count(self.text) - 1


class StatementText(str):
    """A statement that was put together from pieces that a user wrote, or that has a name.

    Attributes:
        origins: the pieces, in their order; empty where all of it is the user's.
        label: what it is called where a place in it is shown, such as `view "v"`.
    """

    origins: tuple[_Origin, ...]
    label: str

    def __new__(cls, text: str, origins: tuple[_Origin, ...] = (), label: str = "") -> Self:
        """The text, with what is known of it."""
        made = super().__new__(cls, text)
        made.origins = origins
        made.label = label
        return made

    def is_written_by_user(self, line: int) -> bool:
        """Whether the line, from 1 on, is of one of the pieces."""
        return not self.origins or any(origin.first <= line <= origin.last_line for origin in self.origins)


class Piece(str):
    """A part of a statement that a user wrote."""

    __slots__ = ()


def join_statement(*parts: str) -> StatementText:
    """A statement of lines of our own and of pieces that users wrote, each on lines of its own.

    So a comment at the end of one does not hide the next. `Piece` says which are users'.
    """
    origins = []
    line = 1
    for part in parts:
        if isinstance(part, Piece):
            origins.append(_Origin(line, str(part)))
        line += _line_count(part)
    return StatementText("\n".join(parts), tuple(origins))


@dataclass(frozen=True, slots=True)
class Place:
    """A character of a statement.

    Attributes:
        sql: the statement.
        line: from 1 on, as `str.splitlines` counts.
        column: from 1 on, in characters.
    """

    sql: str
    line: int
    column: int

    def render(self, width: int = DEFAULT_WIDTH, *, colour: bool = False) -> str:
        """The line, or as much of it around the place as fits, and a caret below; "" where there is none."""
        place, label = self._find_in_user_text()
        lines = place.sql.splitlines()
        if not 1 <= place.line <= len(lines):
            return ""
        label = f"{escape_line(label)}, line {place.line}: " if label else f"line {place.line}: "
        line, offset = lines[place.line - 1], max(place.column - 1, 0)
        word = _WORD.match(line, offset)
        end = word.end() if word is not None else offset
        before, marked, after = _shown_parts(line, offset, end)
        before, marked, after = _window(before, marked, after, max(width - cell_width(label), _LEAST_WINDOW))
        caret = " " * (cell_width(label) + cell_width(before)) + "^"
        if colour:
            marked, caret = f"{_MARKED}{marked}{_PLAIN}", f"{_MARKED}{caret}{_PLAIN}"
        return f"{label}{before}{marked}{after}\n{caret}"

    def _find_in_user_text(self) -> tuple[Place, str]:
        """The place in what the user wrote, and what that is called."""
        if not isinstance(self.sql, StatementText):
            return self, ""
        before = [origin for origin in self.sql.origins if origin.first <= self.line]
        if not self.sql.origins:
            return self, self.sql.label
        if not before:
            return Place("", 0, 0), ""
        origin = before[-1]
        if self.line <= origin.last_line:
            return Place(origin.text, self.line - origin.first + 1, self.column), ""
        text = origin.text.rstrip()  # in a line of ours that follows: what is missing is at the end
        lines = text.splitlines()
        return Place(text, len(lines), len(lines[-1]) + 1 if lines else 0), ""


def _line_count(text: str) -> int:
    """Lines that the text takes with an end of line after it."""
    return len(f"{text}\n".splitlines())


def _shown_parts(line: str, start: int, end: int) -> tuple[str, str, str]:
    """What is before, at and after a word, as a terminal may have it; tabs reach to every eighth column."""
    if line.isascii() and line.isprintable():  # as nearly all are; an error of many levels asks for many
        return line[:start], line[start:end], line[end:]
    parts = ["", "", ""]
    width = 0
    for position, character in enumerate(line):
        shown = " " * (_TAB - width % _TAB) if character == "\t" else escape_line(character)
        width += cell_width(shown)
        parts[0 if position < start else 1 if position < end else 2] += shown
    return parts[0], parts[1], parts[2]


def _window(before: str, marked: str, after: str, width: int) -> tuple[str, str, str]:
    """As much as fits, with an ellipsis on each side where something is left out."""
    if cell_width(before) + cell_width(marked) + cell_width(after) <= width:
        return before, marked, after
    ahead = width * 3 // 5
    # What follows gets the room that the word's own side does not need.
    needed = cell_width(marked) + cell_width(after)
    ahead = max(ahead, width - needed)
    if cell_width(before) > ahead:
        before = "…" + suffix_of_width(before, ahead - 1)
    room = width - cell_width(before)
    if cell_width(marked) + cell_width(after) <= room:
        return before, marked, after
    if cell_width(marked) > room - 1:
        return before, prefix_of_width(marked, room - 1) + "…", ""
    return before, marked, prefix_of_width(after, room - cell_width(marked) - 1) + "…"
