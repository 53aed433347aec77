"""The statements that a relation's methods stand for, of the pieces of SQL that they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.sql_frontend.parser import parse
from bamquery.sql_frontend.text import sql_text
from bamquery.statement_text import Piece, joined

_ALWAYS: Final = frozenset({"expressions", "from_"})


def filter_text(condition: Any) -> str:
    """For rows for which a condition is true.

    Raises:
        SqlError: it is not one expression.
    """
    piece = _piece(condition, "condition")
    text = joined("SELECT * FROM relation WHERE (", piece, ")")
    where = _select(text, {"where"}).args["where"].this
    # What closes the parenthesis early and opens another has something else on top.
    whole = isinstance(where, exp.Paren) or (
        isinstance(where, exp.Subquery) and isinstance(where.this, exp.Subquery)
    )
    if not whole:
        raise SqlError("condition is one expression that is true or false", text)
    return text


def project_text(expressions: Sequence[Any]) -> str:
    """For columns computed from the rows.

    Raises:
        SqlError: these are not expressions.
    """
    text = joined("SELECT", *_listed(expressions, "expressions"), "FROM relation")
    _select(text, {"distinct"})
    return text


def aggregate_text(expressions: Sequence[Any], by: Any) -> str:
    """For one row a group.

    Raises:
        SqlError: these are not expressions.
    """
    if not isinstance(by, Iterable):
        raise TypeError(f"by is SQL in a str or a list of these, not {type(by).__name__}")
    by = list(by)
    group = ["GROUP BY", *_listed(by, "by")] if by else []
    chosen = [*(_piece(key, "by") for key in by), *expressions]
    text = joined("SELECT", *_listed(chosen, "expressions"), "FROM relation", *group)
    _select(text, {"group"})
    return text


def order_text(keys: Sequence[Any]) -> str:
    """For rows in order.

    Raises:
        SqlError: these are not what ORDER BY takes.
    """
    text = joined("SELECT * FROM relation ORDER BY", *_listed(keys, "keys"))
    _select(text, {"order"})
    return text


def _select(text: str, clauses: set[str]) -> exp.Select:
    """The statement, if it has no clauses but these: none came with a piece."""
    trees = parse(text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise SqlError("this takes expressions, not statements", text)
    tree = trees[0]
    others = [name for name, value in tree.args.items() if value and name not in {*_ALWAYS, *clauses}]
    if others:
        raise SqlError(f"this takes expressions, not what follows them in a statement ({others[0]})", text)
    return tree


def _listed(pieces: Sequence[Any], argument: str) -> list[str]:
    if not pieces:
        raise TypeError(f"{argument}: name at least one")
    parts: list[str] = []
    for piece in pieces:
        parts += [",", _piece(piece, argument)]
    return parts[1:]


def _piece(what: Any, argument: str) -> Piece:
    piece = sql_text(what, argument)
    if not piece.strip():
        raise SqlError(f"{argument} is empty: it takes an expression")
    return Piece(piece)
