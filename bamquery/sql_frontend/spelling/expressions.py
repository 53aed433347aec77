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
from bamquery.statement_context.cancellation import check_cancelled

_SPELLERS: Final[Mapping[type[exp.Expr], Speller]] = MappingProxyType({**FORMS, **CALLS})


def column_name(node: exp.Expr, sql: str) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    return label(node, partial(spell, sql=sql))


def spell(node: exp.Expr, sql: str) -> str:
    """The expression as DuckDB writes it; `sql` is the text that the tree was parsed from."""
    check_cancelled()
    parameter = mark(node)
    if parameter is not None:
        return parameter
    if isinstance(node, exp.Literal):
        return _literal(node, sql)
    return _SPELLERS[type(node)](node, partial(spell, sql=sql))


def _literal(node: exp.Literal, sql: str) -> str:
    if node.is_string:
        return "'" + node.name.replace("'", "''") + "'"
    return number_text(node, sql)
