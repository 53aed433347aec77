"""Items of a select list that stand for several: * REPLACE, * RENAME, * LIKE, and COLUMNS() anywhere in one.

They are put in the syntax tree as the items that they stand for, so that all that follows sees only those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import ColumnRef, Literal
from bamquery.sql_frontend.binder.catalog import FoldConstants
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.expressions.star import star_columns
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.syntax.ast_nodes import chosen_column
from bamquery.sql_frontend.syntax.positions import start
from bamquery.sql_frontend.syntax.walking import walk, walk_query
from bamquery.text.identifiers import fold_case

_PATTERNS: Final = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob)
_CHANGES: Final = {"replace": "REPLACE", "rename": "RENAME"}


def expand_columns(node: exp.Select, scope: Scope, sql: str, fold: FoldConstants) -> None:
    """Put the items there, and in WHERE a condition for each column; `fold` says whether a name matches.

    Raises:
        SqlError: what is replaced is not there, or no column is left.
    """
    expanded = apply_to_each(lambda item: list(_expand_item(item, scope, sql, fold)), node.expressions, sql)
    if any(items != [item] for items, item in zip(expanded, node.expressions, strict=True)):
        node.set("expressions", [item for items in expanded for item in items])
    where = node.args.get("where")
    if where is not None and _calls(where.this):
        where.set("this", exp.and_(*_columns_called(where.this, scope, sql), wrap=True))


def _expand_item(item: exp.Expr, scope: Scope, sql: str, fold: FoldConstants) -> Iterator[exp.Expr]:
    alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
    body = item.this if isinstance(item, exp.Alias) else item
    pattern = _pattern(body)
    if pattern is not None:
        matching = _columns_with_pattern(body, pattern, scope, sql, fold)
        columns = [_placed_like(body, chosen_column(column)) for column in matching]
    elif _star(body) is not None and any(_star(body).args.get(key) is not None for key in _CHANGES):
        columns = _apply_changes(body, scope, sql)
    elif _calls(body):
        whole = body is _calls(body)[0]
        columns = _columns_called(body, scope, sql)
        with errors_at(sql, item):
            if alias is not None and "\\" in alias.name:
                raise ValueError("an alias with \\0 or \\1 for the names of COLUMNS() is not supported")
        if not whole and alias is None:
            names = [next(_chosen_columns(column)).name for column in columns]
            columns = [exp.alias_(c, n, quoted=True, copy=False) for c, n in zip(columns, names, strict=True)]
    else:
        yield item
        return
    for column in columns:
        yield (
            column
            if alias is None
            else _placed_like(item, exp.alias_(column, alias.name, quoted=True, copy=False))
        )


def _placed_like(node: exp.Expr, made: exp.Expr) -> exp.Expr:
    """With the place of what it stands for, for errors."""
    made.meta.update({key: node.meta[key] for key in ("line", "col", "start", "end") if key in node.meta})
    return made


def _star(node: exp.Expr) -> Any:
    """The star of * or t.*, None for anything else."""
    star = node.this if isinstance(node, exp.Column) else node
    return star if isinstance(star, exp.Star) else None


def _pattern(body: exp.Expr) -> Any:
    """The star that a pattern is applied to, if there is one."""
    while isinstance(body, (exp.Not, exp.Escape)):
        body = body.this
    star = _star(body)
    if star is not None and star.args.get("ilike") is not None:
        return body
    return body.this if isinstance(body, _PATTERNS) and _star(body.this) is not None else None


def _columns_with_pattern(
    body: exp.Expr, target: exp.Expr, scope: Scope, sql: str, fold: FoldConstants
) -> Sequence[ColumnRef]:
    """The columns of a star whose names have a pattern."""
    star = _star(target)
    name = exp.Literal.string("")
    ilike = star.args.get("ilike")
    if ilike is not None:  # which the parser has as a part of the star
        test = exp.ILike(this=name, expression=ilike)
        body = test if body is target else body
        target.replace(test)
    else:
        target.replace(name)
    with errors_at(sql, target):
        if any(star.args.get(key) is not None for key in _CHANGES):
            raise ValueError("* with a pattern takes no REPLACE or RENAME")
        if body.find(exp.Column):
            raise ValueError("the pattern for the names of columns is a text in the statement")
    binder = ExpressionBinder(sql, Scope(), "a pattern")

    def matches(column: ColumnRef) -> bool:
        name.set("this", column.name)
        found = fold(binder.bind(body))
        return isinstance(found, Literal) and bool(found.value.as_py())

    columns = [column for column in star_columns(target, scope, sql, None) if matches(column)]
    with errors_at(sql, target):
        if not columns:
            raise ValueError("no column has a name like this")
    return columns


def _apply_changes(body: exp.Expr, scope: Scope, sql: str) -> list[exp.Expr]:
    """* with REPLACE and RENAME."""
    star = _star(body)
    columns = star_columns(body, scope, sql, None)
    changes: dict[str, dict[str, exp.Expr]] = {}
    excluded = {fold_case(node.name) for node in star.args.get("except_") or ()}
    for key, word in _CHANGES.items():
        changes[key] = {}
        nodes = star.args.get(key)
        with errors_at(sql, body):
            if nodes is not None and not nodes:
                raise ValueError(f"{word} needs a column")
        for node in nodes or ():
            with errors_at(sql, node):
                if not isinstance(node, exp.Alias):
                    raise ValueError(
                        f"{word} takes {'expressions' if key == 'replace' else 'columns'} AS names"
                    )
                name = fold_case(node.alias if key == "replace" else node.this.name)
                if name in excluded:
                    raise ValueError(f'"{name}" is in EXCLUDE, too')
                same = [column for column in columns if fold_case(column.name) == name]
                if name in changes["replace"] or name in changes[key]:
                    raise ValueError(f'"{name}" is there twice in {" and ".join(_CHANGES.values())}')
                if key == "replace" and not same:
                    raise ValueError(scope.missing_message(node.alias))
                if key == "replace" and len(same) > 1:
                    raise ValueError(f'several columns are called "{node.alias}": write t.* REPLACE')
                if key == "rename" and not (isinstance(node.this, exp.Column) and not node.this.table):
                    raise ValueError("RENAME takes names of columns")
            changes[key][name] = node
    return [_placed_like(body, _change_column(column, changes)) for column in columns]


def _change_column(column: ColumnRef, changes: dict[str, dict[str, exp.Expr]]) -> exp.Expr:
    replaced = changes["replace"].get(fold_case(column.name))
    renamed = changes["rename"].get(fold_case(column.name))
    if replaced is not None:
        return replaced
    if renamed is not None:
        return exp.Alias(this=chosen_column(column), alias=exp.to_identifier(renamed.alias, quoted=True))
    return chosen_column(column)


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """COLUMNS() in an expression, those of queries within left out."""
    return [
        call
        for call in walk_query(node)
        if isinstance(call, exp.Anonymous) and call.name.lower() == "columns"
    ]


def _chosen_columns(node: exp.Expr) -> Iterator[exp.Column]:
    return (column for column in walk(node) if isinstance(column, exp.Column) and "chosen" in column.meta)


def _columns_called(body: exp.Expr, scope: Scope, sql: str) -> list[exp.Expr]:
    """The expression for each of the columns that COLUMNS() in it stands for."""
    first, *others = _calls(body)
    for other in others:
        with errors_at(sql, other):
            if other != first:
                raise ValueError("an expression can have one kind of COLUMNS() only")

    def with_column(column: ColumnRef, made: exp.Expr) -> exp.Expr:
        for call in _calls(made):
            node = _placed_like(call, chosen_column(column))
            made = node if call is made else made
            call.replace(node)
        return made

    *several, last = _resolve_columns(first, scope, sql)
    return [*(with_column(column, body.copy()) for column in several), with_column(last, body)]


def _is_unpacked(call: exp.Expr, sql: str) -> bool:
    """Whether there is a star before it that multiplies nothing, which the parser passes over."""
    offset = start(call)
    if offset is None or not sql[:offset].rstrip().endswith("*"):
        return False
    node = call
    while node.parent is not None and node.parent.args.get("this") is node:
        node = node.parent
    return not (isinstance(node.parent, exp.Mul) and node.parent.expression is node)


def _resolve_columns(call: exp.Anonymous, scope: Scope, sql: str) -> Sequence[ColumnRef]:
    with errors_at(sql, call):
        if isinstance(call.find_ancestor(exp.Filter, exp.Query), exp.Filter):
            raise ValueError("COLUMNS() with FILTER is not supported")
        if _is_unpacked(call, sql):
            raise ValueError("*COLUMNS(), the columns as arguments of one call, is not supported")
        if len(call.expressions) != 1:
            raise ValueError("COLUMNS() takes * or a regular expression")
        argument = call.expressions[0].unnest()
        star = _star(argument)
        if star is not None:
            if any(star.args.get(key) is not None for key in (*_CHANGES, "ilike")):
                raise ValueError("* within COLUMNS() takes EXCLUDE only")
            return star_columns(argument, scope, sql, None)
        if not isinstance(argument, exp.Literal) or not argument.args["is_string"]:
            raise ValueError("COLUMNS() takes * or a regular expression")
        import pyarrow.compute as pc  # noqa: PLC0415 (for patterns only)

        columns = [column for column, _ in scope.visible]
        names = [column.name for column in columns]
        found = pc.match_substring_regex(pa.array(names, pa.string()), argument.this).to_pylist()
        chosen = [column for column, matches in zip(columns, found, strict=True) if matches]
        if not chosen:
            raise ValueError(f"no column has a name that {argument.sql()} matches: {', '.join(names)}")
    return chosen
