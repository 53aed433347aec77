"""The names that result columns get where the statement gives none: the expression, as DuckDB spells it.

Unlike DuckDB, a name that is a keyword to its parser is not quoted: `year(t)`, not `"year"(t)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.parameters import mark
from bamquery.sql_frontend.spelling.calls import CALLS
from bamquery.sql_frontend.spelling.forms import FORMS
from bamquery.sql_frontend.spelling.names import Speller, label
from bamquery.sql_frontend.syntax.positions import number_text
from bamquery.sql_frontend.text_constants import MARK, constant_number, constants_name, text_of
from bamquery.statement_context.cancellation import check_cancelled

_SPELLERS: Final[Mapping[type[exp.Expr], Speller]] = MappingProxyType({**FORMS, **CALLS})


def column_name(node: exp.Expr, sql: str) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    return label(node, partial(spell, sql=sql))


def inner_name(node: exp.Expr, sql: str) -> str:
    """The expression as the name of a column that no statement can name; see `SpelledName`."""
    words: dict[int, str] = {}
    text = spell(node, sql, words)
    return constants_name(node, text, words) if words else text


def spell(node: exp.Expr, sql: str, words: dict[int, str] | None = None) -> str:
    """The expression as DuckDB writes it; `sql` is the text that the tree was parsed from.

    With `words`, numbers of the text's constants stand in marks where these words of theirs would.
    """
    check_cancelled()
    parameter = mark(node)
    if parameter is not None:
        return parameter
    if isinstance(node, exp.Literal):
        return _literal(node, sql) if words is None else _marked_literal(node, sql, words)
    return _SPELLERS[type(node)](node, partial(spell, sql=sql, words=words))


def _literal(node: exp.Literal, sql: str) -> str:
    return _words(node, sql, str(node.this))


def _words(node: exp.Literal, sql: str, text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if node.is_string else number_text(node, sql, text)


def _marked_literal(node: exp.Literal, sql: str, words: dict[int, str]) -> str:
    number = constant_number(node)
    if number is None:
        return _literal(node, sql)
    words[number] = _words(node, sql, text_of(node))
    return f"{MARK}{number}{MARK}"
