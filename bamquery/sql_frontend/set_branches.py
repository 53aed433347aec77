"""What ORDER BY behind a set operation may name: the columns of each SELECT, as that has written them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from bamquery.naming import fold
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan
from bamquery.sql_frontend.scope import ALIAS_TABLE, Scope


@dataclass(frozen=True)
class Branch:
    """One SELECT of a set operation.

    Attributes:
        names: of its columns.
        written: what each column is written as; a column for what * stands for.
        scope: over its FROM.
        positions: which column of the whole result each of its columns is.
    """

    names: Sequence[str]
    written: Sequence[exp.Expr | Expression]
    scope: Scope
    positions: Sequence[int]

    def moved(self, positions: Sequence[int]) -> Branch:
        """The same where column i of the rows so far is column `positions[i]` of a wider result."""
        return replace(self, positions=[positions[position] for position in self.positions])


@dataclass(frozen=True)
class Rows:
    """A query's plan and the SELECTs that its rows come from, in the order of the text."""

    plan: Plan
    branches: Sequence[Branch] = ()


def named_position(node: exp.Expr, branches: Sequence[Branch]) -> int | None:
    """Which column of the result a name means: the first SELECT that has it counts."""
    if not isinstance(node, exp.Column) or (node.table and fold(node.table) != ALIAS_TABLE):
        return None
    for branch in branches:
        for name, position in zip(branch.names, branch.positions, strict=True):
            if fold(name) == fold(node.name):
                return position
    return None


def written_position(node: exp.Expr, branches: Sequence[Branch]) -> int | None:
    """Which column of the result some SELECT writes as this expression.

    A column without its table is that of the first SELECT which has one of that name.

    Raises:
        ValueError: it is written for several columns.
    """
    wanted = node
    for branch in branches:
        wanted = _qualified(wanted, branch.scope)
    found = {
        position
        for branch in branches
        for written, position in zip(_qualified_columns(branch), branch.positions, strict=True)
        if written == wanted
    }
    if len(found) > 1:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} stands for several columns of the result: write its number"
        )
    return found.pop() if found else None


def _qualified_columns(branch: Branch) -> Iterator[exp.Expr | None]:
    for written in branch.written:
        if isinstance(written, exp.Expr):
            yield _qualified(written, branch.scope)
        else:  # * stands for columns only
            yield _of_star(written, branch.scope) if isinstance(written, ColumnRef) else None


def _qualified(node: exp.Expr, scope: Scope) -> exp.Expr:
    """The expression with tables before its columns, in a form that is equal for all ways to write it."""

    def step(part: exp.Expr) -> exp.Expr:
        match part:
            case exp.Column() if not isinstance(part.this, exp.Star):
                return _column(part.name, part.table or _owner(part.name, scope))
            case exp.Anonymous():
                part.set("this", part.name.lower())
        return part

    whole = exp.Paren(this=node.copy())
    for paren in list(whole.find_all(exp.Paren))[1:]:
        paren.replace(paren.this)
    qualified: exp.Expr = whole.this.transform(step, copy=False)
    return qualified


def _column(name: str, table: str) -> exp.Column:
    column = exp.column(exp.to_identifier(fold(name), quoted=True))
    if table:
        column.set("table", exp.to_identifier(fold(table), quoted=True))
    return column


def _owner(name: str, scope: Scope) -> str:
    """The first table that has a column of that name; empty where none has."""
    for table in scope.tables:
        if any(fold(column.name) == fold(name) for column in (*table.columns, *table.hidden)):
            return table.name
    return ""


def _of_star(column: ColumnRef, scope: Scope) -> exp.Column:
    table = next((table.name for table in scope.tables if column in table.columns), "")
    return _column(column.name, table)
