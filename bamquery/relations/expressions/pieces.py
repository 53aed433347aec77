"""Pieces of SQL from users, as text or objects: seen to be one piece each, before they stand among others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.relations.expressions.operators import NamedExpression, Operators, SortKey
from bamquery.relations.expressions.statement_builder import StatementBuilder, drop_repeated_reasons
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.sql_text import sql_text

_ALWAYS: Final = frozenset({"expressions", "from_"})
_NUMBER: Final = re.compile(r"-?\d+")


def piece(what: Any, argument: str) -> str:
    """The SQL of what was passed for an argument.

    Raises:
        TypeError: it is neither SQL nor an expression. SqlError: it is empty.
    """
    if isinstance(what, Operators | NamedExpression | SortKey):
        return what.sql
    if not isinstance(what, str):
        raise TypeError(f"{argument} is SQL in a str or an expression, not {type(what).__name__}")
    text = sql_text(what, argument)
    if not text.strip():
        raise SqlError(f"{argument} is empty: it takes an expression")
    return text


def key_piece(what: Any, argument: str) -> str:
    """As `piece`; a constant number that is an object is not the position of a column."""
    text = piece(what, argument)
    return f"({text})" if isinstance(what, Operators) and _NUMBER.fullmatch(text) else text


def pieces(what: Any, argument: str, one: Callable[[Any, str], str] = piece) -> list[str]:
    """Those of one piece, or of a list of them.

    Raises:
        TypeError: it is neither. SqlError: one is empty.
    """
    if isinstance(what, str | Operators | NamedExpression | SortKey):
        return [one(what, argument)]
    if not isinstance(what, Iterable):
        raise TypeError(
            f"{argument} is SQL in a str or a list of these, or expressions, not {type(what).__name__}"
        )
    return [one(item, argument) for item in what]


def condition_piece(what: Any) -> str:
    """A condition within another expression.

    Raises:
        SqlError: it is not one expression.
    """
    text = piece(what, "condition")
    if isinstance(what, str):
        one_expression(text, "condition")
    return _end_comment(text)


def value_piece(what: Any, argument: str) -> str:
    """A value within another expression.

    Raises:
        SqlError: it is not one expression.
    """
    text = key_piece(what, argument)
    if isinstance(what, str):
        one_expression(text, argument)
    return _end_comment(text)


def sort_piece(what: Any, argument: str) -> str:
    """Sort keys within another expression.

    Raises:
        SqlError: it is not what ORDER BY takes.
    """
    text = key_piece(what, argument)
    if isinstance(what, str):
        select(StatementBuilder().words("SELECT 1 ORDER BY").piece(text), {"order"})
    return _end_comment(text)


def listed_text(what: Any, argument: str, one: Callable[[Any, str], str]) -> str:
    """One piece or a list of them, with commas between them; "" for an empty list."""
    return ", ".join(pieces(what, argument, one))


def frame_text(rows: Any, frame: str | None) -> str:
    """The frame of a window; "" where none is said.

    Raises:
        TypeError, ValueError: both are given, or rows are no two distances in order.
        SqlError: it is no frame.
    """
    if frame is None:
        return "" if rows is None else _rows_frame(rows)
    if rows is not None:
        raise TypeError("a window has rows or a frame, not both")
    text = sql_text(frame, "frame")
    statement = StatementBuilder().words("SELECT count(*) OVER (ORDER BY 1").piece(text).words(")")
    tree = select(statement, set())
    if not isinstance(tree.expressions[0], exp.Window) or len(tree.expressions) > 1:
        raise SqlError("frame is a window's: ROWS, RANGE or GROUPS BETWEEN ... AND ...", text)
    return _end_comment(text)


def _rows_frame(rows: Any) -> str:
    if not isinstance(rows, tuple) or len(rows) != 2:
        raise TypeError("rows are two: the distance of the first row and that of the last, such as (-2, 0)")
    first, last = rows
    for distance in rows:
        if distance is not None and (isinstance(distance, bool) or not isinstance(distance, int)):
            raise TypeError(f"a distance of rows is a whole number or None, not {distance!r}")
    if first is not None and last is not None and first > last:
        raise ValueError(f"rows from {first} to {last} are none: the first one comes first")
    return f"ROWS BETWEEN {_distance(first, 'PRECEDING')} AND {_distance(last, 'FOLLOWING')}"


def _distance(rows: int | None, end: str) -> str:
    if rows is None:
        return f"UNBOUNDED {end}"
    if rows == 0:
        return "CURRENT ROW"
    return f"{-rows} PRECEDING" if rows < 0 else f"{rows} FOLLOWING"


def one_expression(text: str, argument: str) -> None:
    """See that a text is one expression, and that nothing in it ends what will stand around it.

    Raises:
        SqlError: it is not.
    """
    if not text.strip():
        raise SqlError(f"{argument} is empty: it takes an expression")
    statement = StatementBuilder().words("SELECT * FROM self WHERE (").piece(text).words(")")
    where = select(statement, {"where"}).args["where"].this
    # What closes the parenthesis early and opens another has something else on top.
    whole = isinstance(where, exp.Paren) or (
        isinstance(where, exp.Subquery) and isinstance(where.this, exp.Subquery)
    )
    if not whole:
        raise SqlError(f"{argument} is one expression", text)


def select(statement: StatementBuilder, clauses: set[str]) -> exp.Select:
    """The statement's tree, if it has no clauses but these: none came with a piece.

    Raises:
        SqlError: it has, or it is no SQL; shows the pieces.
    """
    text = statement.text
    try:
        trees = parse(text)
    except SqlError as error:
        raise drop_repeated_reasons(error) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise SqlError("this takes expressions, not statements", text)
    tree = trees[0]
    others = [name for name, value in tree.args.items() if value and name not in {*_ALWAYS, *clauses}]
    if others:
        raise SqlError(f"this takes expressions, not what follows them in a statement ({others[0]})", text)
    return tree


def _end_comment(text: str) -> str:
    """With the end of its line where it may end in a comment."""
    return f"{text}\n" if "--" in text else text
