"""What a random expression may name: the columns in sight, by kind, and those of the queries around."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

T = TypeVar("T")
NUMBERS = ("int", "dec", "flt")
EXACT_KINDS = ("int", "dec", "flt", "txt", "date", "ts", "time", "bool")


@dataclass(frozen=True)
class Term:
    """An expression and what may be asked of it.

    Attributes:
        sql: its text, safe to put beside any operator.
        kind: int, dec, flt, txt, date, ts, time, bool or ival.
        near: its last bits depend on the order of additions, or on the library of mathematics.
        plain: a stored column or a literal: small, with the sign of zero that everyone sees.
        narrow: of a type so small that arithmetic overflows.
        local: a name without a table, which queries within would take for another.
        name: as a column.
    """

    sql: str
    kind: str
    near: bool = False
    plain: bool = False
    narrow: bool = False
    local: bool = False
    name: str = ""


@dataclass(frozen=True)
class Scope:
    """Columns in sight.

    Attributes:
        unique: columns that together tell all rows apart, if that is known.
        outer: the scope of the query around this one.
    """

    columns: tuple[Term, ...]
    unique: tuple[Term, ...] | None = None
    outer: Scope | None = None

    def columns_of_kinds(self, *kinds: str) -> list[Term]:
        """The columns of these kinds."""
        return [column for column in self.columns if column.kind in kinds]

    def nest(self, outer: Scope) -> Scope:
        """These columns in a query within another one."""
        seen = tuple(column for column in outer.columns if not column.local)
        return replace(self, outer=replace(outer, columns=seen))


@dataclass
class Chooser:
    """Draws for all that is random."""

    seed: random.Random
    aliases: int = field(default=0)

    def pick(self, *choices: str) -> str:
        """One of the texts."""
        return choices[int(self.seed.random() * len(choices))]

    def chance(self, share: float) -> bool:
        """True so often."""
        return self.seed.random() < share

    def number(self, least: int, most: int) -> int:
        """A whole number between the two, both included."""
        return least + int(self.seed.random() * (most - least + 1))

    def one_of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[int(self.seed.random() * len(choices))]

    def choose_some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Several of them, each once, in any order."""
        return self.seed.sample(list(choices), min(len(choices), self.number(least, most)))

    def alias(self) -> str:
        """A name that no other table has."""
        self.aliases += 1
        return f"a{self.aliases}"
