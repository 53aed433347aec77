"""Random set operations within each other, in an order of what some SELECT of them writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.sql.randomized.grammar.pieces import Pieces, total_order
from tests.sql.randomized.grammar.scope import Term
from tests.sql.randomized.grammar.sources import Query

_WORDS = ("UNION", "UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "UNION ALL BY NAME")
_CHANGED = ("{} + 1", "-{}", "abs({})", "coalesce({}, 3)", "({})", "{0} * {0}")
_LITTLE = 6
"""Rows of a table that are taken, so that joins stay small."""


@dataclass(frozen=True)
class _Written:
    """A query in text, its columns, and what its SELECTs name their columns and write."""

    sql: str
    columns: list[str]
    names: list[str]
    terms: list[str]


class SetOrders(Pieces):
    """Set operations of several levels, of joins by USING, of queries with WITH, ORDER BY and LIMIT."""

    def set_order(self) -> Query:
        """ORDER BY behind such a one; wrong ones among them, which both find wrong."""
        choose = self.choose
        found = self._operation(choose.number(1, 2), choose.number(1, 2))
        order = ", ".join(self._order(found) for _ in range(choose.number(1, 2)))
        width = len(found.columns)
        columns = tuple(Term(f"c{place}", "int") for place in range(width))
        text = f"{found.sql} ORDER BY {order}, {', '.join(total_order(width))}"
        return Query(text + choose.pick("", " LIMIT 5"), columns, ordered=tuple(range(width)))

    def _operation(self, width: int, depth: int) -> _Written:
        choose = self.choose
        operands = [self._operand(width, depth) for _ in range(choose.one_of((2, 2, 3)))]
        text, columns = operands[0].sql, operands[0].columns
        for operand in operands[1:]:
            word = choose.one_of(_WORDS)
            if word.endswith("NAME"):
                columns = list(dict.fromkeys([*columns, *operand.columns]))
            text += f" {word} {operand.sql}"
        names = [name for operand in operands for name in operand.names]
        return _Written(text, columns, names, [term for operand in operands for term in operand.terms])

    def _operand(self, width: int, depth: int) -> _Written:
        choose = self.choose
        if depth and choose.chance(0.3):
            found = self._operation(width, depth - 1)
            end = choose.pick("", "", "", f" ORDER BY {self._order(found)}", " ORDER BY ALL LIMIT 3")
            return replace(found, sql=f"({found.sql}{end})")
        found = self._select(width)
        match choose.number(0, 9):
            case 0:
                return replace(found, sql=f"({found.sql} ORDER BY ALL LIMIT 3)")
            case 1:
                return replace(found, sql=f"(WITH w AS (SELECT 1) {found.sql})")
            case 2:
                return replace(found, sql=f"SELECT * FROM ({found.sql})", terms=found.names)
        return found

    def _select(self, width: int) -> _Written:
        choose = self.choose
        columns: list[str] = []
        names: list[str] = []
        terms: list[str] = []
        items: list[str] = []
        table = choose.one_of(self.tables)
        alias = choose.pick("", "", "", "u", "alpha", "beta")
        known = [f"{alias or table.name}.{name}" for name in self.own(table)]
        plain = self.own(table)
        joined = ""
        if choose.chance(0.15):
            other, kind = choose.one_of(self.tables), choose.pick("", "LEFT ", "RIGHT ", "FULL ")
            joined = f" {kind}JOIN {other.name} v USING (id)"
            known += [f"v.{name}" for name in self.own(other)]
            plain = ["id"]  # others may be those of both
        for _ in range(width):
            column = choose.pick(choose.one_of(known), choose.one_of(plain))
            text = choose.one_of(_CHANGED).format(column) if choose.chance(0.6) else column
            name = choose.pick("", "x", "y", "id", choose.one_of(plain))
            names.append(name or column.rpartition(".")[2])
            columns.append(name or (names[-1] if column == text.strip("()") else text))
            terms += [text, column]
            items.append(f"{text} AS {name}" if name else text)
        where = f" WHERE {known[0]} < {_LITTLE}"
        text = f"SELECT {', '.join(items)} FROM {table.name} {alias}{joined}{where}"
        return _Written(text, columns, names, terms)

    def _order(self, found: _Written) -> str:
        """A term of ORDER BY: mostly as a SELECT writes it, or with other tables before its columns."""
        choose = self.choose
        term = choose.pick(choose.one_of(found.terms), choose.one_of(found.terms), choose.one_of(found.names))
        match choose.number(0, 9):
            case 0:
                table = choose.pick("alpha.", "beta.", "u.", "alias.", "v.")
                term = table + choose.one_of(found.names)
            case 1:
                term = choose.one_of(_CHANGED).format(choose.one_of(found.names))
            case 2:
                term = term.upper() if choose.chance(0.5) else f"({term})"
        return f"{term}{choose.one_of(self.ways)}"
