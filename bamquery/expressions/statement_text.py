"""Statements put together of our words and pieces of users, and errors that show these pieces only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bamquery.errors import Reason, SqlError

_CUT_SHORT = "syntax error at the end"


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a user wrote.

    Attributes:
        first: the line of the statement that it begins on, from 1.
        lines: how many it has.
    """

    text: str
    first: int
    lines: int


@dataclass(slots=True)
class StatementText:
    """A statement in work; every part has lines of its own, so a comment at the end of one hides nothing."""

    _parts: list[str] = field(default_factory=list)
    _pieces: list[_Piece] = field(default_factory=list)
    _lines: int = 0

    def __str__(self) -> str:
        return "\n".join(self._parts)

    @property
    def shown(self) -> str:
        """What users wrote of it."""
        return "\n".join(piece.text for piece in self._pieces)

    def words(self, text: str) -> StatementText:
        """Add words of ours, on one line."""
        self._parts.append(text)
        self._lines += len(text.splitlines())
        return self

    def piece(self, text: str) -> StatementText:
        """Add what a user wrote, of any number of lines."""
        lines = max(len(text.splitlines()), 1)
        self._pieces.append(_Piece(text, self._lines + 1, lines))
        self._parts.append(text)
        self._lines += lines
        return self

    def listed(self, pieces: Iterable[str]) -> StatementText:
        """Add pieces with commas between them."""
        for place, text in enumerate(pieces):
            if place:
                self.words(",")
            self.piece(text)
        return self

    def joined(self, other: StatementText) -> StatementText:
        """Add all of another one."""
        self._parts += other._parts
        self._pieces += [replace(piece, first=piece.first + self._lines) for piece in other._pieces]
        self._lines += other._lines
        return self

    def rebased(self, error: SqlError) -> SqlError:
        """The error with places in the pieces that it is about, of which it shows no others.

        A piece that stands in several places of the statement is told of once.
        """
        found = [(reason, self._piece_at(reason.line)) for reason in error.reasons]
        shown: dict[str, int] = {}  # the first line of each, from 0
        lines = 0
        for _, piece in found:
            if piece is not None and piece.text not in shown:
                shown[piece.text] = lines
                lines += piece.lines
        reasons = dict.fromkeys(_moved(reason, piece, shown) for reason, piece in found)
        return type(error)(list(reasons), "\n".join(shown))

    def _piece_at(self, line: int) -> _Piece | None:
        """The piece on that line, or the one that ends before it."""
        return next((piece for piece in reversed(self._pieces) if piece.first <= line), None)


def _moved(reason: Reason, piece: _Piece | None, shown: Mapping[str, int]) -> Reason:
    if piece is None:
        return Reason(reason.message)
    first = shown[piece.text]
    line = reason.line - piece.first
    if line < piece.lines:
        return Reason(reason.message, first + line + 1, reason.column)
    if not reason.message.startswith("syntax error"):
        return Reason(reason.message)
    # What follows is ours, and right: the piece is not complete.
    last = [*piece.text.splitlines(), ""][piece.lines - 1].rstrip()
    return Reason(_CUT_SHORT, first + piece.lines, len(last) + 1)
