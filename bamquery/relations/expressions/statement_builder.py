"""Statements put together of our words and pieces of users, and errors that tell of a piece once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bamquery.errors import SqlError
from bamquery.text.statement_text import Piece, StatementText, join_statement


@dataclass(slots=True)
class StatementBuilder:
    """A statement in work; see `bamquery.text.statement_text.joined` for how its pieces stand."""

    _pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> StatementText:
        """The statement as it is by now."""
        return join_statement(*self._pieces)

    def words(self, text: str) -> StatementBuilder:
        """Add words of ours."""
        self._pieces.append(text)
        return self

    def piece(self, text: str) -> StatementBuilder:
        """Add what a user wrote."""
        self._pieces.append(Piece(text))
        return self

    def add_list(self, pieces: Iterable[str]) -> StatementBuilder:
        """Add pieces with commas between them."""
        for place, text in enumerate(pieces):
            if place:
                self.words(",")
            self.piece(text)
        return self

    def add_all(self, other: StatementBuilder) -> StatementBuilder:
        """Add all of another one."""
        self._pieces += other._pieces
        return self


def drop_repeated_reasons(error: SqlError) -> SqlError:
    """The error without reasons that look like others: of a piece that stands in several places."""
    reasons = {reason.render(error.sql): reason for reason in reversed(error.reasons)}
    if len(reasons) == len(error.reasons):
        return error
    return type(error)(list(reversed(reasons.values())), error.sql)
