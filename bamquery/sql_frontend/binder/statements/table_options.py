"""What WITH (...) and SET (...) say of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.text.identifiers import fold_case, suggestion

_OPTIONS: Final = ("encoding",)
_ENCODINGS: Final = ("auto", "plain")


def bind_encoding(options: Sequence[syntax.TableOption], sql: str) -> str | None:
    """How the table's columns are stored; None where nothing says so.

    Raises:
        SqlError: there is no such option, or it cannot have that value, or is there twice.
    """
    found: str | None = None
    for option in options:
        name, value = option.this, option.expression
        with errors_at(sql, name):
            if fold_case(name.name) not in _OPTIONS:
                hint = suggestion(name.name, _OPTIONS)
                raise ValueError(f'tables have no option "{name.name}": they have encoding.{hint}')
            if found is not None:
                raise ValueError("encoding is said twice")
        with errors_at(sql, value):
            word = (
                value.is_string if isinstance(value, exp.Literal) else isinstance(value, exp.Column | exp.Var)
            )
            text = value.name.lower() if word else ""
            if text not in _ENCODINGS:
                raise ValueError(
                    "encoding takes 'auto' (columns are stored as is smallest) or 'plain' (any Arrow reader "
                    "sees their values)"
                )
            found = text
    return found
