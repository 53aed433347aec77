"""Which columns a query may name, and what its select list calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from sqlglot import exp

from bamquery.data_types.unreadable import unreadable
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field
from bamquery.sql_frontend.system_names import MAIN
from bamquery.text.identifiers import fold_case, suggestion, unique_names

ALIAS_TABLE: Final = "alias"
"""What may stand before an alias of the select list, as if it were a table."""
_SEVERAL: Final = 'several tables in FROM are called "{}": give them aliases of their own'
_NO_ROW: Final = '"{}" is a table, and a row as a value is not supported: name columns, or write {}.*'


@dataclass(frozen=True)
class ScopeTable:
    """One of the things that stand in FROM.

    Attributes:
        name: what the statement calls it; empty where it has no name.
        columns: its own, for names with the table before them and for `t.*`.
        hidden: those that are there for who names them only.
        stored: whether it is a stored table or view by its own name, no alias.
    """

    name: str
    columns: tuple[ColumnRef, ...]
    hidden: tuple[ColumnRef, ...] = ()
    stored: bool = False

    @cached_property
    def named(self) -> Mapping[str, ColumnRef]:
        """Its columns by their names without case, the first of those of one name."""
        return {fold_case(column.name): column for column in reversed(self.columns)}

    @cached_property
    def hidden_named(self) -> Mapping[str, ColumnRef]:
        """Those that are there for who names them."""
        return {fold_case(column.name): column for column in reversed(self.hidden)}


@dataclass(frozen=True)
class Scope:
    """The columns of what stands in FROM.

    Attributes:
        tables: in the order of the statement.
        columns: in the order of the plan below.
        visible: what * stands for, in that order, with the table of each: columns that USING compares come
            once, and belong to no table.
        merged: those columns that USING compares: a name alone means them before any other.
        synonyms: columns with a second name, that of the function which gives them.
        coalesced: columns that FULL JOIN merges, which are no table's, each with those that it is the first
            value of.
    """

    tables: tuple[ScopeTable, ...] = ()
    columns: tuple[ColumnRef, ...] = ()
    visible: tuple[tuple[ColumnRef, str], ...] = ()
    merged: tuple[ColumnRef, ...] = ()
    synonyms: tuple[tuple[ColumnRef, str], ...] = ()
    coalesced: tuple[tuple[ColumnRef, tuple[ColumnRef, ...]], ...] = ()

    @cached_property
    def _tables_named(self) -> Mapping[str, Sequence[ScopeTable]]:
        found: dict[str, list[ScopeTable]] = {}
        for table in self.tables:
            found.setdefault(fold_case(table.name), []).append(table)
        return found

    @cached_property
    def _visible_named(self) -> Mapping[str, Sequence[tuple[ColumnRef, str]]]:
        found: dict[str, list[tuple[ColumnRef, str]]] = {}
        for column, of in self.visible:
            found.setdefault(fold_case(column.name), []).append((column, of))
        return found

    @classmethod
    def from_fields(
        cls, table: str, fields: Iterable[Field], hidden: int = 0, *, stored: bool = False
    ) -> Scope:
        """The scope over a plan's output; names that are taken already get a number.

        The last `hidden` columns are no part of `*`.
        """
        fields = tuple(fields)
        names = unique_names([field.name for field in fields])
        columns = tuple(
            ColumnRef(i, name, f.type) for i, (name, f) in enumerate(zip(names, fields, strict=True))
        )
        shown = columns[: len(columns) - hidden]
        own = ScopeTable(table, shown, columns[len(shown) :], stored)
        return cls((own,), columns, tuple((column, table) for column in shown))

    def rename(self, table: str, names: Sequence[str]) -> Scope:
        """The same columns of one table under an alias and other names; hidden ones keep theirs."""
        hidden = self.tables[0].hidden if self.tables else ()
        names = [*names, *(column.name for column in hidden)]
        fields = [Field(name, column.type) for name, column in zip(names, self.columns, strict=True)]
        return Scope.from_fields(table, fields, len(hidden))

    @staticmethod
    def fields(columns: Sequence[ColumnRef]) -> list[Field]:
        """Fields as a plan has them that gives out those columns."""
        return [Field(column.name, column.type) for column in columns]

    def concatenate(self, right: Scope) -> Scope:
        """This one's columns, then those of another plan whose columns come after this one's."""
        width = len(self.columns)

        def move(column: ColumnRef) -> ColumnRef:
            return replace(column, index=column.index + width)

        tables = tuple(
            replace(t, columns=tuple(map(move, t.columns)), hidden=tuple(map(move, t.hidden)))
            for t in right.tables
        )
        return Scope(
            (*self.tables, *tables),
            (*self.columns, *map(move, right.columns)),
            (*self.visible, *((move(column), table) for column, table in right.visible)),
            (*self.merged, *map(move, right.merged)),
            (*self.synonyms, *((move(column), name) for column, name in right.synonyms)),
            (*self.coalesced, *((move(whole), tuple(map(move, own))) for whole, own in right.coalesced)),
        )

    def find(self, name: str, table: str = "") -> ColumnRef | None:
        """The column of that name, of a table if one is given, or None.

        Raises:
            ValueError: it is one of several, or cannot be read.
        """
        found = self._find_column(name, table)
        reason = None if found is None else unreadable(found.type)
        if reason is not None:
            raise ValueError(reason)
        return found

    def _find_column(self, name: str, table: str) -> ColumnRef | None:
        if table:
            if not self.has_table(table):
                raise ValueError(self._no_table(table))
            own = self._tables_named[fold_case(table)]
            found_in = [column for known in own if (column := self._column_in(known, name)) is not None]
            if len(found_in) > 1:
                raise ValueError(_SEVERAL.format(table))
            return found_in[0] if found_in else None
        found = list(self._visible_named.get(fold_case(name), ()))
        if not found and self.synonyms:
            found = [(column, of) for column, of in self.visible if self._is_synonym(column, name)]
        found = found or [
            (column, own.name)
            for own in self.tables
            for column in own.hidden
            if fold_case(column.name) == fold_case(name)
        ]
        if len(found) > 1:
            found = [(column, of) for column, of in found if column in self.merged] or found
        if len(found) > 1:
            places = list(dict.fromkeys(f"{of}.{column.name}" for column, of in found if of))
            hint = f": write {' or '.join(places)}" if len(places) > 1 else ""
            raise ValueError(f'"{name}" could be the column of several tables{hint}')
        return found[0][0] if found else None

    def _column_in(self, own: ScopeTable, name: str) -> ColumnRef | None:
        folded = fold_case(name)
        synonym = next((c for c in own.columns if self._is_synonym(c, name)), None) if self.synonyms else None
        return own.named.get(folded) or synonym or own.hidden_named.get(folded)

    def _is_synonym(self, column: ColumnRef, name: str) -> bool:
        return any(
            column == known and fold_case(name) == fold_case(second) for known, second in self.synonyms
        )

    def find_column(self, name: str, table: str = "") -> ColumnRef | None:
        """The column of that name, readable or not; None too where there is no such table.

        Raises:
            ValueError: it is one of several.
        """
        return None if table and not self.has_table(table) else self._find_column(name, table)

    def table_of(self, column: ColumnRef) -> ScopeTable | None:
        """The table that has the column; None for one that FULL JOIN merges."""
        own = (table for table in self.tables if column in table.columns or column in table.hidden)
        return next(own, None)

    def sources_of(self, column: ColumnRef) -> tuple[ColumnRef, ...]:
        """The columns of tables whose first value it is: itself, but for one that FULL JOIN merges."""
        return next((sources for whole, sources in self.coalesced if whole == column), (column,))

    def has_table(self, table: str) -> bool:
        """Whether something in FROM has that name."""
        return fold_case(table) in self._tables_named

    def check_names(self) -> None:
        """Raise `ValueError` where two tables have one name, and a column of one name."""
        for table in self.tables:
            if table.name and len(self._tables_named[fold_case(table.name)]) > 1:
                for column in table.columns:
                    self._find_column(column.name, table.name)

    def columns_of(self, table: str) -> tuple[ColumnRef, ...]:
        """What `table.*` stands for; `ValueError` unless that is one table's name."""
        found = self._tables_named.get(fold_case(table), ())
        if len(found) > 1:
            raise ValueError(_SEVERAL.format(table))
        if not found:
            raise ValueError(self._no_table(table))
        return found[0].columns

    def _no_table(self, name: str) -> str:
        known = [table.name for table in self.tables if table.name]
        return f'there is no table "{name}" in FROM.{suggestion(name, known)}'

    def missing_message(self, name: str, others: Sequence[str] = (), table: str = "") -> str:
        """Words for a column that is not there; `others` are names that could have been meant too."""
        if fold_case(table) == MAIN and self.has_table(name):
            return _NO_ROW.format(f"{table}.{name}", name)
        if table and not self.has_table(table):
            return self._no_table(table)
        if not table and self.has_table(name):
            return _NO_ROW.format(name, name)
        if not self.columns and not others:
            return f'there is no column "{name}", for lack of a FROM'
        here = [own for own in self.tables if not table or fold_case(own.name) == fold_case(table)]
        known = [column.name for own in here for column in own.columns]
        where = f' in table "{table}"' if table and len(self.tables) > 1 else ""
        return f'there is no column "{name}"{where}.{suggestion(name, [*known, *others])}'


class SelectAliases:
    """The select list's aliases, which other clauses and later items may use for the expression.

    `visible` is how many select items may be referred to; all of them in clauses, those before it in an
    item.
    """

    def __init__(self, items: Sequence[exp.Expr]) -> None:
        self._nodes = [item if isinstance(item, exp.Alias) else None for item in items]
        self.visible = len(items)

    @property
    def names(self) -> list[str]:
        """Aliases that may be referred to, as written."""
        return [node.alias for node in self._nodes[: self.visible] if node is not None]

    def find(self, name: str) -> exp.Expr | None:
        """The last expression that has this alias, or None; `ValueError` for one that comes later."""
        for position, node in reversed(list(enumerate(self._nodes))):
            if node is not None and fold_case(node.alias) == fold_case(name):
                if position >= self.visible:
                    raise ValueError(f'"{name}" cannot be used before it is defined')
                expression: exp.Expr = node.this
                return expression
        return None
