"""The statements that a relation's methods stand for, of the pieces of SQL that they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bamquery.relations.expressions.operators import NamedExpression, Operators
from bamquery.relations.expressions.pieces import key_piece, one_expression, piece, pieces, select
from bamquery.relations.expressions.sql_literals import quoted_name, quoted_value
from bamquery.relations.expressions.statement_builder import StatementBuilder

_ALIAS: Final = re.compile(r"\bas\b", re.IGNORECASE)


def source_statement(name: str, known: str = "self") -> str:
    """What stands in FROM for a relation that has a name of its own, or none."""
    return f"{known} AS {quoted_name(name)}" if name else known


def filter_statement(source: str, conditions: Sequence[Any]) -> StatementBuilder:
    """For rows for which all conditions are true.

    Raises:
        SqlError: one is not one expression.
    """
    if not conditions:
        raise TypeError("condition: name at least one")
    text = StatementBuilder().words(f"SELECT * FROM {source} WHERE (")
    for place, condition in enumerate(conditions):
        sql = piece(condition, "condition")
        if isinstance(condition, str):
            one_expression(sql, "condition")
        text = (text.words(") AND (") if place else text).piece(sql)
    return text.words(")")


def project_statement(source: str, expressions: Sequence[Any], named: Mapping[str, Any]) -> StatementBuilder:
    """For columns computed from the rows.

    Raises:
        SqlError: these are not expressions.
    """
    text = StatementBuilder().words("SELECT").add_list(_columns(expressions, named))
    text.words(f"FROM {source}")
    select(text, {"distinct"})
    return text


def aggregate_statement(
    source: str, expressions: Sequence[Any], by: Any, named: Mapping[str, Any]
) -> StatementBuilder:
    """For one row a group.

    Raises:
        SqlError: these are not expressions.
    """
    keys = pieces(by, "by", key_piece)
    text = StatementBuilder().words("SELECT").add_list([*keys, *_columns(expressions, named, bool(keys))])
    text.words(f"FROM {source}")
    if keys:
        if named_keys := _named_keys(keys):
            text.words(f"GROUP BY {', '.join(map(str, range(1, named_keys + 1)))}")
        else:
            text.words("GROUP BY").add_list(pieces(by, "by", _strip_alias))
    select(text, {"group"})
    return text


def order_statement(source: str, keys: Sequence[Any]) -> StatementBuilder:
    """For rows in order.

    Raises:
        SqlError: these are not what ORDER BY takes.
    """
    if not keys:
        raise TypeError("keys: name at least one")
    text = StatementBuilder().words(f"SELECT * FROM {source} ORDER BY")
    text.add_list([key_piece(key, "keys") for key in keys])
    select(text, {"order"})
    return text


def distinct_statement(source: str, on: Any, order_by: Any) -> StatementBuilder:
    """For the different rows, or the first one of each value of `on` in the order of `order_by`.

    Raises:
        SqlError: these are not expressions.
    """
    keys = pieces(on, "on", key_piece)
    text = StatementBuilder().words("SELECT DISTINCT")
    if keys:
        text.words("ON (").add_list(keys).words(")")
    text.words(f"* FROM {source}")
    order = pieces(order_by, "order_by", key_piece)
    if order:
        text.words("ORDER BY").add_list(order)
    select(text, {"distinct", "order"})
    return text


def with_columns_statement(
    source: str, present: Mapping[str, str], expressions: Sequence[Any], named: Mapping[str, Any]
) -> StatementBuilder:
    """For all columns and more; those that are `present`, by folded name, get new values where they stand.

    Raises:
        SqlError: these are not expressions.
    """
    replaced = {name: value for name, value in named.items() if name.casefold() in present}
    added = {name: value for name, value in named.items() if name not in replaced}
    text = StatementBuilder().words("SELECT *")
    if replaced:
        text.words("REPLACE (")
        for place, (name, value) in enumerate(replaced.items()):
            text.words(", (" if place else "(")
            text.piece(_value(value, name)).words(f") AS {quoted_name(present[name.casefold()])}")
        text.words(")")
    more = _columns(expressions, added, bool(named))
    if more:
        text.words(",").add_list(more)
    text.words(f"FROM {source}")
    select(text, set())
    return text


def _named_keys(keys: Sequence[str]) -> int:
    """How many keys there are, where one has an alias, which GROUP BY does not take; 0 where none has."""
    if not any(_ALIAS.search(key) for key in keys):
        return 0
    chosen = select(StatementBuilder().words("SELECT").add_list(keys).words("FROM self"), set()).expressions
    return len(chosen) if not any(item.is_star for item in chosen) else 0


def _strip_alias(what: Any, argument: str) -> str:
    return what.expression if isinstance(what, NamedExpression) else key_piece(what, argument)


def _columns(expressions: Sequence[Any], named: Mapping[str, Any], may_lack: bool = False) -> list[str]:
    found = [piece(expression, "expressions") for expression in expressions]
    for name, value in named.items():
        sql = _value(value, name)
        # The name on a line of its own where a comment may hide it.
        found.append(f"{sql}{chr(10) if '--' in sql else ' '}AS {quoted_name(name)}")
    if not found and not may_lack:
        raise TypeError("expressions: name at least one")
    return found


def _value(value: Any, name: str) -> str:
    """A column's SQL: text is SQL, and other values of Python are constants."""
    if isinstance(value, (str, Operators)):
        sql = piece(value, name)
        if isinstance(value, str):
            one_expression(sql, name)
        return sql
    return quoted_value(value)
