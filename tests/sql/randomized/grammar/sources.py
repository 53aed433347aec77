"""What stands behind FROM in random queries: tables, queries in their place, joins of all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from tests.sql.randomized.grammar.expressions import COMPARISONS, LITERALS, Expressions
from tests.sql.randomized.grammar.scope import NUMBERS, Chooser, Scope, Term
from tests.sql.randomized.grammar.tables import Table

_LARGE = 1000


@dataclass(frozen=True)
class Query:
    """A query's text and its columns, whose `sql` is their name.

    `unique` names columns that tell its rows apart; rows are in the order of those at the places `ordered`.
    """

    sql: str
    columns: tuple[Term, ...]
    unique: tuple[str, ...] | None = None
    ordered: tuple[int, ...] = ()


class Sources(ABC):
    """FROM over the tables and views that are there in both databases."""

    def __init__(self, choose: Chooser, tables: list[Table]) -> None:
        self.choose = choose
        self.tables = tables
        self.views: list[tuple[str, Query]] = []
        self.expressions = Expressions(choose)
        self.depth = 0
        self.comma = False
        self.seen_large = False
        self.large = any(table.data.num_rows > _LARGE for table in tables)

    @abstractmethod
    def nested_query(self, *, small: bool = False) -> Query:
        """A query that stands within another."""

    def table(self) -> tuple[str, Scope]:
        """A table with an alias."""
        table = self.choose.one_of(self.tables)
        if table.data.num_rows > _LARGE:  # once a query: joined with itself it has millions of rows
            table = self.choose.one_of(self.tables[1:]) if self.seen_large else table
            self.seen_large = True
        alias = self.choose.alias()
        columns = tuple(
            Term(f"{alias}.{name}", kind, plain=True, narrow=name in table.narrow, name=name)
            for name, kind in table.kinds.items()
        )
        unique = tuple(column for column in columns if column.name == "id")
        return f"{table.name} {self.choose.pick('', 'AS ')}{alias}", Scope(columns, unique)

    def source(self, outer: Scope | None = None) -> tuple[str, Scope]:
        """A table, or a query in its place."""
        draw = self.choose.seed.random()
        if self.views and draw < 0.07:
            name, query = self.choose.one_of(self.views)
            return self._named(name, query)
        if draw < 0.1:
            return self._values()
        if self.depth < 2 and draw < (0.2 if self.depth == 0 else 0.13):
            query = self.nested_query(small=True)
            return self._named(f"({query.sql})", query)
        return self.table()

    def _named(self, text: str, query: Query) -> tuple[str, Scope]:
        alias = self.choose.alias()
        columns = tuple(replace(column, sql=f"{alias}.{column.name}") for column in query.columns)
        unique = None
        if query.unique is not None:
            unique = tuple(column for column in columns if column.name in query.unique)
        return f"{text} {alias}", Scope(columns, unique)

    def _values(self) -> tuple[str, Scope]:
        alias = self.choose.alias()
        kinds = [
            self.choose.pick("int", "txt", "dec", "date", "bool") for _ in range(self.choose.number(1, 3))
        ]
        rows = [
            ", ".join(
                ["NULL" if self.choose.chance(0.2) else self.choose.one_of(LITERALS[kind]) for kind in kinds]
            )
            for _ in range(self.choose.number(1, 4))
        ]
        first = ", ".join(self.choose.one_of(LITERALS[kind][:2]) for kind in kinds)
        names = [f"v{i}" for i in range(len(kinds))]
        columns = tuple(
            Term(f"{alias}.{name}", kind, name=name) for name, kind in zip(names, kinds, strict=True)
        )
        listed = ", ".join(f"({row})" for row in [first, *rows])
        return f"(VALUES {listed}) {alias}({', '.join(names)})", Scope(columns)

    def from_(self, outer: Scope | None = None, most: int = 3) -> tuple[str, Scope]:
        """What stands behind FROM, and what it brings into sight."""
        text, scope = self.source(outer)
        joined = (
            self.choose.one_of((0, 0, 0, 0, 0, 1, 1, 1, 2))
            if self.depth == 0
            else self.choose.one_of((0, 0, 0, 0, 0, 1))
        )
        for _ in range(min(joined, most - 1)):
            text, scope = self._join(text, scope)
            if self.comma:  # what is joined behind a comma sees only what stands behind the comma
                self.comma = False
                break
        return text, replace(scope, outer=outer)

    def _join(self, text: str, left: Scope) -> tuple[str, Scope]:
        choose = self.choose
        draw = choose.seed.random()
        if draw < 0.12:
            return self._asof(text, left)
        other, right = self.source()
        both = _together(left, right)
        if draw < 0.18 and not self.large:
            word = choose.pick(" CROSS JOIN ", ", ")
            self.comma = word == ", "
            return f"{text}{word}{other}", both
        if draw < 0.33:
            return self._using(text, left, other, right)
        kinds = (
            "JOIN",
            "INNER JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT OUTER JOIN",
            "SEMI JOIN",
            "ANTI JOIN",
        )
        kind = choose.one_of(kinds)
        condition = self._on(left, right)
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return f"{text} {kind} {other} ON {condition}", left
        return f"{text} {kind} {other} ON {condition}", both

    def pair(self, left: Scope, right: Scope) -> tuple[Term, Term] | None:
        """Columns of the two that compare."""
        for _ in range(5):
            one = self.choose.one_of(left.columns)
            kinds = (
                NUMBERS
                if one.kind in NUMBERS
                else ("date", "ts")
                if one.kind in ("date", "ts")
                else (one.kind,)
            )
            found = [column for column in right.columns_of_kinds(*kinds) if not column.near]
            if found and not one.near and one.kind != "ival":
                return one, self.choose.one_of(found)
        return None

    def _on(self, left: Scope, right: Scope) -> str:
        choose = self.choose
        parts = []
        for _ in range(1 if self.large else choose.one_of((0, 1, 1, 1, 2))):
            pair = self.pair(left, right)
            if pair is not None:
                sides = [pair[0].sql, pair[1].sql]
                if pair[1].kind == "int" and pair[1].plain and choose.chance(0.1):
                    sides[1] = f"({sides[1]}::INTEGER + 1)"
                if choose.chance(0.5):
                    sides.reverse()
                parts.append(f" {choose.pick('=', '=', '=', 'IS NOT DISTINCT FROM')} ".join(sides))
        if self.large and not parts:
            return "FALSE"
        both = _together(left, right)
        if not parts or choose.chance(0.35):
            pair = self.pair(left, right)
            if pair is not None and choose.chance(0.7):
                parts.append(f"{pair[0].sql} {choose.one_of(COMPARISONS)} {pair[1].sql}")
            else:
                with self.expressions.without_queries():
                    parts.append(self.expressions.truth(both, 1))
        if len(parts) > 1 and choose.chance(0.15) and not self.large:
            return f"({' OR '.join(parts)})"
        return " AND ".join(parts)

    def _using(self, text: str, left: Scope, other: str, right: Scope) -> tuple[str, Scope]:
        """USING or NATURAL, where the two have names in common that no other table has."""
        choose = self.choose
        mine, theirs = _by_name(left), _by_name(right)
        common = [
            name
            for name, column in mine.items()
            if name in theirs and column.kind == theirs[name].kind and not column.near and "." in column.sql
        ]
        if not common:
            return f"{text} JOIN {other} ON {self._on(left, right)}", _together(left, right)
        names = choose.choose_some(common, 1, 2)
        side = choose.pick("", "LEFT ", "RIGHT ", "FULL ", "INNER ", "SEMI ", "ANTI ")
        joined = f"{text} {side}JOIN {other} USING ({', '.join(names)})"
        shared = {column.name for column in left.columns} & {column.name for column in right.columns}
        if shared == set(names) and choose.chance(0.5):
            joined = f"{text} NATURAL {side}JOIN {other}"
        if side in ("SEMI ", "ANTI "):
            return joined, left
        both = _together(left, right)
        merged = tuple(Term(name, mine[name].kind, local=True, name=name) for name in names)
        rest = tuple(column for column in both.columns if column.name not in names)
        return joined, Scope(merged + rest, both.unique)

    def _asof(self, text: str, left: Scope) -> tuple[str, Scope]:
        """The nearest row: of a table in which the moments of each key differ."""
        choose = self.choose
        table = choose.one_of(self.tables)
        alias = choose.alias()
        moments = [name for name, kind in table.kinds.items() if kind in ("int", "date", "ts", "dec")]
        near = choose.one_of(moments)
        keys = [
            name
            for name, kind in table.kinds.items()
            if kind in ("int", "txt", "bool") and name not in (near, "id")
        ]
        chosen = choose.choose_some(keys, 0, 1)
        if table.kinds[near] == "int":
            mine = left.columns_of_kinds("int", "dec")
        else:
            mine = left.columns_of_kinds(
                *(("date", "ts") if table.kinds[near] in ("date", "ts") else ("int", "dec"))
            )
        parts = []
        for key in chosen:
            equal = [column for column in left.columns_of_kinds(table.kinds[key]) if not column.near]
            if not equal:
                chosen = []
                break
            parts.append(f"{choose.one_of(equal).sql} = {alias}.{key}")
        if not mine:
            return text, left
        parts.append(f"{choose.one_of(mine).sql} {choose.pick('>=', '>', '<=', '<')} {alias}.{near}")
        listed = ", ".join([*chosen, near])
        grouped = f"(SELECT {listed}, max(id) AS z FROM {table.name} GROUP BY {listed})"
        names = [*chosen, near, "z"]
        columns = tuple(
            Term(f"{alias}.{name}", table.kinds.get(name, "int"), plain=name != "z", narrow=True, name=name)
            for name in names
        )
        kind = choose.pick("ASOF JOIN", "ASOF LEFT JOIN")
        return f"{text} {kind} {grouped} {alias} ON {' AND '.join(parts)}", Scope(
            left.columns + columns, left.unique
        )


def _by_name(scope: Scope) -> dict[str, Term]:
    """Columns whose name no other column has."""
    names = [column.name for column in scope.columns]
    return {column.name: column for column in scope.columns if names.count(column.name) == 1}


def _together(left: Scope, right: Scope) -> Scope:
    unique = None if left.unique is None or right.unique is None else left.unique + right.unique
    return Scope(left.columns + right.columns, unique)
