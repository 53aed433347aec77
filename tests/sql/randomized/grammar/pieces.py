"""What the grammars of special queries share: small tables, their columns, and an order of all rows."""

from __future__ import annotations

from tests.sql.randomized.grammar.expressions import LITERALS
from tests.sql.randomized.grammar.scope import Chooser
from tests.sql.randomized.grammar.subqueries import WAYS
from tests.sql.randomized.grammar.tables import Table

_SMALL = 60


def total_order(width: int) -> list[str]:
    """Terms of ORDER BY that leave only equal rows beside each other."""
    return [str(place + 1) for place in range(width)]


class Pieces:
    """Draws over the tables that are there in both databases."""

    ways = WAYS

    def __init__(self, choose: Chooser, tables: list[Table]) -> None:
        self.choose = choose
        self.tables = tables

    def small(self, table: Table, alias: str) -> str:
        """The table in FROM, or some rows of it where it has many."""
        if table.data.num_rows > _SMALL:
            return f"(SELECT * FROM {table.name} WHERE id < {_SMALL}) {alias or table.name}"
        return f"{table.name} {alias}".strip()

    def own(self, table: Table) -> list[str]:
        """The table's columns of whole numbers that are wide enough to add to; `id` first."""
        return [name for name, kind in table.kinds.items() if kind == "int" and name not in table.narrow]

    def column(self, table: Table, *kinds: str) -> str:
        """A column of one of the kinds, or a literal where there is none."""
        found = [name for name, kind in table.kinds.items() if kind in kinds]
        return (
            self.choose.one_of(found)
            if found
            else self.choose.one_of(LITERALS[self.choose.one_of(kinds)][:3])
        )
