"""Random queries about names: aliases that shadow columns, tables before them, ORDER BY of set operations."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sql.randomized.grammar.pieces import Pieces, total_order
from tests.sql.randomized.grammar.scope import Term
from tests.sql.randomized.grammar.sources import Query

_SET_WORDS = ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL")
_CHANGED = {
    "int": ("{} + 1", "-{}::INTEGER", "({})", "coalesce({}, 3)"),
    "txt": ("lower({})", "{} || 'x'", "coalesce({}, 'a')"),
    "date": ("coalesce({}, DATE '2024-01-01')", "({})"),
}


@dataclass(frozen=True)
class Branch:
    """One SELECT: its text, what each column is called and written as, and the name of its table."""

    sql: str
    names: list[str]
    written: list[str]
    columns: list[str]
    table: str


class Names(Pieces):
    """Queries in which a name may mean several things."""

    def set_operation(self) -> Query:
        """ORDER BY behind a set operation, by what one of its SELECTs calls or writes a column."""
        choose = self.choose
        by_name = choose.chance(0.15)  # where one name may stand for columns of any kind
        kinds = [
            "int" if by_name else choose.pick("int", "int", "txt", "date") for _ in range(choose.number(1, 3))
        ]
        branches = [self._branch(kinds) for _ in range(choose.one_of((2, 2, 2, 3)))]
        text = branches[0].sql
        # One word for all: of what stands in a set operation within another DuckDB knows some expressions.
        word = f"{choose.pick('UNION', 'UNION ALL')} BY NAME" if by_name else choose.one_of(_SET_WORDS)
        if not word.startswith("UNION"):
            branches = branches[:2]
        for branch in branches[1:]:
            text += f" {word} ({branch.sql})" if choose.chance(0.15) else f" {word} {branch.sql}"
        terms = [self._term(branches, kinds) for _ in range(choose.number(1, 2))]
        if by_name:  # how many columns there are depends on their names
            return Query(f"SELECT * FROM ({text} ORDER BY {', '.join(terms)}) ORDER BY ALL", ())
        return self._sorted(text, terms, len(kinds))

    def _branch(self, kinds: list[str]) -> Branch:
        choose = self.choose
        table = choose.one_of(self.tables)
        called = choose.pick("", "", "t", "u")
        named = called or table.name
        names, written, columns, items = [], [], [], []
        for kind in kinds:
            column = self.column(table, kind)
            text = choose.pick(column, f"{named}.{column}") if column in table.kinds else column
            if column in table.kinds and choose.chance(0.4):
                text = choose.one_of(_CHANGED[kind]).format(text)
            alias = choose.pick("", "x", "y", "id", *self.own(table)[:3])
            names.append(alias or column)
            written.append(text)
            columns.append(column)
            items.append(f"{text} AS {alias}" if alias else text)
        sql = f"SELECT {', '.join(items)} FROM {self.small(table, called)}"
        return Branch(sql, names, written, columns, named)

    def _term(self, branches: list[Branch], kinds: list[str]) -> str:
        choose = self.choose
        branch = choose.one_of(branches)
        place = choose.number(0, len(kinds) - 1)
        name, written, column = branch.names[place], branch.written[place], branch.columns[place]
        plain = column.isidentifier()
        term = choose.pick(
            name if plain or name != column else str(place + 1),
            written if plain else str(place + 1),
            f"{branch.table}.{column}" if plain else str(place + 1),
            f"({written})" if plain else f"({place + 1})",
            f"coalesce({branches[0].names[place]}, {branches[0].names[place]})" if plain else str(place + 1),
            str(place + 1),
        )
        return f"{term}{choose.one_of(self.ways)}"

    def shadows(self) -> Query:
        """Aliases with the names of columns, in every clause that may use them."""
        choose = self.choose
        from_, tables = self._from()
        names = ["x", "id", *self.own(tables[0][1])[:2]]
        items: list[str] = []
        for place in range(choose.number(1, 3)):
            items.append(f"{self._number(tables, names[:place])} AS {choose.one_of(names)}")
        where = (
            f" WHERE {self._number(tables, names)} {choose.pick('>', '<=', '<>')} 2"
            if choose.chance(0.4)
            else ""
        )
        qualify = ""
        if choose.chance(0.2):
            over = f"ORDER BY {self._number(tables, names)}, {self._ids(tables)}"
            qualify = f" QUALIFY row_number() OVER ({over}) < 9"
        distinct = choose.pick("", "", "DISTINCT ")
        by_name = choose.chance(0.6) and not distinct  # only what is selected can be an order of DISTINCT
        terms = [f"{self._number(tables, names)}{choose.one_of(self.ways)}"] if by_name else []
        text = f"SELECT {distinct}{', '.join(items)} FROM {from_}{where}{qualify}"
        return self._sorted(text, terms, len(items))

    def groups(self) -> Query:
        """GROUP BY and HAVING with names that are columns, aliases or both."""
        choose = self.choose
        from_, tables = self._from()
        own = self.own(tables[0][1])
        names = ["x", "id", "n", *own[:2]]
        key = self._number(tables, [])
        alias, total = choose.one_of(names), choose.one_of(names)
        call = choose.pick("count(*)", f"max({self._number(tables, [])})", f"sum({self._number(tables, [])})")
        by = choose.pick(alias, "1", f"alias.{alias}", "ALL", key, f"ROLLUP ({key})", f"ROLLUP ({alias})")
        having = ""
        if choose.chance(0.5):
            having = f" HAVING {choose.pick(total, f'alias.{total}', call, alias)} {choose.pick('>', '<=')} 2"
        terms = [choose.pick(alias, total, f"alias.{total}", call, key)] if choose.chance(0.6) else []
        grouping = choose.pick("", "", ", GROUPING()") if "ROLLUP" in by else ""
        text = f"SELECT {key} AS {alias}, {call} AS {total}{grouping} FROM {from_} GROUP BY {by}{having}"
        return self._sorted(text, terms, 2 + bool(grouping))

    def _from(self) -> tuple[str, list[tuple[str, object]]]:
        """FROM of one or two tables, joined by `id`; queries without an alias among them."""
        choose = self.choose
        first, second = choose.one_of(self.tables), choose.one_of(self.tables)
        called = choose.pick("", "t", "s")
        text = self.small(first, called)
        tables: list[tuple[str, object]] = [(called or first.name, first)]
        if choose.chance(0.4):
            return text, tables
        other = choose.pick("u", "t", "")
        joined = self.small(second, other)
        name = other or second.name
        if choose.chance(0.25):
            listed = ", ".join(["id", *self.own(second)[:2]])
            joined, name = f"(SELECT {listed} FROM {self.small(second, '')})", "unnamed_subquery"
        tables.append((name, second))
        if name == tables[0][0] or choose.chance(0.4):
            kind = choose.pick("JOIN", "LEFT JOIN", "FULL JOIN")
            return f"{text} {kind} {joined} USING (id)", tables
        return f"{text} {choose.pick('JOIN', 'LEFT JOIN')} {joined} ON {tables[0][0]}.id = {name}.id", tables

    def _number(self, tables: list[tuple[str, object]], aliases: list[str]) -> str:
        """A whole number: a column by itself or with its table, or an alias."""
        choose = self.choose
        name, table = choose.one_of(tables)
        column = choose.one_of(["id", *self.own(table)])  # type: ignore[arg-type]
        drawn = [column, f"{name}.{column}", f"{name}.{column}"]
        if aliases:
            drawn += [choose.one_of(aliases), f"alias.{choose.one_of(aliases)}"]
        text = choose.one_of(drawn)
        return choose.pick(text, text, f"({text} + 1)", f"abs({text}::INTEGER)")

    def _ids(self, tables: list[tuple[str, object]]) -> str:
        return ", ".join(f"{name}.id" for name, _ in tables)

    def _sorted(self, text: str, terms: list[str], width: int) -> Query:
        """The query in an order that tells all rows apart."""
        columns = tuple(Term(f"c{place}", "int") for place in range(width))
        order = ", ".join([*terms, *total_order(width)])
        limit = self.choose.pick("", "", " LIMIT 5", " LIMIT 3 OFFSET 1")
        return Query(f"{text} ORDER BY {order}{limit}", columns, ordered=tuple(range(width)))
