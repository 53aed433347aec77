"""* and t.*, with EXCLUDE, in a list of what is selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from bamquery.data_types.unreadable import unreadable
from bamquery.plan.expressions import ColumnRef
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.text.identifiers import fold_case


def star_columns(
    node: exp.Expr, scope: Scope, sql: str, note: Callable[[ColumnRef, exp.Expr], None] | None
) -> Sequence[ColumnRef]:
    """The columns that * or t.* stands for; nothing for another item. `note` is told of each.

    Raises:
        SqlError: there is no such table or column, or nothing is left.
    """
    star, table = (node.this, node.table) if isinstance(node, exp.Column) else (node, "")
    if not isinstance(star, exp.Star):
        return []
    with errors_at(sql, node):
        if not scope.columns:
            raise ValueError("* needs a FROM")
        visible = scope.visible
        if not table:
            scope.check_names()
        columns = list(scope.columns_of(table)) if table else [column for column, _ in visible]
    exclude = star.args.get("except_")
    with errors_at(sql, star):
        if exclude is not None and not exclude:
            raise ValueError("EXCLUDE needs a column")
    for excluded in exclude or ():
        with errors_at(sql, excluded):
            if not isinstance(excluded, exp.Column) or excluded.table:
                raise ValueError("EXCLUDE takes names of columns")
            if all(fold_case(column.name) != fold_case(excluded.name) for column in columns):
                raise ValueError(scope.missing_message(excluded.name))
        columns = [column for column in columns if fold_case(column.name) != fold_case(excluded.name)]
    with errors_at(sql, node):
        if not columns:
            raise ValueError("* EXCLUDE leaves no column")
        _require_readable(columns)
    if note is not None:
        for column in columns:
            note(column, node)
    return columns


def _require_readable(columns: Sequence[ColumnRef]) -> None:
    reasons = {column.name: reason for column in columns if (reason := unreadable(column.type)) is not None}
    if reasons:
        names = ", ".join(f'"{name}"' for name in reasons)
        raise ValueError(f"{'; '.join(reasons.values())}. Leave out what cannot be read: * EXCLUDE ({names})")
