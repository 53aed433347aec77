"""What every part of a connection works with: its session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bamquery.catalog.views import inline_views
from bamquery.plan.bound_statements import Query
from bamquery.plan.nodes import Scan, Source
from bamquery.relations.definition import Definition
from bamquery.relations.relation import Relation
from bamquery.session.session import Session
from bamquery.sql_frontend.parameters import literal_text
from bamquery.sql_frontend.statement_binder import bind, with_column_types


class ConnectionBase:
    """A session; `Connection` adds its face."""

    def __init__(self, session: Session) -> None:
        """Use `bamquery.connect`."""
        self._session = session

    def _query(self, text: str, name: str = "") -> Relation:
        """What a query of ours answers, over what only the database and files have."""
        with self._session.planning():
            (statement,) = bind(text, self._session.catalog(with_variables=False).stored_tables_only())
        assert isinstance(statement, Query)
        return Relation(self._session, inline_views(statement.plan), name=name, definition=Definition(text))

    def _scan(self, source: Source, name: str = "") -> Relation:
        """All rows of a source that SQL does not name."""
        plan = with_column_types(inline_views(Scan(source, tuple(range(len(source.schema))))))
        return Relation(self._session, plan, name=name)


def call_text(function: str, *arguments: Any, options: Mapping[str, Any]) -> str:
    """A query of all that a table function gives; options of None are left out.

    Raises:
        TypeError: SQL has no type for a value.
    """
    listed = [argument_text(argument) for argument in arguments]
    listed += [f"{name} = {argument_text(value)}" for name, value in options.items() if value is not None]
    return f"SELECT * FROM {function}({', '.join(listed)})"


def argument_text(value: Any) -> str:
    """An argument of a table function: a constant, a list or a dictionary of them."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(argument_text, value))}]"
    if isinstance(value, Mapping):
        items = (f"{literal_text(str(key))}: {argument_text(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    try:
        return literal_text(value)
    except ValueError as error:
        raise TypeError(f"{value!r} cannot be an argument: {error}") from None
