"""What ORDER BY behind a set operation may name: the columns of each SELECT, as that has written them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from bamquery.naming import fold
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan
from bamquery.sql_frontend.scope import ALIAS_TABLE, Scope

_NOT_WRITTEN: Final = "\0"
"""Before the name of a table that stands before no column in the text."""


@dataclass(frozen=True)
class Branch:
    """One SELECT of a set operation.

    Attributes:
        names: of its columns.
        written: what each column is written as; a column for what * stands for.
        scope: over its FROM.
        positions: which column of the whole result each of its columns is.
        nested: whether it belongs to a set operation within this one, not to this one itself.
    """

    names: Sequence[str]
    written: Sequence[exp.Expr | Expression]
    scope: Scope
    positions: Sequence[int]
    nested: bool = False

    def moved(self, positions: Sequence[int], *, nested: bool) -> Branch:
        """The same where column i of the rows so far is column `positions[i]` of a wider result."""
        moved = [positions[position] for position in self.positions]
        return replace(self, positions=moved, nested=self.nested or nested)


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
    """Which column of the result some SELECT writes as this: a column of a table, or any other expression.

    A column without its table is that of the first SELECT that has one of that name, nested set operations
    last; within an expression it is no other than one without its table, as in DuckDB.

    Raises:
        ValueError: it is written for several columns.
    """
    node = node.unnest()
    is_column = isinstance(node, exp.Column)
    wanted = _comparable(node)
    for branch in sorted(branches, key=lambda branch: branch.nested):
        wanted = _qualified(wanted, branch.scope, is_column=is_column)
    found = {
        position
        for branch in branches
        for written, position in zip(branch.written, branch.positions, strict=True)
        if _made(written, branch.scope) == wanted
    }
    if len(found) > 1:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} stands for several columns of the result: write its number"
        )
    return found.pop() if found else None


def _made(written: exp.Expr | Expression, scope: Scope) -> exp.Expr | None:
    """What a SELECT selects, with tables before columns; None for what * stands for and is no column."""
    if isinstance(written, ColumnRef):
        table = next((table.name for table in scope.tables if written in table.columns), "")
        return _column(written.name, table)
    if not isinstance(written, exp.Expr):
        return None
    is_column = isinstance(written.unnest(), exp.Column)
    return _qualified(_comparable(written), scope, is_column=is_column)


def _comparable(node: exp.Expr) -> exp.Expr:
    """The expression in a form that is equal for upper and lower case, and without parentheses."""

    def step(part: exp.Expr) -> exp.Expr:
        match part:
            case exp.Column() if not isinstance(part.this, exp.Star):
                return _column(part.name, part.table)
            case exp.Anonymous():
                part.set("this", part.name.lower())
        return part

    whole = exp.Paren(this=node.copy())
    for paren in list(whole.find_all(exp.Paren))[1:]:
        paren.replace(paren.this)
    comparable: exp.Expr = whole.this.transform(step, copy=False)
    return comparable


def _column(name: str, table: str) -> exp.Column:
    column = exp.column(exp.to_identifier(fold(name), quoted=True))
    if table:
        column.set("table", exp.to_identifier(fold(table), quoted=True))
    return column


def _qualified(node: exp.Expr, scope: Scope, *, is_column: bool) -> exp.Expr:
    """The expression with its table before each column that has none: the first that has one of that name.

    Within an expression such a table is marked as one that is not written.
    """

    def step(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and not isinstance(part.this, exp.Star):
            for table in scope.tables:
                if any(fold(known.name) == fold(part.name) for known in (*table.columns, *table.hidden)):
                    return _column(part.name, table.name if is_column else f"{_NOT_WRITTEN}{table.name}")
        return part

    return node.transform(step)
