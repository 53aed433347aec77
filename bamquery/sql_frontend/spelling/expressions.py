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
from bamquery.sql_frontend.text_constants import NamedConstants, text_of
from bamquery.statement_context.cancellation import check_cancelled

_SPELLERS: Final[Mapping[type[exp.Expr], Speller]] = MappingProxyType({**FORMS, **CALLS})


def column_name(node: exp.Expr, sql: str) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    return label(node, partial(spell, sql=sql))


def inner_name(node: exp.Expr, sql: str) -> str:
    """The expression as the name of a column that no statement can name; see `SpelledName`."""
    constants = NamedConstants()
    return constants.name(spell(node, sql, constants))


def spell(node: exp.Expr, sql: str, constants: NamedConstants | None = None) -> str:
    """The expression as DuckDB writes it; `sql` is the text that the tree was parsed from.

    With `constants`, these of the text are marked in it.
    """
    check_cancelled()
    parameter = mark(node)
    if parameter is not None:
        return parameter
    if isinstance(node, exp.Literal):
        if constants is None:
            return _words(node, sql, str(node.this))
        return constants.mark(node, _words(node, sql, text_of(node)))
    return _SPELLERS[type(node)](node, partial(spell, sql=sql, constants=constants))


def _words(node: exp.Literal, sql: str, text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if node.is_string else number_text(node, sql, text)
