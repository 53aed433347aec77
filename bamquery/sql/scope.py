"""Which columns a query may name, and what its select list calls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from bamquery.naming import fold, suggestion
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field


@dataclass(frozen=True)
class Scope:
    """The columns of what stands in FROM.

    Attributes:
        table: what the statement calls it; empty where there is no FROM or no name.
        columns: in the order of the plan below.
    """

    table: str
    columns: tuple[ColumnRef, ...]

    @classmethod
    def of(cls, table: str, fields: Iterable[Field]) -> Scope:
        """The scope over a plan's output; names that are taken already get a number."""
        fields = tuple(fields)
        names = unique_names([field.name for field in fields])
        return cls(
            table,
            tuple(ColumnRef(i, name, f.type) for i, (name, f) in enumerate(zip(names, fields, strict=True))),
        )

    def renamed(self, table: str, names: Sequence[str]) -> Scope:
        """The same columns under an alias and other names."""
        fields = [Field(name, column.type) for name, column in zip(names, self.columns, strict=True)]
        return Scope.of(table, fields)

    def find(self, name: str) -> ColumnRef | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if fold(column.name) == fold(name)), None)

    def check_table(self, table: str) -> None:
        """Raise `ValueError` unless a qualifier names this scope's table."""
        if fold(table) != fold(self.table):
            known = [self.table] if self.table else []
            raise ValueError(f'there is no table "{table}" in FROM.{suggestion(table, known)}')

    def missing(self, name: str, others: Sequence[str] = ()) -> str:
        """Words for a column that is not there; `others` are names that could have been meant too."""
        if not self.columns and not others:
            return f'there is no column "{name}", for lack of a FROM'
        known = [column.name for column in self.columns]
        return f'there is no column "{name}".{suggestion(name, [*known, *others])}'


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with `_1`, `_2`, ... after those that are there already, as DuckDB does."""
    taken: set[str] = set()
    result = []
    for name in names:
        unique, number = name, 0
        while fold(unique) in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(fold(unique))
        result.append(unique)
    return result


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
        """The expression that has this alias, or None; `ValueError` for one that comes later."""
        for position, node in enumerate(self._nodes):
            if node is not None and fold(node.alias) == fold(name):
                if position >= self.visible:
                    raise ValueError(f'"{name}" cannot be used before it is defined')
                expression: exp.Expr = node.this
                return expression
        return None
