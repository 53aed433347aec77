"""What a query sees of the text around it: the queries that WITH names, and the rows of a query outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from bamquery.errors import BamQueryError
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.text.identifiers import fold_case


class OuterColumns(Protocol):
    """The clause of a query that a subquery stands in."""

    def outer_column(self, name: str, table: str, node: exp.Expr) -> Expression | None:
        """The column of that name outside, or None; `ValueError` for one of several."""
        ...


class Correlation:
    """The columns that a subquery takes from the queries around it.

    Within the subquery's plan number `k` of them is the column -1 - k.
    """

    def __init__(self, around: OuterColumns) -> None:
        self._around = around
        self.columns: list[Expression] = []

    def find(self, name: str, table: str, node: exp.Expr) -> ColumnRef | None:
        """A column of the outer query, as the subquery's plan refers to it."""
        found = self._around.outer_column(name, table, node)
        if found is None:
            return None
        value = decode(found)
        if value not in self.columns:
            self.columns.append(value)
        return ColumnRef(-1 - self.columns.index(value), name, value.type)


@dataclass(frozen=True)
class NamedQuery:
    """What WITH names.

    Attributes:
        name: as it is written.
        plan: what it stands for, or what is wrong with it, which counts only where it is named.
        correlation: the subquery for which it was made, if it takes columns from outside.
    """

    name: str
    plan: Plan | BamQueryError
    correlation: Correlation | None


@dataclass(frozen=True)
class Environment:
    """Immutable; a query hands a wider one to the queries within it.

    Attributes:
        named: by folded name, the innermost where several have it.
        correlation: of the subquery that this is about; None for a query that is none.
        beside: folded names of what stands in the FROM that a subquery stands in, which it cannot use.
    """

    named: Mapping[str, NamedQuery] = field(default_factory=dict)
    correlation: Correlation | None = None
    beside: frozenset[str] = frozenset()

    def for_from_subquery(self, names: Iterable[str]) -> Environment:
        """That of a subquery in FROM, with the names of all that stands there."""
        return replace(self, beside=self.beside.union(map(fold_case, names)))

    def with_query(self, query: NamedQuery) -> Environment:
        """One name more, which hides others."""
        return replace(self, named={**self.named, fold_case(query.name): query})

    def for_subquery(self, around: OuterColumns) -> tuple[Environment, Correlation]:
        """That of a subquery."""
        correlation = Correlation(around)
        return replace(self, correlation=correlation), correlation

    def names(self) -> Sequence[str]:
        """What WITH names, as written."""
        return [query.name for query in self.named.values()]


NOTHING_AROUND = Environment()
