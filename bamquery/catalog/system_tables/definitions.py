"""The SQL that tables and views can be made by again."""

from __future__ import annotations

from bamquery.catalog.system_tables.facts import ColumnFacts, RelationFacts
from bamquery.data_types.names import type_name
from bamquery.sql_frontend.spelling.quoting import quoted_name


def definition(relation: RelationFacts) -> str | None:
    """CREATE TABLE or CREATE VIEW; None for a table whose columns are not known.

    A type that no SQL names (a dictionary, a timestamp of another zone) is written as the one shown for it.
    """
    name = quoted_name(relation.name)
    if relation.view is not None:
        names = ", ".join(map(quoted_name, relation.view.columns))
        return f"CREATE VIEW {name}{f' ({names})' if names else ''} AS {relation.view.sql};"
    if relation.columns is None:
        return None
    return f"CREATE TABLE {name}({', '.join(map(_column, relation.columns))});"


def _column(column: ColumnFacts) -> str:
    default = f" DEFAULT({column.default})" if column.default is not None else ""
    return f"{quoted_name(column.name)} {type_name(column.type)}{default}{' NOT NULL' * column.not_null}"
