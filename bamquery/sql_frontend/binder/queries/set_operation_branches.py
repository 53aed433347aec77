"""What ORDER BY behind a set operation may name: the columns of each SELECT, as that has written them.

It is bound in two steps, as in DuckDB. By the text alone: where a term is an expression that no SELECT writes
just so, all terms are of the rows, as if the operation stood in FROM (`any_unwritten`). Else each name gets
the table before it that it has in the first SELECT which knows the name, and means what is selected as that
(`named_position`, `written_position`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan
from bamquery.sql_frontend.binder.scope import ALIAS_TABLE, Scope
from bamquery.sql_frontend.system_names import MAIN
from bamquery.text.identifiers import fold_case


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

    def map_columns(self, positions: Sequence[int]) -> Branch:
        """The same where column i of the rows so far is column `positions[i]` of a wider result."""
        return replace(self, positions=[positions[position] for position in self.positions])


@dataclass(frozen=True)
class Rows:
    """A query's plan and where its rows come from.

    Attributes:
        branches: the SELECTs, in the order of the text.
        scopes: those over their FROM that give tables to names without one, in the order of asking.
        combined: whether it is a set operation.
    """

    plan: Plan
    branches: Sequence[Branch] = ()
    scopes: Sequence[Scope] = ()
    combined: bool = False

    def with_plan(self, plan: Plan) -> Rows:
        """The same of another plan with as many columns, such as the rows sorted."""
        return replace(self, plan=plan)


def any_unwritten(terms: Sequence[exp.Expr], query: exp.Expr) -> bool:
    """Whether a term is an expression, no name or constant, that no SELECT of the set operation writes so."""
    expressions = [term for term in terms if not isinstance(term.unnest(), exp.Column)]
    written = {_comparable(item) for item in _selected_expressions(query)} if expressions else set()
    return any(_comparable(term) not in written for term in expressions)


def named_position(node: exp.Expr, branches: Sequence[Branch]) -> int | None:
    """Which column of the result a name means: the first SELECT that has it counts."""
    if not isinstance(node, exp.Column) or (node.table and fold_case(node.table) != ALIAS_TABLE):
        return None
    for branch in branches:
        for name, position in zip(branch.names, branch.positions, strict=True):
            if fold_case(name) == fold_case(node.name):
                return position
    return None


def written_position(node: exp.Expr, rows: Rows) -> int | None:
    """Which column of the result some SELECT writes as this, tables before all columns.

    Raises:
        ValueError: it is written for several columns, or a name is that of several tables.
    """
    wanted = _comparable(node)
    for scope in rows.scopes:
        wanted = _qualify_columns(wanted, scope)
    found = {
        position
        for branch in rows.branches
        for written, position in zip(branch.written, branch.positions, strict=True)
        if _selected_columns(written, branch.scope) == wanted
    }
    if len(found) > 1:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} stands for several columns of the result: write its number"
        )
    return found.pop() if found else None


def _selected_expressions(query: exp.Expr) -> Iterator[exp.Expr]:
    """What the SELECTs of a set operation select, as written."""
    waiting = [query]
    while waiting:
        match waiting.pop():
            case exp.SetOperation() as operation:
                waiting += [operation.expression, operation.this]
            case exp.Subquery(this=inner):
                waiting.append(inner)
            case exp.Select() as select:
                yield from (item.unalias() for item in select.expressions)


def _selected_columns(written: exp.Expr | Expression, scope: Scope) -> exp.Expr | None:
    """What a SELECT selects, with tables before columns; None for what * stands for and is no column."""
    if isinstance(written, ColumnRef):
        return _reference(written, scope)
    return _qualify_columns(_comparable(written), scope) if isinstance(written, exp.Expr) else None


def _comparable(node: exp.Expr) -> exp.Expr:
    """The expression in a form that is equal for upper and lower case, and without parentheses."""

    def step(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Column() if not isinstance(node.this, exp.Star):
                column = _column(node.name, node.table, stored=fold_case(node.db) == MAIN)
                column.meta.update(node.meta)
                return column
            case exp.Anonymous():
                node.set("this", node.name.lower())
        return node

    whole = exp.Paren(this=node.copy())
    for paren in list(whole.find_all(exp.Paren))[1:]:
        paren.replace(paren.this)
    comparable: exp.Expr = whole.this.transform(step, copy=False)
    return comparable


def _column(name: str, table: str, *, stored: bool) -> exp.Column:
    """A name to compare; the schema stands before that of a stored table, which has no alias."""
    column = exp.column(exp.to_identifier(fold_case(name), quoted=True))
    if table:
        column.set("table", exp.to_identifier(fold_case(table), quoted=True))
    if stored:
        column.set("db", exp.to_identifier(MAIN, quoted=True))
    return column


def _qualify_columns(node: exp.Expr, scope: Scope) -> exp.Expr:
    """The expression with tables before the columns that the scope has; queries within stay as they are."""
    whole = exp.Paren(this=node.copy())
    for column in list(whole.walk(prune=lambda below: isinstance(below, exp.Query | exp.Dot))):
        if isinstance(column, exp.Column) and not isinstance(column.this, exp.Star):
            column.replace(_qualify_column(column, scope))
    qualified: exp.Expr = whole.this
    return qualified


def _qualify_column(node: exp.Column, scope: Scope) -> exp.Expr:
    """A column with its table; a field, which nothing selects, where the table is a column of this scope."""
    chosen: ColumnRef | None = node.meta.get("chosen")
    found = scope.find_column(node.name, node.table) if chosen is None else chosen
    if found is not None and node.db:
        table = scope.table_of(found)
        return node if table is None or not table.stored else _reference(found, scope)
    if found is None and node.table and not node.db and scope.find_column(node.table) is not None:
        return exp.Dot(this=exp.to_identifier(node.table), expression=exp.to_identifier(node.name))
    return node if found is None else _reference(found, scope)


def _reference(column: ColumnRef, scope: Scope) -> exp.Expr:
    """A column with its table before it; for one that FULL JOIN merges what it is the first value of."""
    columns = [
        _column(own.name, "" if table is None else table.name, stored=table is not None and table.stored)
        for own in scope.sources_of(column)
        for table in [scope.table_of(own)]
    ]
    return columns[0] if len(columns) == 1 else exp.Coalesce(this=columns[0], expressions=columns[1:])
